/**
 * Reports of the ledger in their thread: the same as in this one, for a ledger that is in use.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Failure } from "../../../src/failures.ts";
import { createLedgerReports } from "../../../src/payment/operator/ledger-reports.ts";
import { settledMs, verifySolvency } from "../../../src/payment/operator/solvency.ts";
import { insertRoot, markPublished } from "../../../src/payment/operator/solvency-roots.ts";
import { readMonth, readStatement, writeStatement } from "../../../src/payment/operator/statement.ts";
import { openPool, type Pool, type Workers } from "../../../src/threads/pool.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { openTestPayment, testAddress } from "../../support/payment.ts";
import { rsaKeys } from "../../support/rsa-keys.ts";

const [ada, bob] = [testAddress("ada"), testAddress("bob")];
const signal = new AbortController().signal;
const secret = () => new Uint8Array(32).fill(3);
const folder = mkdtempSync(join(tmpdir(), "cairn-reports-"));
const keyFile = join(folder, "wallet.json");
let thread: Pool<Workers["ledger-reports"]>;

beforeAll(() => {
  writeFileSync(keyFile, JSON.stringify(rsaKeys["4096"]));
  thread = openPool({ entry: "ledger-reports", threads: 1, queueMax: 8, timeoutMs: 60_000, idleMs: 60_000 });
});
afterAll(async () => {
  await thread.close();
  rmSync(folder, { recursive: true });
});

/** Not `expect().rejects`: it waits in a loop of its own, in which no message of a thread arrives. */
async function failureOf(work: Promise<unknown>): Promise<unknown> {
  try {
    return await work;
  } catch (error) {
    return error instanceof Failure ? error.code : error;
  }
}

for (const kind of ledgerKinds())
  describeWith(kind.need, `reports of the ledger on ${kind.name}`, () => {
    test("sign a root, prove every account in the newest published one, and write the statement", async () => {
      const payment = await openTestPayment({ kind });
      const { place } = payment.ledger;
      const ledger = kind.name === "postgres" ? { url: place, path: "" } : { url: undefined, path: place };
      const reports = createLedgerReports({ thread, ledger, secret, clock: payment.clock.now });
      await payment.credit(ada, 100n);
      await payment.credit(bob, 7n);
      expect(await reports.currentRoot(signal)).toMatchObject({ accounts: 0, winc: "0" });
      payment.clock.advance(settledMs + 1);
      const at = payment.clock.now() - settledMs;
      expect(await reports.currentRoot(signal)).toMatchObject({ version: 1, at, accounts: 2, winc: "107" });

      expect(await failureOf(reports.prove(ada, signal))).toBe("not_found");
      const root = await reports.signRoot(at, keyFile, signal);
      await payment.database.write((tx) => insertRoot(tx, { at, ...root, signedAt: at }));
      expect(await failureOf(reports.prove(ada, signal))).toBe("not_found");
      await payment.database.write((tx) => markPublished(tx, at, at));
      // Later movements are not in the root, and do not change its proofs.
      await payment.credit(ada, 1n);
      for (const [account, winc] of [[ada, 100n] as const, [bob, 7n] as const])
        expect(verifySolvency(await reports.prove(account, signal))).toMatchObject({
          fault: undefined,
          root: { id: root.id, at, accounts: 2 },
          included: { account: `user:${account}`, winc },
        });
      expect(await failureOf(reports.prove(testAddress("eve"), signal))).toBe("user_not_found");

      const next = await reports.signRoot(payment.clock.now(), keyFile, signal);
      await payment.database.write(async (tx) => {
        await insertRoot(tx, { at: at + settledMs, ...next, signedAt: at });
        await markPublished(tx, at + settledMs, at);
      });
      expect(verifySolvency(await reports.prove(ada, signal))).toMatchObject({ root: { id: next.id } });

      const month = readMonth(new Date(at).toISOString().slice(0, 7));
      if (month === undefined) throw new Error("the test has a month");
      const expected = writeStatement(month, await payment.database.read((tx) => readStatement(tx, month)));
      expect(await reports.statement(month, signal)).toBe(expected);
      expect(expected).toContain(",users,payment,3,108\r\n");
      await payment.close();
    }, 60_000);
  });
