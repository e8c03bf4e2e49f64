/**
 * The checker finds nothing wrong with sound uploads, and each of its rules about them finds what breaks it.
 * @module
 */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { checkLedger, uploadChecks } from "../../../src/store/ledger/ledger-check.ts";
import { createPlanner } from "../../../src/upload/pipeline/plan-bundles.ts";
import { paidIn, testAddress } from "../../support/payment.ts";
import { type BundleFixture, openBundleFixture, quickRules, storeName } from "./bundle-fixture.ts";

const ada = testAddress("ada");

/** How a rule is broken. */
const faults: readonly (readonly [rule: string, sql: string])[] = [
  ["a signing belongs to one upload", "UPDATE uploads SET signing_id = 'one'"],
  ["a duplicate upload is not charged", "UPDATE uploads SET double_of = 'another' WHERE winc > 0"],
  ["a charged item has its own posted reservation", "UPDATE uploads SET reservation_id = NULL WHERE winc > 0"],
  ["a charged item has its own posted reservation", "UPDATE uploads SET winc = winc + 1 WHERE winc > 0"],
  [
    "the payment for a failed item is refunded",
    "UPDATE uploads SET failed_reason = 'lost', bundle_id = NULL, position = NULL, behind = NULL WHERE winc > 0",
  ],
  ["an item's bundle is in the item's store and is not dropped", "DELETE FROM bundles"],
  ["an item's bundle is in the item's store and is not dropped", "UPDATE bundles SET store = 'another'"],
  [
    "a bundle with a signed transaction has all of its items",
    "UPDATE bundles SET state = 'seeded', item_count = item_count + 1",
  ],
  [
    "an item directly follows the items before it in its bundle",
    "UPDATE uploads SET behind = behind + 1 WHERE position = 1",
  ],
];

describe("the checker", () => {
  let fixture: BundleFixture;
  beforeEach(async () => {
    fixture = await openBundleFixture();
    const { database, makeId, clock } = fixture;
    const fixed = { now: clock, set: nothing, advance: nothing };
    await paidIn({ database, clock: fixed, makeId }, "payment", ada, 100n);
    const [first, ...others] = fixture.sign([10, 20, 30]);
    if (first !== undefined) await fixture.take([first], { payment: { signer: ada, winc: 7n } });
    await fixture.take(others);
    const rules = { ...quickRules.plan, waitMs: 60_000 };
    await createPlanner({ ledger: database, storeName, rules, makeId, clock }).look();
  });
  afterEach(() => fixture.close());

  test("finds nothing in sound uploads", async () => {
    expect(await checkLedger(fixture.database)).toEqual([]);
  });

  test.each(faults)("finds that it is not so that %s: %s", async (rule, sql) => {
    // The checker reads a file that a foreign program may have written: limits of the tables are left aside.
    const db = new Database(fixture.ledger.place);
    db.run("PRAGMA ignore_check_constraints = ON");
    db.run(sql);
    db.close();
    expect((await checkLedger(fixture.database)).map((finding) => finding.rule)).toContain(rule);
  });

  test("has been seen to fail in each of its rules about uploads", () => {
    const shown = new Set(faults.map(([rule]) => rule));
    expect(uploadChecks.map(({ rule }) => rule).filter((rule) => !shown.has(rule))).toEqual([]);
  });
});

function nothing(): void {
  // No test moves this clock.
}
