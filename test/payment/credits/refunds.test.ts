/**
 * Refunds: what was paid for an item that failed goes back to its payers once, and the item may be paid for again.
 * @module
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { payAtOnce, refundReservation } from "../../../src/payment/credits/reservations.ts";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { revenue, user } from "../../../src/store/ledger/transfers.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { openTestPayment, type TestPayment, testAddress } from "../../support/payment.ts";

const anna = testAddress("Anna");
const bela = testAddress("Bela");

for (const kind of ledgerKinds())
  describeWith(kind.need, `a refund on ${kind.name}`, () => {
    let payment: TestPayment;

    const reserve = (winc: bigint) =>
      payment.credits.reserve({
        itemId: "item",
        signer: bela,
        paidBy: [anna],
        directive: "list-or-signer",
        winc,
        expiresAt: payment.clock.now() + 1_000,
      });
    const refund = (id: string) =>
      payment.database.write((tx) => refundReservation(tx, id, { now: payment.clock.now(), makeId: payment.makeId }));
    const balances = async () => [
      await payment.held(user(anna)),
      await payment.held(user(bela)),
      await payment.held(revenue),
    ];

    beforeEach(async () => {
      payment = await openTestPayment({ kind });
      await payment.credit(anna, 100n);
      await payment.credit(bela, 10n);
      await payment.credits.approve({ approvalId: "approval", payer: anna, approved: bela, winc: 7n });
    });
    afterEach(() => payment.close());

    test("returns each payer's part once, also for concurrent calls", async () => {
      const { id } = await reserve(12n);
      await payment.credits.post(id);
      expect(await balances()).toEqual([93n, 5n, 12n]);
      await Promise.all([refund(id), refund(id), refund(id)]);
      await refund(id);
      expect(await balances()).toEqual([100n, 10n, 0n]);
      expect(await payment.credits.reservation("item")).toMatchObject({ state: "refunded" });
      expect(await checkLedger(payment.database)).toEqual([]);
    });

    test("returns an immediate payment as well", async () => {
      const step = { now: payment.clock.now(), makeId: payment.makeId };
      const asked = { itemId: "item", signer: bela, paidBy: [anna], directive: "list-or-signer" } as const;
      const { id } = await payment.database.write((tx) => payAtOnce(tx, { ...asked, winc: 12n }, step));
      expect(await balances()).toEqual([93n, 5n, 12n]);
      await Promise.all([refund(id), refund(id)]);
      expect(await balances()).toEqual([100n, 10n, 0n]);
      expect(await checkLedger(payment.database)).toEqual([]);
    });

    test("allows another reservation of the item, which can be refunded again", async () => {
      const first = await reserve(7n);
      await payment.credits.post(first.id);
      await refund(first.id);
      const second = await reserve(9n);
      expect(second).toMatchObject({ id: "item.2", state: "pending", winc: 9n });
      await payment.credits.post(second.id);
      expect(await balances()).toEqual([100n, 1n, 9n]);
      await refund(first.id);
      expect(await balances()).toEqual([100n, 1n, 9n]);
      await refund(second.id);
      expect(await balances()).toEqual([100n, 10n, 0n]);
      expect(await checkLedger(payment.database)).toEqual([]);
    });

    test("returns nothing for a held or voided reservation", async () => {
      const { id } = await reserve(12n);
      await refund(id);
      expect(await payment.credits.reservation("item")).toMatchObject({ state: "pending" });
      await payment.credits.void(id);
      await refund(id);
      expect(await payment.credits.reservation("item")).toMatchObject({ state: "voided" });
      expect(await balances()).toEqual([93n, 10n, 0n]);
      expect(await checkLedger(payment.database)).toEqual([]);
    });
  });
