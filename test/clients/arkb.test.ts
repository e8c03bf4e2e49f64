/**
 * arkb against the gateway, as its users run it: a folder deployed file by file and as a bundle, balance, status,
 * transfer.
 *
 * It is installed by npm in a folder of its own (test/clients/arkb/package.json says why), and runs under Node.js.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { describeWith, type Need } from "../support/helpers.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";

const arkb: Need = {
  there: existsSync(resolve(import.meta.dir, "arkb/node_modules/.package-lock.json")) && Bun.which("node") !== null,
  what: "Node.js, and test/clients/arkb/node_modules (npm ci --ignore-scripts in test/clients/arkb)",
};

/** A published client takes seconds to start on a busy machine. */
const timeoutMs = 120_000;

/** One address, and one id, in 64 begins so. */
const dashed = `-${"a".repeat(41)}A`;

/** As arkb writes it: at most twelve decimals, thousands by commas. */
const balancePattern = /has a balance of AR ([\d,]+\.\d{12}|[\d,]+)/;

describeWith(arkb, "arkb", () => {
  let program: RunningProgram;
  let folder: string;
  let address: string;

  beforeAll(async () => {
    program = await startDev({ environment: { DEVNET_MINING: "manual" } });
    folder = mkdtempSync(join(tmpdir(), "cairn-arkb-"));
    const wallet = program.line.wallets.find(({ name }) => name === "rsa");
    address = wallet?.address ?? "";
    writeFileSync(join(folder, "wallet.json"), JSON.stringify(wallet?.jwk));
  }, timeoutMs);

  afterAll(async () => {
    await program?.remove();
    if (folder !== undefined) removeFolder(folder);
  });

  /** Runs a command with a wallet. @returns Its output. After `--`, an id that begins with a dash is not an option. */
  async function run(
    words: readonly string[],
    { wallet = "wallet.json", more = [] }: { wallet?: string; more?: readonly string[] } = {},
  ): Promise<string> {
    const script = resolve(import.meta.dir, "arkb/node_modules/arkb/bin/app.js");
    const options = [
      "--gateway",
      program.line.gateway,
      "--wallet",
      join(folder, wallet),
      "--no-colors",
      "--debug",
      ...more,
    ];
    const child = Bun.spawn([Bun.which("node") ?? "node", script, ...options, "--", ...words], {
      cwd: folder,
      // Its settings and its manifests stay in the folder.
      env: { PATH: process.env["PATH"] ?? "", HOME: folder, XDG_CONFIG_HOME: folder, TMPDIR: folder },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [printed, complaint] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    expect({ code: await child.exited, complaint }).toEqual({ code: 0, complaint: "" });
    return printed;
  }

  /** Deploys a folder. @returns The id of its manifest, and the output. */
  async function deploy(site: string, ...more: string[]) {
    const printed = await run(["deploy", join(folder, site)], { more: ["--auto-confirm", ...more] });
    expect(printed).toContain("Files deployed!");
    const id = printed.trim().split("\n").at(-1)?.split("/").at(-1) ?? "";
    expect(id).toMatch(/^[\w-]{43}$/);
    return { id, printed };
  }

  const read = (path: string) => fetch(`${program.line.gateway}${path}`, { redirect: "manual" });
  /** What was posted is served before its block was followed, and says so. */
  const isSettled = ({ status, headers }: Response) => status === 200 && headers.get("x-ar-io-verified") === "true";
  const mine = () => fetch(`${program.line.node}/mine`, { method: "POST" });
  const balance = async (of: string) => BigInt(await (await read(`/wallet/${of}/balance`)).text());

  /** Winston, as a command with the amount in AR tells it. */
  async function printedBalance(): Promise<bigint> {
    const printed = await run(["balance"]);
    expect(printed).toContain(address);
    const [whole = "", decimals = ""] = (balancePattern.exec(printed)?.[1] ?? "").replaceAll(",", "").split(".");
    return BigInt(`${whole}${decimals.padEnd(12, "0")}`);
  }

  /** A small site of new bytes: arkb remembers deployed files by their hash. */
  function writeSite(name: string): Map<string, Uint8Array> {
    const mark = randomBytes(8).toString("hex");
    const files = new Map<string, Uint8Array>([
      ["index.html", Buffer.from(`<!doctype html><title>${mark}</title><a href="notes/one.html">one</a>`)],
      ["notes/one.html", Buffer.from(`<p>${mark} ${name}: é, 石</p>`)],
      ["notes/deep/two.json", Buffer.from(JSON.stringify({ mark, name }))],
      ["large.bin", randomBytes(700_001)], // three chunks
    ]);
    for (const [path, bytes] of files) {
      mkdirSync(dirname(join(folder, name, path)), { recursive: true });
      writeFileSync(join(folder, name, path), bytes);
    }
    return files;
  }

  const html = "text/html; charset=utf-8";
  const types: Readonly<Record<string, string>> = {
    html,
    json: "application/json; charset=utf-8",
    bin: "application/octet-stream",
  };

  /** Opens every file of a site below its manifest, and its index. */
  async function expectSite(id: string, files: ReadonlyMap<string, Uint8Array>) {
    await eventually(() => read(`/${id}/`), isSettled);
    const folderResponse = await read(`/${id}`);
    expect([folderResponse.status, folderResponse.headers.get("location")]).toEqual([301, `/${id}/`]);
    for (const [path, bytes] of [...files, ["", files.get("index.html") ?? new Uint8Array(0)] as const]) {
      const response = await eventually(() => read(`/${id}/${path}`), isSettled);
      expect([path, Buffer.compare(await response.bytes(), bytes)]).toEqual([path, 0]);
      const type = types[path.split(".").at(-1) ?? ""] ?? html;
      expect([path, response.headers.get("content-type")]).toEqual([path, type]);
    }
    expect((await read(`/${id}/notes/none.html`)).status).toBe(404);
  }

  test(
    "deploys a folder, one transaction a file, at the quoted fees",
    async () => {
      const files = writeSite("site");
      const before = await printedBalance();
      expect(before).toBe(await balance(address));
      const { id, printed } = await deploy("site");
      // What it posts is pending until a block is mined.
      expect((await read(`/tx/${id}/status`)).status).toBe(202);
      await mine();
      await expectSite(id, files);
      const ids = [id, ...Object.values(await pathsOf(id))];
      expect(new Set(ids).size).toBe(files.size + 1);
      for (const each of ids) expect(printed).toContain(each);
      const rewards = await Promise.all(ids.map(async (each) => BigInt((await transaction(each)).reward)));
      const spent = rewards.reduce((sum, reward) => sum + reward, 0n);
      expect(await printedBalance()).toBe(before - spent);
    },
    timeoutMs,
  );

  test(
    "finds by their status the files that it deployed before, and deploys the rest",
    async () => {
      const files = writeSite("again");
      const first = await deploy("again");
      await mine();
      await expectSite(first.id, files);
      const added = Buffer.from(`added ${randomBytes(8).toString("hex")}`);
      writeFileSync(join(folder, "again", "added.bin"), added);
      const second = await deploy("again");
      await mine();
      await expectSite(second.id, new Map([...files, ["added.bin", added]]));
      const { "added.bin": newest, ...others } = await pathsOf(second.id);
      expect(others).toEqual(await pathsOf(first.id));
      for (const id of Object.values(others)) expect(second.printed).not.toContain(`\n${id}`);
      expect(second.printed).toContain(`\n${newest}`);
    },
    timeoutMs,
  );

  test(
    "deploys a folder as one bundle",
    async () => {
      const files = writeSite("bundled");
      const { id } = await deploy("bundled", "--bundle");
      await mine();
      await expectSite(id, files);
      const roots = await Promise.all(
        [id, ...Object.values(await pathsOf(id))].map(async (each) =>
          (await read(`/raw/${each}`)).headers.get("x-ar-io-root-transaction-id"),
        ),
      );
      expect(new Set(roots).size).toBe(1);
      expect((await transaction(roots[0] ?? "")).data_size).not.toBe("0");
    },
    timeoutMs,
  );

  test(
    "tells the status of a transaction, transfers, and deploys nothing from a wallet that has nothing",
    async () => {
      const poor = generateKeyPairSync("rsa", { modulusLength: 2_048 }).privateKey.export({ format: "jwk" });
      writeFileSync(join(folder, "poor.json"), JSON.stringify(poor));
      writeSite("unpaid");
      const unpaid = await run(["deploy", join(folder, "unpaid")], {
        wallet: "poor.json",
        more: ["--auto-confirm"],
      });
      expect(unpaid).toContain("You don't have enough balance for this deploy.");

      const printed = await run(["transfer", dashed, "1.5"]);
      const id = /Transfer successful! Transaction ID: ([\w-]{43})/.exec(printed)?.[1] ?? printed;
      expect(id).toMatch(/^[\w-]{43}$/);
      await mine();
      await eventually(
        () => balance(dashed),
        (held) => held === 1_500_000_000_000n,
      );
      expect((await transaction(id)).target).toBe(dashed);

      const status = await run(["status", program.line.sample.sound]);
      expect(status).toContain("200 - Accepted");
      expect(status).toMatch(/Confirmations: .*\d+/);
      expect(await run(["status", dashed])).toContain(dashed);
      expect(await run(["network"])).toContain("cairn.devnet.1");
    },
    timeoutMs,
  );

  async function transaction(id: string) {
    return await (await read(`/tx/${id}`)).json();
  }

  /** Paths of a manifest, with the ids that they lead to. */
  async function pathsOf(id: string): Promise<Record<string, string>> {
    const { paths } = await (await read(`/raw/${id}`)).json();
    return Object.fromEntries(Object.entries<{ id: string }>(paths).map(([path, target]) => [path, target.id]));
  }
});
