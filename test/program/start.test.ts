/**
 * What an operator is told when the program cannot start: one line, which setting, and why; never a stack.
 * @module
 */
import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openIndexWriter } from "../../src/store/index/writer.ts";
import { openSqliteLedger } from "../../src/store/ledger/sqlite.ts";
import { runCairn } from "../cli/command.ts";
import { freePorts } from "../support/program.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-start-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("a port that another program has", () => {
  test.each(["GATEWAY_PORT", "PAYMENT_PORT", "UPLOAD_PORT", "DEVNET_PORT", "SANDBOX_PORT"])(
    "%s is not shared with it",
    async (name) => {
      const ports = await freePorts();
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

test.each(["config", "dev", "serve"])(
  "cairn %s tells everything that is wrong with the settings at once",
  async (command) => {
    const absent = join(folder, "absent.json");
    const environment = {
      DATA_DIR: join(folder, `unused-${command}`),
      ANS104_INDEX_FILTER: '{"a":1}',
      WEBHOOK_BLOCK_FILTER: "x",
      TRUSTED_PROXIES: "a",
      RATE_LIMITER_IPS_AND_CIDRS_ALLOWLIST: "b",
      UPLOAD_ALLOWED_ADDRESSES: "c",
      UPLOAD_BLOCKED_ADDRESSES: "d",
      GRAPHQL_HOST: "http://a.test/path",
      NAMES_FILE: absent,
      WALLET_FILE: absent,
      RECEIPT_WALLET_FILE: absent,
      TLS_CERT_FILE: absent,
      TLS_KEY_FILE: absent,
      PAYMENT_RULES_FILE: absent,
      STRIPE_SECRET_KEY: "key",
      PAYMENT_ADDRESS_BASE: "e",
      X402_PAY_TO: "f",
    };
    const { code, out, err } = await runCairn([command], { environment });
    expect([code, out]).toEqual([2, ""]);
    const [first, ...complaints] = err.trim().split("\n  ");
    expect(first).toBe("Bad settings:");
    const named = complaints.map((line) => /^[A-Z0-9_]+/.exec(line)?.[0] ?? line);
    expect(new Set(named)).toEqual(
      new Set([
        ...Object.keys(environment).filter(
          (name) => !["DATA_DIR", "TLS_KEY_FILE", "STRIPE_SECRET_KEY"].includes(name),
        ),
        "STRIPE_WEBHOOK_SECRET",
      ]),
    );
    expect(existsSync(environment.DATA_DIR)).toBe(false);
  },
  60_000,
);

test.each([
  ["no address of this machine", "240.0.0.1", "cannot be used: this machine has no such address"],
  ["no name of any machine", "no-such-name.invalid", "cannot be used: this machine has no such address"],
  ["in brackets", "[::1]", 'must be an address, without brackets and port, got "[::1]"'],
  ["with a port", "localhost:3000", 'must be an address, without brackets and port, got "localhost:3000"'],
])(
  "a HOST that is %s is told in a line",
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
      expect(lines.at(-1)).toBe(says.startsWith("must") ? `  HOST ${says}` : `HOST ${host} ${says}`);
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
])("a data folder that is %s is told in a line", async (_what, path, says) => {
  writeFileSync(join(folder, "file"), "");
  const environment = { DATA_DIR: join(folder, path) };
  const { code, out, err } = await runCairn(["serve", "--port", "0"], { environment });
  expect([code, out]).toEqual([2, ""]);
  expect(err).toStartWith(`DATA_DIR ${environment.DATA_DIR} cannot be used: ${says}`);
  expect(err.trim().split("\n").length).toBe(1);
});

test.each([
  [
    "a database server that is not there",
    { LEDGER_URL: "postgres://u:secret-word@127.0.0.1:1/x" },
    "PostgreSQL",
  ],
  ["a database that cannot be opened", {}, "unable to open database file"],
])(
  "%s is told in a line",
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
  "a data folder whose %s an unreleased build made with other tables is told in a line, at once",
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
    expect(line).toMatch(
      /^cannot open the (database|ledger) .*: a build of this program that was not released/,
    );
    expect(line).toContain(path);
    expect(line).toContain("begin anew with an empty folder (DATA_DIR)");
    expect(others).toEqual([]);
  },
  60_000,
);
