/**
 * `cairn ledger check` as an operator runs it: what it prints, and the exit code that a script reads.
 * @module
 */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { openSqliteLedger } from "../../src/store/ledger/sqlite-ledger.ts";
import { provider, transfer, user } from "../../src/store/ledger/transfers.ts";
import { repositoryRoot } from "../support/program.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cairn-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function ledger(...words: string[]) {
  const { PATH } = process.env;
  const { exitCode, stdout, stderr } = Bun.spawnSync(
    [process.execPath, resolve(repositoryRoot, "src/main.ts"), "ledger", ...words],
    { env: { PATH, DATA_DIR: folder }, cwd: folder },
  );
  return { exitCode, said: stdout.toString(), complained: stderr.toString() };
}

async function pay(): Promise<void> {
  const database = await openSqliteLedger({ path: join(folder, "ledger.sqlite") });
  const legs = [
    { account: provider("stripe"), amount: -5n },
    { account: user("Anna"), amount: 5n },
  ];
  await database.write((tx) => transfer(tx, { id: "1", kind: "payment", at: 1, legs }));
  await database.close();
}

describe("cairn ledger check", () => {
  test("reports a missing ledger and creates none", () => {
    const { exitCode, said } = ledger("check", "--json");
    expect(JSON.parse(said)).toEqual({
      ledger: "none yet",
      accounts: 0,
      transfers: 0,
      entries: 0,
      findings: [],
      unchecked: [],
    });
    expect([exitCode, ledger("check").exitCode]).toEqual([0, 0]);
  });

  test("exits with 0 for a consistent ledger, beside a program that uses the ledger", async () => {
    await pay();
    const beside = await openSqliteLedger({ path: join(folder, "ledger.sqlite") });
    expect(JSON.parse(ledger("check", "--json").said)).toEqual({
      ledger: join(folder, "ledger.sqlite"),
      accounts: 2,
      transfers: 1,
      entries: 2,
      findings: [],
      unchecked: [],
    });
    const { exitCode, said } = ledger("check");
    expect(exitCode).toBe(0);
    expect(said).toContain("2 accounts, 1 transfers, 2 entries");
    expect(said).toContain("no inconsistency");
    await beside.close();
  });

  test("exits with 1 and names the faulty row", async () => {
    await pay();
    const db = new Database(join(folder, "ledger.sqlite"));
    db.run("UPDATE accounts SET balance = 6 WHERE account = 'user:Anna'");
    db.close();
    const found = ledger("check", "--json");
    expect(found.exitCode).toBe(1);
    expect(JSON.parse(found.said).findings).toEqual([
      { rule: "an account's balance is the sum of its entries", subject: "user:Anna", found: "off by 1" },
    ]);
    const { exitCode, said } = ledger("check");
    expect(exitCode).toBe(1);
    expect(said).toContain("failed: an account's balance is the sum of its entries; user:Anna: off by 1");
  });

  test("exits with 1 for a file that is not a ledger", () => {
    writeFileSync(join(folder, "ledger.sqlite"), "x".repeat(10_000));
    const { exitCode, said } = ledger("check", "--json");
    expect(exitCode).toBe(1);
    expect(JSON.parse(said).findings).toMatchObject([{ rule: "the ledger's file is intact" }]);
  });

  test.each([
    [["mend"], "invalid value 'mend' for <action>: expected check or repair"],
    [["check", "--dry-run"], "--dry-run belongs to 'cairn ledger repair'"],
    [["repair"], "there is no ledger in"],
    [["check", "--gateway", "no url"], "invalid value 'no url' for --gateway: expected an http or https URL"],
    [[], "missing argument <action> for 'cairn ledger'"],
    [["check", "--loud"], "unknown option '--loud' for 'cairn ledger'"],
  ])("exits with 2 for %p", (words, complaint) => {
    const { exitCode, complained } = ledger(...words);
    expect([exitCode, complained]).toEqual([2, expect.stringContaining(complaint)]);
  });
});
