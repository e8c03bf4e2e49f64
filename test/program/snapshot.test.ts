/**
 * A snapshot is published by one program and fetched into an empty folder, which then lists the same items. A file that
 * differs from the description is rejected.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { complaintsIn } from "../cli/command.ts";
import { type RunningProgram, repositoryRoot, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";

let program: RunningProgram;
let work: string;
beforeAll(async () => {
  program = await startDev();
  work = mkdtempSync(join(tmpdir(), "cairn-snapshot-"));
}, 120_000);
afterAll(async () => {
  await program.remove();
  removeFolder(work);
});

async function cairn(dataDir: string, ...words: string[]) {
  const child = Bun.spawn([process.execPath, resolve(repositoryRoot, "src/main.ts"), ...words], {
    cwd: work,
    env: { PATH: process.env["PATH"] ?? "", HOME: work, DATA_DIR: dataDir },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [text, output, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { text, errors: complaintsIn(output), code };
}

/** Exports the final heights in partitions of a size, and publishes them. @returns The id of the mined manifest. */
async function publish(exported: string, partition: string): Promise<string> {
  const { node, upload, gateway } = program.line;
  await eventually(
    async () => (await cairn(program.folder, "export", exported, "--partition", partition, "--items-only")).code,
    (code) => code === 0,
  );
  const published = await cairn(program.folder, "snapshot", "publish", exported, "--to", upload, "--yes", "--json");
  expect(published.errors).toBe("");
  const { id } = JSON.parse(published.text).manifest;
  await eventually(
    async () => {
      await fetch(`${node}/mine`, { method: "POST" });
      return (await fetch(`${gateway}/svc/proof/${id}`)).json();
    },
    ({ block }) => block !== undefined && block !== null,
  );
  return id;
}

const partitionsIn = (folder: string): string[] => readdirSync(join(folder, "partitions")).toSorted();

describe("a snapshot", () => {
  let manifest = "";

  test("is published as signed items with a manifest", async () => {
    await fetch(`${program.line.node}/mine/30`, { method: "POST" });
    manifest = await publish(join(work, "history"), "10");
  }, 120_000);

  test("is fetched, verified and imported; a second fetch adds nothing", async () => {
    const { gateway } = program.line;
    const folder = join(work, "fetched");
    const fetchAgain = () => cairn(folder, "snapshot", "fetch", manifest, "--gateway", gateway, "--json");
    const { text, errors, code } = await fetchAgain();
    expect([errors, code]).toEqual(["", 0]);
    const { items, verified, unavailable } = JSON.parse(text);
    expect(items).toBeGreaterThan(5);
    expect([verified, unavailable]).toEqual([items, 0]);
    expect(JSON.parse((await fetchAgain()).text)).toMatchObject({ items: 0, rows: 0 });
  }, 60_000);

  test("is not fetched from an id that is not one, nor without a gateway", async () => {
    const { gateway, sample } = program.line;
    const folder = join(work, "other");
    const { errors, code } = await cairn(folder, "snapshot", "fetch", sample.manifest, "--gateway", gateway);
    expect([code, errors]).toEqual([
      1,
      `cairn: ${sample.manifest} is not a snapshot: its manifest has no snapshot.json\n`,
    ]);
    expect((await cairn(folder, "snapshot", "fetch", manifest)).errors).toContain("missing option --gateway");
    expect((await cairn(folder, "snapshot", "send", manifest)).errors).toContain("expected publish or fetch");
  }, 60_000);

  test("is not fetched from a gateway that changes a file", async () => {
    const { gateway } = program.line;
    const { paths } = (await (await fetch(`${gateway}/raw/${manifest}`)).json()) as {
      paths: Record<string, { id: string }>;
    };
    const [path = "", { id } = { id: "" }] = Object.entries(paths).find(([name]) => name.startsWith("tags/")) ?? [];
    const altering = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: async (request) => {
        const { pathname, search } = new URL(request.url);
        const response = await fetch(`${gateway}${pathname}${search}`, { headers: request.headers });
        if (pathname !== `/raw/${id}`) return response;
        const bytes = new Uint8Array(await response.arrayBuffer());
        bytes[100] = (bytes[100] ?? 0) ^ 1;
        return new Response(bytes, { headers: response.headers });
      },
    });
    const words = ["snapshot", "fetch", manifest, "--gateway", `http://127.0.0.1:${altering.port}`];
    const { code, errors } = await cairn(join(work, "deceived"), ...words);
    await altering.stop(true);
    expect([code, errors]).toEqual([1, `cairn: ${path} (${id}) does not have the stated SHA-256\n`]);
  }, 60_000);

  test("whose rows the proofs contradict is not taken for another snapshot of the same heights", async () => {
    const { gateway } = program.line;
    const other = await publish(join(work, "other-history"), "5");
    const folder = join(work, "corrected");
    const { paths } = await (await fetch(`${gateway}/raw/${manifest}`)).json();
    expect(Object.keys(paths).filter((path) => path.includes("run."))).toEqual([]); // files of the export's state
    const ofSnapshot = [manifest, ...Object.values(paths as Record<string, { id: string }>).map(({ id }) => id)];
    const altering = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: async (request) => {
        const { pathname, search } = new URL(request.url);
        const response = await fetch(`${gateway}${pathname}${search}`, { headers: request.headers });
        if (!pathname.startsWith("/raw/") || ofSnapshot.includes(pathname.slice(5))) return response;
        const { status, headers } = response;
        return new Response(
          (await response.bytes()).map((byte) => byte ^ 1),
          { status, headers },
        );
      },
    });
    const words = ["snapshot", "fetch", manifest, "--gateway", `http://127.0.0.1:${altering.port}`];
    const { code, errors } = await cairn(folder, ...words);
    await altering.stop(true);
    expect([code, errors]).toEqual([1, expect.stringMatching(/^cairn: the row of [\w-]{43} is wrong: /)]);
    const { text } = await cairn(folder, "snapshot", "fetch", other, "--gateway", gateway, "--json");
    expect(JSON.parse(text).partitions).toBe(partitionsIn(join(work, "other-history")).length);
    expect(partitionsIn(join(folder, "columnar"))).toEqual(partitionsIn(join(work, "other-history")));
  }, 120_000);
});
