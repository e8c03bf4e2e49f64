/**
 * The statement of a month: it sums to the ledger, month after month, whatever moved.
 * @module
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { createOperatorAccounts } from "../../../src/payment/operator/operator-accounts.ts";
import { type Month, readMonth, readStatement, writeStatement } from "../../../src/payment/operator/statement.ts";
import { amountMax } from "../../../src/store/ledger/ledger-database.ts";
import { adjustment, promo, provider, revenue, transfer, user } from "../../../src/store/ledger/transfers.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { openTestPayment, type TestPayment, testAddress } from "../../support/payment.ts";

const [ada, bob] = [testAddress("ada"), testAddress("bob")];

function monthOf(name: string): Month {
  const month = readMonth(name);
  if (month === undefined) throw new Error(`${name} is not a month`);
  return month;
}

test.each(["2026-00", "2026-13", "2026-1", "26-01", "2026-11-01", "", "2026-11 "])("%p is not a month", (name) => {
  expect(readMonth(name)).toBeUndefined();
});

test("a month begins with its first millisecond in UTC, and ends before the next", () => {
  expect(monthOf("2026-12")).toEqual({
    name: "2026-12",
    from: Date.parse("2026-12-01T00:00:00Z"),
    to: Date.parse("2027-01-01T00:00:00Z"),
  });
});

for (const kind of ledgerKinds())
  describeWith(kind.need, `statements on ${kind.name}`, () => {
    let payment: TestPayment;

    beforeEach(async () => {
      payment = await openTestPayment({ kind });
    });
    afterEach(() => payment.close());

    const statementOf = (name: string) => payment.database.read((tx) => readStatement(tx, monthOf(name)));
    const at = (moment: string) => payment.clock.set(Date.parse(moment));

    test("has an opening and a closing balance and the sum of each kind, to the millisecond", async () => {
      const { credits, credit, database: ledger, clock, makeId } = payment;
      const accounts = createOperatorAccounts({ ledger, clock: clock.now, makeId });
      const order = { address: ada, operator: "olga", reason: "a reason" };
      at("2030-10-31T23:59:59.999Z");
      await credit(ada, 1_000n);
      at("2030-11-01T00:00:00.000Z");
      await credit(ada, 10n);
      await credit(bob, 20n);
      await accounts.move({ ...order, kind: "grant", winc: 7n, idempotencyKey: "1" });
      await accounts.move({ ...order, kind: "adjust", winc: -4n, idempotencyKey: "2" });
      const held = { itemId: "item", signer: ada, paidBy: [], directive: "list-or-signer", winc: 100n } as const;
      await credits.post((await credits.reserve({ ...held, expiresAt: clock.now() + 1_000 })).id);
      await credits.reserve({ ...held, itemId: "open", winc: 3n, expiresAt: clock.now() + 1_000 });
      at("2030-11-30T23:59:59.999Z");
      await payment.chargeBack(bob, 50n);
      at("2030-12-01T00:00:00.000Z");
      await credit(bob, 5_000n);

      const november = await statementOf("2030-11");
      expect(writeStatement(monthOf("2030-11"), november).split("\r\n")).toEqual([
        "month,account,line,entries,winc",
        "2030-11,adjustment,opening,,0",
        "2030-11,adjustment,adjustment,1,4",
        "2030-11,adjustment,closing,,4",
        "2030-11,promo,opening,,0",
        "2030-11,promo,promotion,1,-7",
        "2030-11,promo,closing,,-7",
        "2030-11,provider:stripe,opening,,-1000",
        "2030-11,provider:stripe,payment,2,-30",
        "2030-11,provider:stripe,chargeback,1,50",
        "2030-11,provider:stripe,closing,,-980",
        "2030-11,reservations,opening,,0",
        "2030-11,reservations,reservation,2,103",
        "2030-11,reservations,reservation_posted,1,-100",
        "2030-11,reservations,closing,,3",
        "2030-11,revenue,opening,,0",
        "2030-11,revenue,reservation_posted,1,100",
        "2030-11,revenue,closing,,100",
        "2030-11,users,opening,,1000",
        "2030-11,users,payment,2,30",
        "2030-11,users,promotion,1,7",
        "2030-11,users,reservation,2,-103",
        "2030-11,users,chargeback,1,-50",
        "2030-11,users,adjustment,1,-4",
        "2030-11,users,closing,,880",
        "2030-11,all,closing,,0",
        "",
      ]);
      const december = await statementOf("2030-12");
      expect(december.map(({ account, opening }) => [account, opening])).toEqual(
        november.map(({ account, closing }) => [account, closing]),
      );
      // The last month closes with the balances of the ledger.
      const closing = new Map(december.map((each) => [each.account, each.closing]));
      for (const account of [adjustment, promo, provider("stripe"), revenue])
        expect(closing.get(account)).toBe(await payment.held(account));
      expect(closing.get("users")).toBe((await payment.held(user(ada))) + (await payment.held(user(bob))));
      expect((await statementOf("2030-09")).every((each) => each.closing === 0n && each.lines.length === 0)).toBe(true);
    });

    test("sums beyond 64 bits, over the continuations of an account", async () => {
      const most = amountMax - 1n;
      const addresses = ["a", "b", "c", "d", "e", "f"].map(testAddress);
      for (const address of addresses) {
        await payment.credit(address, most);
        await payment.database.write((tx) =>
          transfer(tx, {
            ...{ id: payment.makeId(), kind: "upload", at: payment.clock.now() },
            legs: [
              { account: user(address), amount: -most },
              { account: revenue, amount: most },
            ],
          }),
        );
      }
      const statement = await statementOf("2027-01");
      const total = 6n * most;
      expect(statement.map(({ account, closing }) => [account, closing])).toEqual([
        ["provider:stripe", -total],
        ["revenue", total],
        ["users", 0n],
      ]);
      expect(statement[1]?.lines).toEqual([{ kind: "upload", entries: 6, winc: total }]);
    });
  });
