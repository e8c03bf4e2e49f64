/**
 * The error of a failed start: one line with the setting and the reason, never a stack.
 * @module
 */
import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type SettingName, settings } from "../../src/config/settings.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openIndexWriter } from "../../src/store/index/index-writer.ts";
import { openSqliteLedger } from "../../src/store/ledger/sqlite-ledger.ts";
import { runCairn } from "../cli/command.ts";
import { programPorts } from "../support/program.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-start-"));
afterAll(() => removeFolder(folder));

describe("a port that another program has", () => {
  test.each(["GATEWAY_PORT", "PAYMENT_PORT", "UPLOAD_PORT", "DEVNET_PORT", "SANDBOX_PORT"])(
    "%s is not shared with it",
    async (name) => {
      const ports = programPorts();
      // A server of the same user: the system would let both have the port, and give each half of the connections.
      const other = Bun.serve({
        hostname: "127.0.0.1",
        port: Number(ports[name]),
        fetch: () => new Response(),
      });
      try {
        const environment = { ...ports, DATA_DIR: join(folder, name) };
        const { code, out, err } = await runCairn(["dev", "--json"], { environment });
        expect([code, out]).toEqual([2, ""]);
        const says = `${name} ${ports[name]} cannot be used: another program listens there\n`;
        expect(err).toEndWith(says);
      } finally {
        await other.stop(true);
      }
    },
    60_000,
  );
});

/** Invalid values of settings that are validated together with others, or by the file or host that they name. */
const wrongBesideOthers: Readonly<Record<string, string>> = {
  ANS104_UNBUNDLE_FILTER: "[]",
  ANS104_INDEX_FILTER: '{"a":1}',
  WEBHOOK_INDEX_FILTER: '{"never":false}',
  WEBHOOK_BLOCK_FILTER: "x",
  WEBHOOK_SECRET: "whsec_%%",
  HOST: "240.0.0.1",
  ADMIN_LISTEN: "240.0.0.1:0",
  DEVNET_MINING: "sometimes",
  TRUSTED_PROXIES: "a",
  RATE_LIMITER_IPS_AND_CIDRS_ALLOWLIST: "b",
  UPLOAD_ALLOWED_ADDRESSES: "c",
  UPLOAD_BLOCKED_ADDRESSES: "d",
  GRAPHQL_HOST: "http://a.test/path",
  NAMES_FILE: "absent.json",
  WALLET_FILE: "absent.json",
  CDB64_ROOT_TX_INDEX_SOURCES: "absent.json",
  RECEIPT_WALLET_FILE: "absent.json",
  TLS_CERT_FILE: "absent.pem",
  TLS_KEY_FILE: "absent.pem",
  PAYMENT_RULES_FILE: "absent.json",
  STRIPE_SECRET_KEY: "a key without STRIPE_WEBHOOK_SECRET",
  ADMIN_API_KEY_FILE: "absent.txt",
  ...Object.fromEntries(
    ["NATIVE", "ETHEREUM", "MATIC", "BASE", "SOLANA"].map((name) => [`PAYMENT_ADDRESS_${name}`, "e"]),
  ),
  PAYMENT_EXCLUDED_ADDRESSES: "f",
  X402_PAY_TO: "g",
};

/** Any text is right for these, or right until something is opened with it. */
const takeAnyText = new Set([
  "DATA_DIR",
  "EXPORT_ROOT",
  "ADMIN_API_KEY",
  "CLICKHOUSE_USER",
  "CLICKHOUSE_PASSWORD",
  "DEVNET_SEED",
  "KYVE_CHAIN_ID",
  "KYVE_DENOM",
]);

/** Validated only if another setting is valid, which is not the case here. They have their own tests. */
const validatedAfterOthers = new Set([
  "X402_NETWORK",
  "X402_ASSET_ADDRESS",
  "X402_ASSET_NAME",
  "X402_ASSET_VERSION",
  "X402_SETTLE_KEY",
  "X402_FACILITATOR_KEY",
  "X402_FACILITATOR_KEY_ID",
  "ETHEREUM_USDC_ADDRESS",
  "MATIC_USDC_ADDRESS",
  "BASE_USDC_ADDRESS",
  "SOLANA_USDC_MINT",
  "SOLANA_GENESIS_HASH",
  "STRIPE_WEBHOOK_SECRET",
  "OTEL_SERVICE_NAME",
]);

