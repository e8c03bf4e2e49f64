/**
 * Credits to begin with: each account gets them once, however often, by whomever and how many at once they are given.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { giveStartingCredits } from "../../../src/payment/credits/credits.ts";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { promo, user } from "../../../src/store/ledger/transfers.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { openTestPayment, testAddress } from "../../support/payment.ts";

const [ada, bob] = [testAddress("ada"), testAddress("bob")];

for (const kind of ledgerKinds())
  describeWith(kind.need, `starting credits on ${kind.name}`, () => {
    describe("are given", () => {
      test("once to each account, also after they are spent, and to later accounts", async () => {
        const payment = await openTestPayment({ kind });
        const parts = { ledger: payment.database, clock: payment.clock.now, makeId: payment.makeId };
        expect(await giveStartingCredits(parts, [ada], 100n)).toEqual([ada]);
        await payment.chargeBack(ada, 100n);
        payment.clock.advance(1_000);
        expect(await giveStartingCredits(parts, [ada, bob], 100n)).toEqual([bob]);
        expect(await giveStartingCredits(parts, [ada, bob], 100n)).toEqual([]);
        expect([await payment.held(user(ada)), await payment.held(user(bob))]).toEqual([0n, 100n]);
        expect(await payment.held(promo)).toBe(-200n);
        expect(await checkLedger(payment.database)).toEqual([]);
        await payment.close();
      });

      test("once for twenty concurrent calls over two connections", async () => {
        const payment = await openTestPayment({ kind });
        const second = await payment.ledger.openAgain();
        const { clock, makeId } = payment;
        const given = await Promise.all(
          Array.from({ length: 20 }, (_, index) => {
            const ledger = index % 2 === 0 ? payment.database : second;
            return giveStartingCredits({ ledger, clock: clock.now, makeId }, [ada, bob], 7n);
          }),
        );
        expect(given.flat().sort()).toEqual([ada, bob].sort());
        expect([await payment.held(user(ada)), await payment.held(user(bob))]).toEqual([7n, 7n]);
        await second.close();
        await payment.close();
      });
    });
  });
