/**
 * `cairn config --explain-env <file>`, as an operator runs it before the migration.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readConfig } from "../../src/config/config.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { runCairn } from "./command.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-explain-env-"));
afterAll(() => removeFolder(folder));

async function explained(text: string, ...more: string[]) {
  const path = join(folder, "operator.env");
  writeFileSync(path, text);
  return await runCairn(["config", "--explain-env", path, ...more], { cwd: folder });
}

describe("cairn config --explain-env", () => {
  test("reports for each name whether it is read, translated or without effect, and prints no secret", async () => {
    const { code, out, err } = await explained(`# my gateway
ADMIN_API_KEY=secret-of-mine
export AR_IO_WALLET="${"A".repeat(43)}"
ENVOY_PORT=3000
TRUSTED_NODE_HOST=arweave.net # the proxy's
TRUSTED_GATEWAYS_URLS='{"https://a.test": 1, "https://b.test": {"priority": 2, "trusted": false}}'
ARNS_RESOLVER_PRIORITY_ORDER=gateway
CLICKHOUSE_PASSWORD=hidden-too
PARQUET_PATH=./parquet
START_HEIHGT=1
`);
    expect(err).toBe("");
    expect(code).toBe(0);
    expect(out).toBe(`taken (5):
  ADMIN_API_KEY
  AR_IO_WALLET
  ENVOY_PORT: as GATEWAY_PORT
  TRUSTED_GATEWAYS_URLS
  CLICKHOUSE_PASSWORD

translated (1):
  TRUSTED_NODE_HOST: TRUSTED_NODE_URL=https://arweave.net

not read, same behaviour here (1):
  ARNS_RESOLVER_PRIORITY_ORDER: use NAMES_FILE and TRUSTED_ARNS_GATEWAY_URL, which are asked in this order; on-demand is not supported

without effect here; what to use instead (1):
  PARQUET_PATH: use cairn export or /svc/admin/export-parquet, whose options are in the request

not a setting of this version (1):
  START_HEIHGT: did you mean START_HEIGHT?
`);
  });

  test("ends with 2 and every complaint when a value is invalid", async () => {
    const { code, out } = await explained("GATEWAY_PORT=http\nANS104_INDEX_FILTER={}\n");
    expect(code).toBe(2);
    expect(out).toContain("\ninvalid (2):\n  invalid value 'http' for GATEWAY_PORT: expected 0–65535\n");
    expect(out).toContain("ANS104_INDEX_FILTER");
  });

  test("of a file without settings says so", async () => {
    expect(await explained("# nothing\n\n")).toMatchObject({ code: 0, out: "no settings\n" });
  });

  test("of a file that cannot be read ends with 2 in one line", async () => {
    for (const [words, message] of [
      [["config", "--explain-env", join(folder, "none.env")], "none.env: ENOENT"],
      [["config", "--explain-env", folder], "not a file"],
      [["config", "--explain-env="], "missing argument <file> for '--explain-env'"],
    ] as const) {
      const { code, out, err } = await runCairn(words, { cwd: folder });
      expect([code, out, err.trim().split("\n").length]).toEqual([2, "", 1]);
      expect(err).toContain(message);
    }
  });
});

test("a well-known name of other programs is not read as a mistyped setting", () => {
  const { warnings } = readConfig({ SSL_CERT_FILE: "/etc/ssl/cert.pem" }, "dev");
  expect(warnings).toEqual([]);
});