test.each(["", " \n"])(
  "a file of a secret that holds only %j is rejected: it does not unset the secret",
  async (text) => {
    const file = join(folder, "secret.txt");
    writeFileSync(file, text);
    const environment = { LEDGER_URL_FILE: file, WEBHOOK_SECRET_FILE: file };
    const { code, out, err } = await runCairn(["config"], { environment });
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain(`LEDGER_URL_FILE ${file}: empty`);
    expect(err).toContain(`WEBHOOK_SECRET_FILE ${file}: empty`);
  },
);

function rejects(name: SettingName, text: string): boolean {
  try {
    settings[name].read(text);
    return false;
  } catch {
    return true;
  }
}

test.each(["config", "dev", "serve"])(
  "cairn %s tells what is wrong in every setting at once",
  async (command) => {
    const names = Object.keys(settings) as SettingName[];
    const badTexts = names.flatMap((name) => {
      if (name in wrongBesideOthers || takeAnyText.has(name) || validatedAfterOthers.has(name)) return [];
      const bad = ["-1 x", "http://"].find((text) => rejects(name, text));
      return [[name, bad ?? `no wrong value of ${name} is known`]];
    });
    const DATA_DIR = join(folder, `unused-${command}`);
    const environment = { DATA_DIR, ...Object.fromEntries(badTexts), ...wrongBesideOthers };
    const { code, out, err } = await runCairn([command], { environment, cwd: folder });
    expect([code, out]).toEqual([2, ""]);
    const [first, ...complaints] = err.trim().split("\n  ");
    expect(first).toBe("Bad settings:");
    const isNamed = (name: string) => complaints.some((line) => new RegExp(`\\b${name}\\b`).test(line));
    expect(Object.keys(environment).filter((name) => name !== "DATA_DIR" && !isNamed(name))).toEqual([]);
    expect(new Set(complaints).size).toBe(complaints.length);
    expect(existsSync(DATA_DIR)).toBe(false);
  },
  60_000,
);

test.each([
  ["no address of this machine", "240.0.0.1", "cannot be used: this machine has no such address"],
  ["no name of any machine", "no-such-name.invalid", "cannot be used: this machine has no such address"],
  ["in brackets", "[::1]", undefined],
  ["with a port", "localhost:3000", undefined],
])(
  "a HOST that is %s is reported in one line",
  async (what, host, says) => {
    for (const command of ["dev", "serve"]) {
      const DATA_DIR = join(folder, `${command}-${Bun.hash(what)}`);
      const environment = {
        HOST: host,
        DATA_DIR,
        LOG_LEVEL: "error",
        TRUSTED_NODE_URL: "http://127.0.0.1:1",
      };
      const { code, out, err } = await runCairn([command, "--port", "0"], { environment });
      expect([command, code, out]).toEqual([command, 2, ""]);
      const lines = err.trim().split("\n");
      const wrong = `  invalid value '${host}' for HOST: expected an address without brackets and port`;
      expect(lines.at(-1)).toBe(says === undefined ? wrong : `  HOST ${host} ${says}`);
      expect(err).not.toContain("    at ");
    }
  },
  60_000,
);

// Elsewhere the whole of 127.0.0.0/8 is not there by itself.
test.skipIf(process.platform !== "linux")(
  "the development chain is followed at the address that it listens on",
  async () => {
    let stop = () => {};
    const { code, out } = await runCairn(["dev", "--ephemeral", "--port", "0", "--json"], {
      environment: { HOST: "127.0.0.2" },
      onStart: ({ kill }) => {
        stop = () => kill("SIGTERM");
      },
      onText: (text) => {
        if (text.startsWith('{"gateway"') && text.endsWith("\n")) stop();
      },
    });
    expect(code).toBe(0);
    expect(JSON.parse(out).node).toStartWith("http://127.0.0.2:");
  },
  120_000,
);

