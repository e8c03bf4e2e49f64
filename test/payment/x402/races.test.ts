/**
 * One authorization, sent by many at once, by others, for other things, and to several processes: it is credited once.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Failure } from "../../../src/failures.ts";
import { topUpPurpose, uploadPurpose, type X402Settled } from "../../../src/payment/x402/x402.ts";
import { readX402Payment } from "../../../src/payment/x402/x402-payment-reader.ts";
import { beginX402, x402IdOf } from "../../../src/payment/x402/x402-payment-store.ts";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { until } from "../../support/until.ts";
import { type Payer, payTo } from "./payers.ts";
import { type Asked, bytesAsked, bytesCost, funded, never, openX402Fixture, type X402Fixture } from "./x402-fixture.ts";

const credited = bytesCost * 1_000_000n;
const want = { kind: "bytes", size: bytesAsked } as const;

for (const kind of ledgerKinds())
  describeWith(kind.need, `on ${kind.name}`, () => {
    let fixture: X402Fixture;
    let payers = 0;

    beforeAll(async () => {
      fixture = await openX402Fixture({ kind });
    });

    afterAll(async () => {
      expect(await checkLedger(fixture.payment.database)).toEqual([]);
      await fixture.close();
    });

    const newPayer = (): Payer => {
      payers += 1;
      return funded(fixture, payers);
    };
    const statusesOf = (responses: readonly Asked[]) => {
      const statuses = responses.map(({ status }) => status);
      return { ok: count(statuses, 200), unknown: count(statuses, 503), all: statuses.length };
    };

    test("a hundred requests with one payment: one settles it, all others get 503, one credit", async () => {
      const anyPayer = newPayer();
      const authorization = fixture.authorize(anyPayer, bytesCost);
      const asked = fixture.facilitator.orders.length;
      fixture.facilitator.behave("settles after a while");
      const responses = await Promise.all(Array.from({ length: 100 }, () => fixture.pay(authorization, anyPayer)));
      expect(statusesOf(responses)).toEqual({ ok: 0, unknown: 100, all: 100 });
      expect(fixture.facilitator.orders.length).toBe(asked + 1);
      fixture.facilitator.behave("settles");
      await fixture.pass(60);
      const repeats = await Promise.all(Array.from({ length: 100 }, () => fixture.pay(authorization, anyPayer)));
      expect(statusesOf(repeats)).toEqual({ ok: 100, unknown: 0, all: 100 });
      expect(new Set(repeats.map(({ body }) => JSON.stringify(body))).size).toBe(1);
      expect(await fixture.balance(anyPayer)).toBe(credited);
      expect(fixture.node.balanceOf(anyPayer.address)).toBe(1_000_000_000n - bytesCost);
    });

    test("a hundred requests with one payment at a quick facilitator: one credit, and the same 200 for all who got one", async () => {
      const anyPayer = newPayer();
      const authorization = fixture.authorize(anyPayer, bytesCost);
      const responses = await Promise.all(
        Array.from({ length: 100 }, (_, index) => fixture.pay(authorization, anyPayer, index % 2 === 0 ? 1 : 2)),
      );
      const { ok, unknown, all } = statusesOf(responses);
      expect(ok).toBeGreaterThanOrEqual(1);
      expect(ok + unknown).toBe(all);
      expect(await fixture.balance(anyPayer)).toBe(credited);
      expect((await fixture.row(authorization))?.attempts).toBe(1n);
    });

    test("a repeated payment gets the response of the first, whatever the account holds by then", async () => {
      const anyPayer = newPayer();
      const authorization = fixture.authorize(anyPayer, bytesCost);
      const first = await fixture.pay(authorization, anyPayer);
      expect(first.status).toBe(200);
      const second = await fixture.pay(fixture.authorize(anyPayer, bytesCost), anyPayer);
      expect(second.body).toMatchObject({ balance: (2n * credited).toString() });
      fixture.prices.wincEach = 7n;
      const later = await fixture.ask("type=credits&qty=5", {
        "x-payment": fixture.header(authorization, anyPayer),
      });
      fixture.prices.wincEach = 1_000_000n;
      expect([later.status, later.body]).toEqual([200, first.body]);
      await fixture.pass(100_000);
      expect((await fixture.pay(authorization, anyPayer)).body).toEqual(first.body);
    });

    test("a nonce is its payer's own: another's payment with the same one is another payment", async () => {
      const [one, two] = [newPayer(), newPayer()];
      const authorization = fixture.authorize(one, bytesCost);
      const twin = { ...authorization, from: two.address };
      expect((await fixture.pay(authorization, one)).status).toBe(200);
      expect((await fixture.pay(twin, two)).status).toBe(200);
      expect([await fixture.balance(one), await fixture.balance(two)]).toEqual([credited, credited]);
    });

    test("another payment of the same payer with the same nonce is rejected, and credits nothing", async () => {
      const anyPayer = newPayer();
      const authorization = fixture.authorize(anyPayer, bytesCost);
      expect((await fixture.pay(authorization, anyPayer)).status).toBe(200);
      for (const change of [
        { value: bytesCost + 1n },
        { validBefore: authorization.validBefore + 1n },
        { validAfter: authorization.validAfter + 1n },
      ]) {
        const response = await fixture.pay({ ...authorization, ...change }, anyPayer);
        expect(response.status).toBe(402);
        expect(response.body).toMatchObject({ error: "Payment settlement failed" });
      }
      expect(await fixture.balance(anyPayer)).toBe(credited);
    });

    describe("a payment for an upload", () => {
      async function settle(header: string, purpose: ReturnType<typeof uploadPurpose>): Promise<X402Settled | string> {
        const payment = readX402Payment(header, 1);
        if (payment === undefined) throw new Error("the header is not a valid payment");
        try {
          return await fixture.x402.settle({ payment, want, purpose, resource: "http://localhost/" }, never);
        } catch (error) {
          if (!(error instanceof Failure)) throw error;
          return error.code;
        }
      }

      test("is bound to it: sent again it is the same, sent for another it is rejected", async () => {
        const anyPayer = newPayer();
        const authorization = fixture.authorize(anyPayer, bytesCost);
        await fixture.x402.quote(want, never);
        const header = fixture.header(authorization, anyPayer);
        const first = await settle(header, uploadPurpose("one"));
        expect(first).toMatchObject({ payer: anyPayer.address, quotedWinc: credited, isReplay: false });
        expect(await settle(header, uploadPurpose("one"))).toEqual({
          ...(first as X402Settled),
          isReplay: true,
        });
        expect(await settle(header, uploadPurpose("two"))).toBe("settlement_failed");
        expect(await settle(header, topUpPurpose)).toBe("settlement_failed");
        expect((await fixture.pay(authorization, anyPayer)).status).toBe(402);
        expect(await fixture.balance(anyPayer)).toBe(credited);
      });

      test("leaves the payer credits for the quoted price, though the price has risen since", async () => {
        const anyPayer = newPayer();
        const authorization = fixture.authorize(anyPayer, bytesCost);
        await fixture.x402.quote(want, never);
        fixture.prices.wincEach = 500_000n;
        fixture.prices.wincPerByte = 4_000n;
        await fixture.x402.quote(want, never);
        const settled = await settle(fixture.header(authorization, anyPayer), uploadPurpose("three"));
        fixture.prices.wincEach = 1_000_000n;
        fixture.prices.wincPerByte = 2_000n;
        expect(settled).toMatchObject({ creditedWinc: credited, quotedWinc: credited });
        const reservation = await fixture.payment.credits.reserve({
          itemId: "A".repeat(43),
          signer: anyPayer.address,
          paidBy: [],
          directive: "list-or-signer",
          winc: credited,
          expiresAt: fixture.payment.clock.now() + 60_000,
        });
        expect(reservation.state).toBe("pending");
      });
    });

    test("two processes on one ledger: one payment, sent to both at once and followed by both, is credited once", async () => {
      const anyPayer = newPayer();
      const second = await fixture.payment.ledger.openAgain();
      const twin = fixture.openAnother(second);
      try {
        for (const behaviour of ["settles", "is silent after it has sent", "settles after a while"] as const) {
          fixture.facilitator.behave(behaviour);
          const authorization = fixture.authorize(anyPayer, bytesCost);
          const payment = readX402Payment(fixture.header(authorization, anyPayer), 1);
          if (payment === undefined) throw new Error("the header is not a valid payment");
          const before = await fixture.balance(anyPayer);
          const request = { payment, want, purpose: topUpPurpose, resource: "" };
          await Promise.allSettled(
            Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? twin : fixture.x402).settle(request, never)),
          );
          fixture.facilitator.behave("settles");
          const lookTogether = async () => {
            fixture.payment.clock.advance(3_000);
            await Promise.all([twin.look(never), fixture.x402.look(never)]);
          };
          // However long the facilitator takes; and then no look credits it again.
          for (let look = 0; look < 60 && (await fixture.balance(anyPayer)) === before; look += 1) await lookTogether();
          for (let look = 0; look < 10; look += 1) await lookTogether();
          expect(await fixture.balance(anyPayer)).toBe(before + credited);
        }
      } finally {
        await twin.close();
        await second.close();
      }
    });

    test("two watches that find the same payment due send it once", async () => {
      const anyPayer = newPayer();
      const second = await fixture.payment.ledger.openAgain();
      const twin = fixture.openAnother(second);
      try {
        fixture.facilitator.behave("says 401");
        const authorization = fixture.authorize(anyPayer, bytesCost);
        expect((await fixture.pay(authorization, anyPayer)).status).toBe(503);
        fixture.payment.clock.advance(10_000);
        const asked = fixture.facilitator.orders.length;
        await Promise.all([twin.look(never), fixture.x402.look(never), twin.look(never), fixture.x402.look(never)]);
        expect(fixture.facilitator.orders.length).toBe(asked + 1);
      } finally {
        fixture.facilitator.behave("settles");
        await twin.close();
        await second.close();
      }
    });

    test("an ended payment is not sent again", async () => {
      fixture.facilitator.behave("rejects");
      const anyPayer = newPayer();
      const authorization = fixture.authorize(anyPayer, bytesCost);
      expect((await fixture.pay(authorization, anyPayer)).status).toBe(402);
      fixture.facilitator.behave("settles");
      const { name, asset } = fixture.terms.network;
      const id = x402IdOf(name, asset.address, authorization);
      const begin = () => fixture.payment.database.write((tx) => beginX402(tx, id, undefined, 0));
      expect(await begin()).toBe(false);
      expect(await fixture.row(authorization)).toMatchObject({ state: "rejected", attempts: 1n });
    });

    test("a payment settles also after its client has disconnected", async () => {
      const anyPayer = newPayer();
      fixture.facilitator.behave("settles after a while");
      const authorization = fixture.authorize(anyPayer, bytesCost);
      const payment = readX402Payment(fixture.header(authorization, anyPayer), 1);
      if (payment === undefined) throw new Error("the header is not a valid payment");
      await fixture.x402.quote(want, never);
      const leaving = new AbortController();
      const request = { payment, want, purpose: topUpPurpose, resource: "" };
      const settled = fixture.x402.settle(request, leaving.signal);
      const orders = fixture.facilitator.orders.length;
      await until(() => fixture.facilitator.orders.length !== orders);
      leaving.abort(new Error("left"));
      await expect(settled).rejects.toThrow("left");
      fixture.facilitator.behave("settles");
      await fixture.pass(120);
      expect(await fixture.balance(anyPayer)).toBe(credited);
      expect(fixture.node.balanceOf(payTo)).toBeGreaterThan(0n);
    });
  });

function count(list: readonly number[], value: number): number {
  return list.filter((each) => each === value).length;
}
