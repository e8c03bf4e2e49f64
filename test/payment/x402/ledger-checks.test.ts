/**
 * The checker finds nothing in a ledger with x402 payments in every state, and each of its rules finds what breaks it.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { checkLedger, type Finding, x402PaymentChecks } from "../../../src/store/ledger/ledger-check.ts";
import type { Work } from "../../../src/store/ledger/ledger-database.ts";
import { bytesCost, funded, openX402Fixture, type X402Fixture } from "./x402-fixture.ts";

/** How each rule is broken; each is undone again. */
const faults: readonly Readonly<{ rule: string; sql: readonly string[]; states: string }>[] = [
  {
    rule: "a settled x402 payment has added its winc to its payer, and any other payment nothing",
    sql: ["UPDATE x402_payments SET winc = winc + 1 WHERE state = 'settled'"],
    states: "settled",
  },
  {
    rule: "an x402 payment is credited once if it was ever settled, and reversed once if it was reversed",
    sql: ["UPDATE transfers SET kind = 'adjustment' WHERE kind = 'x402_payment'"],
    states: "reversed, settled",
  },
  {
    rule: "an x402 payment is credited once if it was ever settled, and reversed once if it was reversed",
    sql: ["UPDATE transfers SET kind = 'adjustment' WHERE kind = 'reversal'"],
    states: "reversed",
  },
  {
    rule: "an x402 payment has claimed its event exactly when it was ever settled",
    sql: ["DELETE FROM events WHERE source = 'x402'"],
    states: "reversed, settled",
  },
  {
    rule: "an x402 payment has claimed its event exactly when it was ever settled",
    sql: ["INSERT INTO events (source, event_id, at) SELECT 'x402', id, 0 FROM x402_payments WHERE state = 'rejected'"],
    states: "rejected",
  },
  {
    rule: "an x402 transfer and an x402 event belong to an x402 payment",
    sql: ["UPDATE transfers SET change_id = 'none' WHERE kind = 'x402_payment'"],
    states: "",
  },
  {
    rule: "an x402 transfer and an x402 event belong to an x402 payment",
    sql: ["INSERT INTO events (source, event_id, at) VALUES ('x402', 'none', 0)"],
    states: "",
  },
  {
    rule: "a settled x402 payment has its transaction, block and balance; an ended payment has a reason",
    sql: ["UPDATE x402_payments SET transaction_hash = NULL WHERE state = 'settled'"],
    states: "settled",
  },
  {
    rule: "a settled x402 payment has its transaction, block and balance; an ended payment has a reason",
    sql: ["UPDATE x402_payments SET reason = NULL WHERE state = 'rejected'"],
    states: "rejected",
  },
  {
    rule: "a settled x402 payment has its transaction, block and balance; an ended payment has a reason",
    sql: ["UPDATE x402_payments SET due_at = NULL WHERE state = 'settling'"],
    states: "settling",
  },
  {
    rule: "a settled x402 payment has its transaction, block and balance; an ended payment has a reason",
    sql: ["UPDATE x402_payments SET state = 'lost' WHERE state = 'settling'"],
    states: "lost",
  },
  {
    rule: "an x402 payment is named by its authorization",
    sql: ["UPDATE x402_payments SET nonce = '0x' WHERE state = 'settled'"],
    states: "settled",
  },
];

let fixture: X402Fixture;

beforeAll(async () => {
  fixture = await openX402Fixture();
  const reversed = fixture.authorize(funded(fixture, 1), bytesCost);
  expect((await fixture.pay(reversed, funded(fixture, 1))).status).toBe(200);
  fixture.node.takeBack(1, true);
  fixture.facilitator.behave("says 401");
  await fixture.pass(900);
  fixture.facilitator.behave("settles");
  const settled = funded(fixture, 2);
  expect((await fixture.pay(fixture.authorize(settled, bytesCost), settled)).status).toBe(200);
  fixture.facilitator.behave("rejects");
  const rejected = funded(fixture, 3);
  expect((await fixture.pay(fixture.authorize(rejected, bytesCost), rejected)).status).toBe(402);
  fixture.facilitator.behave("says 401");
  const settling = funded(fixture, 4);
  expect((await fixture.pay(fixture.authorize(settling, bytesCost), settling)).status).toBe(503);
});

afterAll(() => fixture.close());

test("nothing is found in a sound ledger", async () => {
  const states = await fixture.payment.database.read((tx) =>
    tx.all<{ state: string }>("SELECT state FROM x402_payments ORDER BY state"),
  );
  expect(states.map(({ state }) => state)).toEqual(["rejected", "reversed", "settled", "settling"]);
  expect(await checkLedger(fixture.payment.database)).toEqual([]);
});

test.each(faults)("$sql breaks it: $rule", async ({ rule, sql, states }) => {
  const undone = new Error("undone: the next fault begins with a sound ledger again");
  let found: readonly Finding[] = [];
  let seen: readonly string[] = [];
  const broken = fixture.payment.database.write(async (tx) => {
    for (const statement of sql) await tx.run(statement);
    const within = { ...fixture.payment.database, read: <Result>(work: Work<Result>) => work(tx) };
    found = (await checkLedger(within, x402PaymentChecks)).filter((each) => each.rule === rule);
    const rows = await tx.all<{ id: string; state: string }>("SELECT id, state FROM x402_payments");
    seen = rows.filter(({ id }) => found.some(({ subject }) => subject === id)).map(({ state }) => state);
    throw undone;
  });
  await expect(broken).rejects.toBe(undone);
  expect(found).not.toEqual([]);
  expect([...new Set(seen)].sort().join(", ")).toBe(states);
});

test("every rule about x402 payments has been seen to fail", () => {
  const shown = new Set(faults.map(({ rule }) => rule));
  expect(x402PaymentChecks.map(({ rule }) => rule).filter((rule) => !shown.has(rule))).toEqual([]);
});
