/**
 * Refunds by an operator: the provider returns the money once, its report takes the credits back in one transfer, and
 * spent credits become a debt that the response states.
 * @module
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { Failure } from "../../../src/failures.ts";
import { isJsonObject } from "../../../src/lib/json.ts";
import { silentLog } from "../../../src/lib/log.ts";
import type { CardProvider } from "../../../src/payment/cards/card-provider.ts";
import { createCardWatch } from "../../../src/payment/cards/card-watch.ts";
import { createOperatorAccounts } from "../../../src/payment/operator/operator-accounts.ts";
import {
  findOperatorPayment,
  listPayments,
  type PaymentPosition,
  refundEffect,
} from "../../../src/payment/operator/operator-payments.ts";
import { refundPayment } from "../../../src/payment/operator/operator-refunds.ts";
import { gift, historyOf, provider, user } from "../../../src/store/ledger/transfers.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { testAddress } from "../../support/payment.ts";
import { type CardFixture, openCardFixture, sandboxKey, type TopUpResponse } from "../cards/card-fixture.ts";

const alice = testAddress("Alice");
const signal = new AbortController().signal;
const order = { operator: "olga", reason: "asked by mail", idempotencyKey: "key" };
const unreachable = () => Promise.reject(new Failure("payment_session_failed", { fault: "connect" }));

for (const kind of ledgerKinds())
  describeWith(kind.need, `refunds by an operator on ${kind.name}`, () => {
    let fixture: CardFixture;

    beforeEach(async () => {
      fixture = await openCardFixture({ kind });
    });
    afterEach(async () => {
      await fixture.settle();
      const findings = await fixture.findings();
      await fixture.close();
      expect(findings).toEqual([]);
    });

    const pay = async (path = `/v1/top-up/payment-intent/${alice}/usd/1000`): Promise<TopUpResponse> => {
      const top = await fixture.topUp(path);
      const response = await fetch(`${fixture.sandboxUrl}/v1/payment_intents/${top.paymentSession.id}/confirm`, {
        method: "POST",
        headers: { authorization: `Bearer ${sandboxKey}` },
        body: new URLSearchParams({ payment_method: "pm_card_visa" }),
      });
      await response.body?.cancel();
      await fixture.settle();
      return top;
    };
    const idOf = (top: TopUpResponse) => String(top.topUpQuote["topUpQuoteId"]);
    const partsOf = (changed: Partial<CardProvider> = {}) => ({
      ledger: fixture.payment.database,
      provider: { ...fixture.provider, ...changed },
      events: fixture.events,
      clock: fixture.payment.clock.now,
    });
    const refund = (id: string, more: object = {}, changed: Partial<CardProvider> = {}) =>
      refundPayment(partsOf(changed), { id, ...order, ...more }, signal);
    const refundedAtProvider = (top: TopUpResponse) => {
      const charge = String(fixture.sandbox.fetch("payment_intent", top.paymentSession.id)["latest_charge"]);
      return fixture.sandbox.fetch("charge", charge)["amount_refunded"];
    };
    const newestRefund = (): string => {
      const query = { from: 0, to: undefined, types: ["refund.created"], limit: 1, after: undefined };
      const [event] = fixture.sandbox.events(query).events;
      const data = event?.["data"];
      const object = isJsonObject(data) ? data["object"] : undefined;
      return isJsonObject(object) ? String(object["id"]) : "";
    };
    const spend = (winc: bigint) => {
      const { database: ledger, clock, makeId } = fixture.payment;
      return createOperatorAccounts({ ledger, clock: clock.now, makeId }).move({
        ...{ kind: "adjust", address: alice, winc: -winc, operator: "o", reason: "spent", idempotencyKey: "spent" },
      });
    };

    test("takes back what it credited, before and after the provider's own report", async () => {
      const top = await pay();
      const winc = await fixture.balance(alice);
      const id = idOf(top);
      const { database } = fixture.payment;
      expect(await database.read((tx) => refundEffect(tx, id))).toEqual({ amount: 1_000n, winc, spentWinc: 0n });
      const done = await refund(id);
      expect(done).toMatchObject({ id, account: alice, winc: `${winc}`, spentWinc: "0", balance: "0", ...order });
      expect(done["effect"]).toBe(`${winc} winc were taken back in all; none of them were spent`);
      expect(refundedAtProvider(top)).toBe(1000);
      await fixture.settle();
      expect([await fixture.balance(alice), await fixture.payment.held(provider("stripe"))]).toEqual([0n, 0n]);
      const [last] = await database.read((tx) => historyOf(tx, user(alice), { limit: 1 }));
      expect(last).toMatchObject({ kind: "reversal", note: "olga: asked by mail (operator/key)", changeId: id });
      expect(await database.read((tx) => findOperatorPayment(tx, id))).toMatchObject({ withheldWinc: winc });
      expect(await database.read((tx) => refundEffect(tx, id))).toBeUndefined();
    });

    test("takes spent credits back too, as a debt that the response states", async () => {
      const top = await pay();
      const winc = await fixture.balance(alice);
      await spend(winc - 5n);
      const { database } = fixture.payment;
      expect(await database.read((tx) => refundEffect(tx, idOf(top)))).toEqual({
        ...{ amount: 1_000n, winc, spentWinc: winc - 5n },
      });
      const done = await refund(idOf(top));
      expect(done).toMatchObject({ winc: `${winc}`, spentWinc: `${winc - 5n}`, balance: `${5n - winc}` });
      expect(done["effect"]).toContain(`${winc - 5n} of them were spent: the account owes them`);
      await pay();
      expect(await fixture.balance(alice)).toBe(5n);
    });

    test("after a refund of a part at the provider, pays back the rest, and says so before", async () => {
      const top = await pay();
      const winc = await fixture.balance(alice);
      fixture.sandbox.createRefund({ payment_intent: top.paymentSession.id, amount: "250" });
      await fixture.settle();
      const rest = winc - winc / 4n;
      expect(await fixture.balance(alice)).toBe(rest);
      const { database } = fixture.payment;
      expect(await database.read((tx) => refundEffect(tx, idOf(top)))).toEqual({
        ...{ amount: 750n, winc: rest, spentWinc: 0n },
      });
      await spend(rest - 1n);
      const done = await refund(idOf(top));
      expect(done).toMatchObject({
        amount: "1000",
        paid: "10.00 USD",
        winc: `${winc}`,
        spentWinc: `${rest - 1n}`,
        balance: `${1n - rest}`,
      });
      await fixture.settle();
      expect([await fixture.balance(alice), refundedAtProvider(top)]).toEqual([1n - rest, 1000]);
    });

    test("of an unredeemed gift takes it back from the gift", async () => {
      const top = await pay(`/v1/top-up/payment-intent/gift/usd/1000?destinationAddressType=gift`);
      const done = await refund(idOf(top));
      expect(done).toMatchObject({ account: null, spentWinc: "0", balance: "0" });
      expect(await fixture.payment.held(gift(top.giftId ?? ""))).toBe(0n);
    });

    test("the same key returns the same response, and another request with it is a conflict", async () => {
      const [one, two] = [await pay(), await pay()];
      const first = await refund(idOf(one));
      const balance = await fixture.balance(alice);
      await fixture.settle();
      fixture.payment.clock.advance(5_000);
      expect(await refund(idOf(one))).toEqual(first);
      await expect(refund(idOf(two))).rejects.toMatchObject({ code: "idempotency_conflict" });
      await expect(refund(idOf(one), { reason: "other" })).rejects.toMatchObject({ code: "idempotency_conflict" });
      await expect(refund(idOf(one), { idempotencyKey: "new" })).rejects.toMatchObject({ code: "payment_rejected" });
      expect([await fixture.balance(alice), refundedAtProvider(two)]).toEqual([balance, 0]);
    });

    test("ten concurrent requests refund once", async () => {
      const top = await pay();
      const done = await Promise.all(Array.from({ length: 10 }, () => refund(idOf(top))));
      expect(new Set(done.map((each) => JSON.stringify(each))).size).toBe(1);
      expect([await fixture.balance(alice), refundedAtProvider(top)]).toEqual([0n, 1000]);
    });

    test("an unreachable provider changes nothing, and the watch carries the refund out later", async () => {
      const top = await pay();
      const winc = await fixture.balance(alice);
      await expect(refund(idOf(top), {}, { refund: unreachable })).rejects.toMatchObject({
        code: "payment_session_failed",
      });
      await fixture.settle();
      expect(await fixture.balance(alice)).toBe(winc);
      await createCardWatch({ ...partsOf(), log: silentLog }).look(signal);
      expect(await fixture.balance(alice)).toBe(0n);
      expect(await refund(idOf(top), {}, { refund: unreachable })).toMatchObject({ winc: `${winc}`, balance: "0" });
    });

    test("a crash after the provider's response is continued by the watch", async () => {
      const top = await pay();
      await expect(refund(idOf(top), {}, { findPayment: unreachable })).rejects.toMatchObject({
        code: "payment_session_failed",
      });
      await createCardWatch({ ...partsOf(), log: silentLog }).look(signal);
      expect(await refund(idOf(top))).toMatchObject({ balance: "0" });
      expect([await fixture.balance(alice), refundedAtProvider(top)]).toEqual([0n, 1000]);
    });

    test("a rejection of the provider is the reason, and uses no key up", async () => {
      const top = await pay();
      const rejects = () =>
        Promise.reject(new Failure("payment_session_failed", { status: 400, message: "The charge is disputed." }));
      await expect(refund(idOf(top), {}, { refund: rejects })).rejects.toMatchObject({
        context: { reason: "The card provider rejects the refund: The charge is disputed." },
      });
      await fixture.settle();
      expect(await refund(idOf(top), { reason: "another reason" })).toMatchObject({ balance: "0" });
    });

    test("after a refund that the payer's bank sent back, pays back again", async () => {
      const top = await pay();
      const winc = await fixture.balance(alice);
      await refund(idOf(top));
      await fixture.settle();
      fixture.sandbox.failRefund(newestRefund());
      await fixture.settle();
      await createCardWatch({ ...partsOf(), log: silentLog }).look(signal);
      expect([await fixture.balance(alice), refundedAtProvider(top)]).toEqual([winc, 0]);
      fixture.payment.clock.advance(60_000);
      expect(await refund(idOf(top), { idempotencyKey: "again" })).toMatchObject({ winc: `${winc}`, balance: "0" });
      await fixture.settle();
      expect([await fixture.balance(alice), refundedAtProvider(top)]).toEqual([0n, 1000]);
    });

    test("an unpaid and an unknown quote are no payments", async () => {
      const top = await fixture.topUp(`/v1/top-up/payment-intent/${alice}/usd/1000`);
      for (const id of [idOf(top), "unknown"])
        await expect(refund(id, { idempotencyKey: id })).rejects.toMatchObject({ code: "payment_not_found" });
    });

    test("the list has every payment once, newest first, also two of one moment", async () => {
      const ids: string[] = [];
      for (let index = 0; index < 5; index += 1) ids.push(idOf(await pay()));
      await fixture.payment.database.write((tx) =>
        tx.run("UPDATE quotes SET credited_at = 7 WHERE id <> ?", ids[4] ?? ""),
      );
      const seen: string[] = [];
      let after: PaymentPosition | undefined;
      do {
        const page = { account: seen.length < 3 ? alice : undefined, after, limit: 2 };
        const rows = await fixture.payment.database.read((tx) => listPayments(tx, page));
        seen.push(...rows.map(({ id }) => id));
        after = rows.length === 2 ? rows[1] : undefined;
      } while (after !== undefined);
      expect(seen).toEqual([ids[4] ?? "", ...ids.slice(0, 4).sort().reverse()]);
      const others = { account: testAddress("Bob"), after: undefined, limit: 2 };
      expect(await fixture.payment.database.read((tx) => listPayments(tx, others))).toEqual([]);
    });
  });