test.each([
  ["a file", "file", "EEXIST"],
  ["below a file", join("file", "data"), "ENOTDIR"],
])("a data folder that is %s is reported in one line", async (_what, path, says) => {
  writeFileSync(join(folder, "file"), "");
  const environment = { DATA_DIR: join(folder, path) };
  const { code, out, err } = await runCairn(["serve", "--port", "0"], { environment });
  expect([code, out]).toEqual([2, ""]);
  expect(err).toStartWith(`DATA_DIR ${environment.DATA_DIR} cannot be used: ${says}`);
  expect(err.trim().split("\n").length).toBe(1);
});

test.each([
  ["a database server that is not there", { LEDGER_URL: "postgres://u:secret-word@127.0.0.1:1/x" }, "PostgreSQL"],
  ["a database that cannot be opened", {}, "unable to open database file"],
])(
  "%s is reported in one line",
  async (what, more, says) => {
    const DATA_DIR = join(folder, Bun.hash(what).toString());
    if (says.startsWith("unable")) mkdirSync(join(DATA_DIR, "index.sqlite"), { recursive: true });
    const environment = { DATA_DIR, LOG_LEVEL: "error", TRUSTED_NODE_URL: "http://127.0.0.1:1", ...more };
    const { code, out, err } = await runCairn(["serve", "--port", "0"], { environment });
    expect([code, out]).toEqual([1, ""]);
    expect(err).toContain(says);
    expect(err).not.toContain("secret-word");
    expect(
      err
        .trim()
        .split("\n")
        .filter((line) => !line.startsWith("{")).length,
    ).toBe(1);
  },
  60_000,
);

const openings: [string, (path: string) => Promise<void>][] = [
  ["index.sqlite", async (path) => openIndexWriter(path, { clock: () => 0 }).close()],
  ["ledger.sqlite", async (path) => (await openSqliteLedger({ path })).close()],
];
test.each(openings)(
  "a data folder whose %s has the tables of an unreleased build is reported in one line, at once",
  async (name, make) => {
    const DATA_DIR = join(folder, `edited-${name}`);
    mkdirSync(DATA_DIR);
    const path = join(DATA_DIR, name);
    await make(path);
    const db = new Database(path);
    db.run(`UPDATE ${name === "ledger.sqlite" ? "ledger" : "schema"}_fingerprint SET fingerprint = 'other'`);
    db.close();
    const environment = { DATA_DIR, LOG_LEVEL: "error", TRUSTED_NODE_URL: "http://127.0.0.1:1" };
    const { code, out, err } = await runCairn(["serve", "--port", "0"], { environment });
    expect([code, out]).toEqual([1, ""]);
    const [line = "", ...others] = err.split("\n").filter((each) => each !== "" && !each.startsWith("{"));
    expect(line).toMatch(/^cannot open the (database|ledger) .*: an unreleased build of this program/);
    expect(line).toContain(path);
    expect(line).toContain("start again with an empty folder (DATA_DIR)");
    expect(others).toEqual([]);
  },
  60_000,
);

describe("a check of a folder that is not there", () => {
  test.each([
    ["doctor", ["doctor"]],
    ["doctor without nodes", ["doctor", "--offline", "--json"]],
    ["ledger check", ["ledger", "check"]],
    ["ledger check as JSON", ["ledger", "check", "--json"]],
  ])("by cairn %s is rejected in a sentence, and makes none", async (_what, words) => {
    writeFileSync(join(folder, "a file"), "");
    for (const name of ["not-there", join("not-there", "below"), "a file"]) {
      const DATA_DIR = join(folder, name);
      const { code, out, err } = await runCairn(words, { environment: { DATA_DIR } });
      expect([code, out]).toEqual([2, ""]);
      expect(err).toBe(`DATA_DIR ${DATA_DIR} is not an existing folder\n`);
    }
    expect(existsSync(join(folder, "not-there"))).toBe(false);
  });
});
