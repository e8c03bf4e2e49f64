/**
 * `cairn import --from ar-io-node`, as an operator runs it on the data folder of the other gateway.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCairn } from "./command.ts";

const root = mkdtempSync(join(tmpdir(), "cairn-ar-io-node-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe("the settings of ar-io-node", () => {
  const home = join(root, "settings");
  mkdirSync(join(home, "data", "sqlite"), { recursive: true });
  writeFileSync(join(home, "data", "sqlite", "core.db"), "");
  writeFileSync(join(home, ".env"), "ADMIN_API_KEY=hidden\nTRUSTED_NODE_HOST=arweave.net\nPARQUET_PATH=./parquet\n");

  test("are reported with their meaning here, and no secret is printed", async () => {
    const { code, out, err } = await runCairn(["import", join(home, "data"), "--from", "ar-io-node"]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain(`settings of ${join(home, ".env")}\n\ntaken (1):\n  ADMIN_API_KEY\n`);
    expect(out).toContain("  TRUSTED_NODE_HOST: TRUSTED_NODE_URL=https://arweave.net\n");
    expect(out).toContain("  PARQUET_PATH: use cairn export");
    expect(out).not.toContain("hidden");
  });

  test("are machine-readable with --json, and --env names another file", async () => {
    const env = join(root, "other.env");
    writeFileSync(env, "GATEWAY_PORT=http\n");
    const { code, out } = await runCairn(["import", home, "--from", "ar-io-node", "--env", env, "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      settings: {
        path: env,
        names: [{ name: "GATEWAY_PORT", kind: "taken", note: "" }],
        invalid: ["invalid value 'http' for GATEWAY_PORT: expected 0–65535"],
      },
    });
  });
});

describe("a folder that cannot be imported", () => {
  test.each([
    [["--from", "ar-io-node"], `${root} is not a data folder of ar-io-node: sqlite/core.db does not exist`],
    [["--from", "arlocal"], "invalid value 'arlocal' for --from: expected ar-io-node"],
    [["--env", "x.env"], "--env requires --from ar-io-node"],
  ])("ends with 2 and one sentence: %p", async (words, message) => {
    const { code, out, err } = await runCairn(["import", root, ...words]);
    expect({ code, out, err }).toEqual({ code: 2, out: "", err: `${message}\n` });
  });
});
