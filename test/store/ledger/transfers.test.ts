/**
 * Movements of credits: balanced, bounded, never below zero but for debts.
 * @module
 */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { provider, revenue, user } from "../../../src/store/ledger/accounts.ts";
import { claimEvent } from "../../../src/store/ledger/events.ts";
import { openSqliteLedger } from "../../../src/store/ledger/sqlite.ts";
import { balanceOf, historyOf, transfer } from "../../../src/store/ledger/transfers.ts";

test("a payment is credited once, and spent no further than it reaches", async () => {
  const folder = mkdtempSync(join(tmpdir(), "cairn-ledger-"));
  const ledger = await openSqliteLedger({ path: join(folder, "ledger.sqlite") });
  const credit = (id: string) =>
    ledger.write(async (tx) => {
      if (!(await claimEvent(tx, "stripe", "evt_1", 1))) return false;
      await transfer(tx, {
        id,
        kind: "payment",
        at: 1,
        legs: [
          { account: provider("stripe"), amount: -5n },
          { account: user("a"), amount: 5n },
        ],
      });
      return true;
    });
  expect(await Promise.all([credit("1"), credit("2"), credit("3")])).toEqual([true, false, false]);
  const spend = ledger.write((tx) =>
    transfer(tx, {
      id: "4",
      kind: "reservation",
      at: 1,
      legs: [
        { account: revenue, amount: 6n },
        { account: user("a"), amount: -6n },
      ],
    }),
  );
  await expect(spend).rejects.toMatchObject({
    code: "insufficient_balance",
    facts: { needed: 6n, available: 5n },
  });
  expect(await ledger.read((tx) => balanceOf(tx, user("a")))).toBe(5n);
  expect(await ledger.read((tx) => historyOf(tx, user("a"), { limit: 5 }))).toHaveLength(1);
  await ledger.close();
  rmSync(folder, { recursive: true });
});
