/**
 * The binary, built in a copy of the tree that is then removed, run from another folder: it starts, every thread works,
 * and the native secp256k1 loads.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, existsSync, mkdtempSync, readdirSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { type RunningProgram, repositoryRoot, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";

const away = mkdtempSync(join(tmpdir(), "cairn-binary-"));
const binary = join(away, "cairn");
let program: RunningProgram;

beforeAll(async () => {
  buildInACopy();
  const environment = { COLUMNAR_STORE: "duckdb", COLUMNAR_PARTITION_HEIGHTS: "5" };
  program = await startDev({ command: [binary], cwd: away, environment });
}, 240_000);

afterAll(async () => {
  await program?.remove();
  removeFolder(away);
});

test("a binary of `bun build --compile src/main.ts`, which lacks the workers, says how to build it", () => {
  const plain = join(away, "plain");
  // DuckDB's bindings for other platforms are not installed.
  const words = ["build", "--compile", "src/main.ts", "--outfile", plain, "--external", "@duckdb/*"];
  const build = Bun.spawnSync([process.execPath, ...words], { cwd: repositoryRoot });
  expect([build.exitCode, build.stderr.toString().includes("error:")]).toEqual([0, false]);
  const { exitCode, stderr } = Bun.spawnSync([plain, "version"], { cwd: away });
  expect([exitCode, stderr.toString()]).toEqual([
    1,
    "This binary has no worker threads: build it with `bun run build`, in a folder that has its own packages.\n",
  ]);
});

describe("the binary, away from its tree", () => {
  test("prints its version and its help", () => {
    expect(run(["version"]).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(run(["--help"]).stdout).toContain("GATEWAY_PORT");
  });

  test("reports all invalid settings with exit code 2", () => {
    const { exitCode, stderr } = run(["serve"], { GATEWAY_PORT: "x", LOG_LEVEL: "loud" });
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: expect.stringMatching(
        /^Bad settings:\n {2}invalid value .* for GATEWAY_PORT: .*\n {2}invalid value .* for LOG_LEVEL: .*\n$/,
      ),
    });
  });

  test("follows, verifies, unbundles and writes in its threads: a page of the sample site is there", async () => {
    const url = `${program.line.gateway}/raw/${program.line.sample.manifest}`;
    const manifest = await eventually(
      () => fetch(url),
      (response) => response.status === 200,
    );
    expect(manifest.headers.get("x-ar-io-verified")).toBe("true");
    expect(await manifest.json()).toMatchObject({ manifest: "arweave/paths" });
  });

  test("executes GraphQL in its threads", async () => {
    const body = JSON.stringify({ query: "{ transactions(first: 3) { edges { node { id } } } }" });
    const headers = { "content-type": "application/json", accept: "application/json" };
    const response = await fetch(`${program.line.gateway}/graphql`, { method: "POST", headers, body });
    expect((await response.json()).data.transactions.edges).toHaveLength(3);
  });

  test("reads pruned items by DuckDB in its threads, and in `cairn sql` with a library that was damaged", async () => {
    const { gateway, node, adminKey, sample } = program.line;
    const request = async (path: string, body: unknown) => {
      const headers = { authorization: `Bearer ${adminKey}`, "content-type": "application/json" };
      return (await fetch(`${gateway}${path}`, { method: "POST", headers, body: JSON.stringify(body) })).json();
    };
    await fetch(`${node}/mine/30`, { method: "POST" });
    const pruned = { indexedAtThreshold: 2_000_000_000, startHeight: 1, endHeight: 1_000 };
    await eventually(
      async () => {
        await request("/svc/admin/prune-stable-data-items", pruned);
        const headers = { authorization: `Bearer ${adminKey}` };
        return (await (await fetch(`${gateway}/svc/admin/debug`, { headers })).json()).db.counts.dataItems;
      },
      (items) => items === 0,
      60_000,
    );
    const query = `{ transactions(ids: ["${sample.manifest}"]) { edges { node { id } } } }`;
    expect(await request("/graphql", { query })).toEqual({
      data: { transactions: { edges: [{ node: { id: sample.manifest } }] } },
    });

    const state = join(away, "state");
    const sql = () =>
      run(["sql", "--csv", `SELECT id FROM items WHERE id = '${sample.manifest}'`], {
        DATA_DIR: program.folder,
        XDG_STATE_HOME: state,
      });
    const found = { exitCode: 0, stdout: `id\n${sample.manifest}\n`, stderr: "" };
    expect(sql()).toEqual(found);
    const libraries = readdirSync(join(state, "cairn")).filter((name) => name.startsWith("libduckdb-"));
    expect(libraries).toHaveLength(1);
    truncateSync(join(state, "cairn", libraries[0] ?? ""), 1_000);
    expect(sql()).toEqual(found);
  }, 90_000);

  test("accepts a head with more cookies than the runtime does by itself", async () => {
    const response = await fetch(`${program.line.gateway}/info`, { headers: { cookie: `a=${"x".repeat(40_000)}` } });
    expect([response.status, response.headers.get("clear-site-data")]).toEqual([200, '"cookies"']);
  });

  test("serves the query page with embedded assets", async () => {
    const page = await fetch(`${program.line.gateway}/graphql`, { headers: { accept: "text/html" } });
    const script = /<script[^>]* src="([^"]+)"/.exec(await page.text())?.[1] ?? "none";
    const asset = await fetch(new URL(script, program.line.gateway));
    expect({ status: asset.status, type: asset.headers.get("content-type") }).toEqual({
      status: 200,
      type: expect.stringContaining("javascript"),
    });
  });

  test.each(["console", "explorer"])("serves the page of the %s with embedded assets", async (name) => {
    const address = `${program.line.gateway}/svc/${name}`;
    const page = await (await fetch(address)).text();
    const files = [...page.matchAll(/(?:src|href)="(\w+\/[^"]+)"/g)].map(([, file]) => file ?? "");
    expect(files).toHaveLength(2);
    for (const file of files) expect((await fetch(new URL(file, address))).status).toBe(200);
  });

  test("serves the module that verifies content", async () => {
    const module = await fetch(`${program.line.gateway}/svc/verify.js`);
    expect([module.status, (await module.text()).includes("VerificationError")]).toEqual([200, true]);
  });

  test("serves the API reference with embedded assets", async () => {
    const page = await (await fetch(`${program.line.gateway}/api-docs`)).text();
    const files = [...page.matchAll(/(?:src|href)="(api-docs\/[^"]+)"/g)].map(([, file]) => file ?? "");
    expect(files).toHaveLength(3);
    for (const file of files) expect((await fetch(new URL(file, program.line.gateway))).status).toBe(200);
    const { paths } = await (await fetch(`${program.line.gateway}/openapi.json`)).json();
    expect(Object.keys(paths)).toContain("/raw/{txId}");
  });

  test("stops on a signal, and the doctor finds the folder intact, with the native secp256k1 and every thread", async () => {
    expect(await program.stop()).toBe(0);
    const { exitCode, stdout } = run(["doctor", "--json", "--offline"], { DATA_DIR: program.folder });
    const gateway = ["index", "query", "unbundle", "verify"];
    const threads = [...gateway, "intake", "walk", "receipts", "bundles", "signing"];
    expect({ exitCode, report: JSON.parse(stdout) }).toMatchObject({
      exitCode: 0,
      report: { secp256k1: "native", threads: Object.fromEntries(threads.map((name) => [name, "ok"])) },
    });
  });
});

function run(words: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const { exitCode, stdout, stderr } = Bun.spawnSync([binary, ...words], {
    cwd: away,
    env: { PATH: process.env["PATH"] ?? "", ...environment },
  });
  return { exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

/** What must not be needed is not there: the copy is gone before the binary runs for the first time. */
function buildInACopy(): void {
  const copy = mkdtempSync(join(tmpdir(), "cairn-tree-"));
  for (const part of ["src", "workers", "console", "node_modules", "build.ts", "package.json", "tsconfig.json"]) {
    if (existsSync(join(repositoryRoot, part)))
      cpSync(join(repositoryRoot, part), join(copy, part), { recursive: true, verbatimSymlinks: true });
  }
  const built = Bun.spawnSync([process.execPath, "build.ts", binary], {
    cwd: copy,
    stdout: "pipe",
    stderr: "pipe",
  });
  writeFileSync(join(away, "build.log"), built.stderr.toString());
  removeFolder(copy);
  if (built.exitCode !== 0) throw new Error(`the build failed: ${built.stderr.toString()}`);
}
