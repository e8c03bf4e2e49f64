/**
 * Payments by card from the page to the balance: paid, declined, expired, late, refunded, disputed, lost on the way,
 * granted; after each test the ledger's checker has nothing to say.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { noFaults } from "../../../src/dev/sandbox/stripe-events.ts";
import { Failure } from "../../../src/failures.ts";
import { silentLog } from "../../../src/lib/log.ts";
import type { UserAddress } from "../../../src/payment/addresses.ts";
import type { CardProvider } from "../../../src/payment/cards/card-provider.ts";
import type { CardEvents } from "../../../src/payment/cards/card-settlement.ts";
import { createCardWatch } from "../../../src/payment/cards/card-watch.ts";
import { openStripe } from "../../../src/payment/cards/stripe-client.ts";
import { gift, promo, provider } from "../../../src/store/ledger/transfers.ts";
import { testAddress } from "../../support/payment.ts";
import { promoRule } from "../prices/price-fixture.ts";
import {
  type CardFixture,
  type CardFixtureOptions,
  openCardFixture,
  sandboxKey,
  type TopUpResponse,
} from "./card-fixture.ts";

let open: CardFixture | undefined;

async function fixtureOf(options: CardFixtureOptions = {}): Promise<CardFixture> {
  open = await openCardFixture(options);
  return open;
}

afterEach(async () => {
  const fixture = open;
  open = undefined;
  if (fixture === undefined) return;
  const findings = await fixture.findings();
  await fixture.close();
  expect(findings).toEqual([]);
});

const alice = testAddress("Alice");
const bob = testAddress("Bob");
const signal = new AbortController().signal;
/** What 10 dollars buy where an AR costs 7: floor(766 cents / 700 × 10^12), rounded half up. */
const tenDollars = 1_094_285_714_286n;

const checkoutPath = (address: UserAddress, more = "") => `/v1/top-up/checkout-session/${address}/usd/1000${more}`;
const intentPath = (address: UserAddress, more = "") => `/v1/top-up/payment-intent/${address}/usd/1000${more}`;

async function confirm(fixture: CardFixture, top: TopUpResponse, method = "pm_card_visa"): Promise<number> {
  const response = await fetch(`${fixture.sandboxUrl}/v1/payment_intents/${top.paymentSession.id}/confirm`, {
    method: "POST",
    headers: { authorization: `Bearer ${sandboxKey}` },
    body: new URLSearchParams({ payment_method: method }),
  });
  await response.body?.cancel();
  return response.status;
}

async function paidBy(fixture: CardFixture, path: string): Promise<TopUpResponse> {
  const top = await fixture.topUp(path);
  expect(await confirm(fixture, top)).toBe(200);
  await fixture.settle();
  return top;
}

const chargeOf = (fixture: CardFixture, top: TopUpResponse): string =>
  String(fixture.sandbox.fetch("payment_intent", top.paymentSession.id)["latest_charge"]);

const disputeOf = (fixture: CardFixture, top: TopUpResponse, amount?: number): string =>
  String(fixture.sandbox.openDispute(chargeOf(fixture, top), "fraudulent", amount)["id"]);

const refundOf = (fixture: CardFixture, top: TopUpResponse, amount?: number): string => {
  const form = { payment_intent: top.paymentSession.id };
  return String(fixture.sandbox.createRefund(amount === undefined ? form : { ...form, amount: String(amount) })["id"]);
};

async function quoteOf(fixture: CardFixture, top: TopUpResponse): Promise<Record<string, unknown>> {
  const row = await fixture.payment.database.read((tx) =>
    tx.get<{ state: string; reason: string | null; taken_back_winc: bigint }>(
      "SELECT state, reason, taken_back_winc FROM quotes WHERE id = ?",
      top.topUpQuote["topUpQuoteId"] ?? "",
    ),
  );
  if (row === undefined) throw new Error("the quote is missing");
  return { ...row };
}

async function spend(fixture: CardFixture, address: UserAddress, winc: bigint): Promise<void> {
  const { credits, clock } = fixture.payment;
  const now = clock.now();
  const { id } = await credits.reserve({
    itemId: `item ${now}`,
    signer: address,
    paidBy: [],
    directive: "list-or-signer",
    winc,
    expiresAt: now + 60_000,
  });
  await credits.post(id);
}

describe("a checkout", () => {
  test("that is paid credits the account once, and redirects to the requested URL", async () => {
    const fixture = await fixtureOf();
    const top = await fixture.topUp(checkoutPath(alice, "?successUrl=https://app.example/ok?s={CHECKOUT_SESSION_ID}"));
    const page = await fetch(top.paymentSession.url);
    expect(page.status).toBe(200);
    expect(await page.text()).toContain("10.00 USD");
    expect(await fixture.balance(alice)).toBe(0n);
    for (let press = 0; press < 3; press += 1) {
      const paid = await fixture.payPage(top.paymentSession.url);
      expect(paid.status).toBe(303);
      expect(paid.headers.get("location")).toBe(`https://app.example/ok?s=${top.paymentSession.id}`);
    }
    await fixture.settle();
    expect(await fixture.balance(alice)).toBe(tenDollars);
    expect(await fixture.payment.held(provider("stripe"))).toBe(-tenDollars);
  });

  test("with a declined card shows the reason and credits nothing until another card pays", async () => {
    const fixture = await fixtureOf();
    const top = await fixture.topUp(checkoutPath(alice));
    for (const [card, said] of [
      ["4000 0000 0000 0002", "Your card was declined."],
      ["4000 0000 0000 9995", "insufficient funds"],
      ["1234", "Your card number is incorrect."],
      ["", "Your card number is incorrect."],
    ] as const) {
      const page = await fixture.payPage(top.paymentSession.url, card);
      expect(page.status).toBe(402);
      expect(await page.text()).toContain(said);
    }
    await fixture.settle();
    expect(await fixture.balance(alice)).toBe(0n);
    expect((await fixture.payPage(top.paymentSession.url)).status).toBe(303);
    await fixture.settle();
    expect(await fixture.balance(alice)).toBe(tenDollars);
  });

  test("that expired accepts no card, and its quote is expired", async () => {
    const fixture = await fixtureOf();
    const top = await fixture.topUp(checkoutPath(alice));
    fixture.payment.clock.advance(35 * 60_000);
    expect((await fixture.payPage(top.paymentSession.url)).status).toBe(410);
    expect((await fetch(top.paymentSession.url)).status).toBe(410);
    await fixture.settle();
    expect(await quoteOf(fixture, top)).toMatchObject({ state: "expired" });
    expect(await fixture.balance(alice)).toBe(0n);
  });
});

describe("a payment", () => {
  test("I: made in time is credited, however late its report arrives", async () => {
    const fixture = await fixtureOf({ isNotified: false });
    const top = await fixture.topUp(intentPath(alice));
    fixture.payment.clock.advance(34 * 60_000);
    expect(await confirm(fixture, top)).toBe(200);
    fixture.payment.clock.advance(3 * 24 * 60 * 60_000);
    fixture.sandbox.deliverTo({ url: `${fixture.server.url}/v1/stripe-webhook`, secret: "whsec_world" });
    await fixture.settle();
    expect(await fixture.balance(alice)).toBe(tenDollars);
  });

  test("made long after its quote expired is refunded, once", async () => {
    const fixture = await fixtureOf();
    const top = await fixture.topUp(intentPath(alice));
    fixture.payment.clock.advance(35 * 60_000 + 15 * 60_000 + 1_000);
    await paid(fixture, top);
    expect(await fixture.balance(alice)).toBe(0n);
    expect(await quoteOf(fixture, top)).toMatchObject({
      state: "failed",
      reason: "it was made after the quote had expired",
    });
    for (let look = 0; look < 3; look += 1) await fixture.watch.look(signal);
    expect(fixture.sandbox.fetch("charge", chargeOf(fixture, top))).toMatchObject({ amount_refunded: 1000 });
    await fixture.settle();
    expect(await fixture.balance(alice)).toBe(0n);
  });

  test("within a quarter of an hour after the expiry, during an authentication by the bank, is credited", async () => {
    const fixture = await fixtureOf();
    const top = await fixture.topUp(intentPath(alice));
    fixture.payment.clock.advance(35 * 60_000 + 15 * 60_000);
    await paid(fixture, top);
    expect(await fixture.balance(alice)).toBe(tenDollars);
  });

  test("is impossible after the watch has ended its quote", async () => {
    const fixture = await fixtureOf();
    const top = await fixture.topUp(intentPath(alice));
    fixture.payment.clock.advance(35 * 60_000);
    await fixture.watch.look(signal);
    expect(await confirm(fixture, top)).toBe(400);
    expect(await quoteOf(fixture, top)).toMatchObject({ state: "expired" });
  });

  test("in yen is charged in whole yen", async () => {
    const fixture = await fixtureOf();
    const top = await fixture.topUp(`/v1/top-up/payment-intent/${alice}/jpy/1500`);
    expect(top.topUpQuote.paymentAmount).toBe(1500);
    await paid(fixture, top);
    expect(await fixture.balance(alice)).toBe(BigInt(top.topUpQuote["winstonCreditAmount"] ?? ""));
  });

  test("of another amount or currency than its quote's is refunded", async () => {
    const fixture = await fixtureOf({ isNotified: false });
    for (const [amount, currency] of [
      [999n, "usd"],
      [1001n, "usd"],
      [1000n, "eur"],
    ] as const) {
      const top = await fixture.topUp(intentPath(alice));
      const { topUpQuoteId: quoteId = "" } = top.topUpQuote;
      const paidAt = fixture.payment.clock.now();
      const report = {
        kind: "paid",
        paymentId: top.paymentSession.id,
        quoteId,
        amount,
        currency,
        paidAt,
      } as const;
      expect(await fixture.events.learn(report)).toBe("rejected");
      expect(await quoteOf(fixture, top)).toMatchObject({
        state: "failed",
        reason: "the amount is not the quote's",
      });
    }
    expect(await fixture.balance(alice)).toBe(0n);
  });

  test("that was rejected is reported again when its refund fails: only the operator can repeat it", async () => {
    const fixture = await fixtureOf({ isNotified: false });
    const top = await fixture.topUp(intentPath(alice));
    const { topUpQuoteId: quoteId = "" } = top.topUpQuote;
    const paymentId = top.paymentSession.id;
    const at = fixture.payment.clock.now();
    const { learn } = fixture.events;
    expect(await learn({ kind: "paid", paymentId, quoteId, amount: 999n, currency: "usd", paidAt: at })).toBe(
      "rejected",
    );
    expect(await learn({ kind: "refunded", paymentId, amount: 999n, asOf: at })).toBe("nothing");
    expect(await learn({ kind: "refund_failed", paymentId, asOf: at + 1 })).toBe("refund_failed");
  });

  test("for a quote that is already paid is refunded, and the first payment stays", async () => {
    const fixture = await fixtureOf({ isNotified: false });
    const top = await fixture.topUp(checkoutPath(alice));
    const { topUpQuoteId: quoteId = "" } = top.topUpQuote;
    const paidAt = fixture.payment.clock.now();
    const of = (paymentId: string) =>
      fixture.events.learn({ kind: "paid", paymentId, quoteId, amount: 1000n, currency: "usd", paidAt });
    expect([await of("pi_one"), await of("pi_two"), await of("pi_one")]).toEqual(["credited", "rejected", "nothing"]);
    expect(await fixture.balance(alice)).toBe(tenDollars);
  });
});

describe("a refund or dispute", () => {
  test("of parts of a payment withholds the same parts of the credits, and finally all of them", async () => {
    const fixture = await fixtureOf();
    const top = await paidBy(fixture, intentPath(alice));
    refundOf(fixture, top, 333);
    await fixture.settle();
    expect(await fixture.balance(alice)).toBe(tenDollars - (tenDollars * 333n) / 1_000n);
    refundOf(fixture, top, 333);
    refundOf(fixture, top, 334);
    await fixture.settle();
    expect(await fixture.balance(alice)).toBe(0n);
    expect(await fixture.payment.held(provider("stripe"))).toBe(0n);
  });

  test("of spent credits leaves a balance below zero", async () => {
    const fixture = await fixtureOf();
    const top = await paidBy(fixture, intentPath(alice));
    await spend(fixture, alice, tenDollars - 5n);
    disputeOf(fixture, top);
    await fixture.settle();
    expect(await fixture.balance(alice)).toBe(5n - tenDollars);
    // The next payment goes to the debt first.
    await paidBy(fixture, intentPath(alice));
    expect(await fixture.balance(alice)).toBe(5n);
  });

  test.each([
    ["winning_evidence", tenDollars],
    ["losing_evidence", 0n],
    ["other evidence", 0n],
  ])("by a dispute with the response %s leaves %p", async (evidence, left) => {
    const fixture = await fixtureOf();
    const top = await paidBy(fixture, intentPath(alice));
    const dispute = disputeOf(fixture, top);
    await fixture.settle();
    expect(await fixture.balance(alice)).toBe(0n);
    fixture.sandbox.respondToDispute(dispute, { evidence: { uncategorized_text: evidence } });
    await fixture.settle();
    expect(await fixture.balance(alice)).toBe(left);
  });

  test("of the same payment together withholds no more than the payment", async () => {
    const fixture = await fixtureOf();
    const top = await paidBy(fixture, intentPath(alice));
    refundOf(fixture, top, 600);
    disputeOf(fixture, top, 1000);
    await fixture.settle();
    expect(await fixture.balance(alice)).toBe(0n);
  });

  test("that arrives with the report of the payment is withheld at once", async () => {
    const fixture = await fixtureOf();
    const top = await fixture.topUp(checkoutPath(alice));
    await fixture.payPage(top.paymentSession.url, "4000 0000 0000 0259");
    await fixture.settle();
    expect(await fixture.balance(alice)).toBe(0n);
    expect(await quoteOf(fixture, top)).toMatchObject({ state: "paid", taken_back_winc: tenDollars });
  });

  test("that fails at the payer's bank is returned to the account", async () => {
    const fixture = await fixtureOf();
    const top = await paidBy(fixture, intentPath(alice));
    refundOf(fixture, top, 250);
    const refund = refundOf(fixture, top, 500);
    await fixture.settle();
    expect(await fixture.balance(alice)).toBe(tenDollars - (tenDollars * 750n) / 1_000n);
    fixture.sandbox.failRefund(refund);
    await fixture.settle();
    await fixture.watch.look(signal);
    expect(await fixture.balance(alice)).toBe(tenDollars - (tenDollars * 250n) / 1_000n);
    // In the same second as the failure, and then later.
    for (const share of [350n, 450n]) {
      refundOf(fixture, top, 100);
      await fixture.settle();
      await fixture.watch.look(signal);
      expect(await fixture.balance(alice)).toBe(tenDollars - (tenDollars * share) / 1_000n);
      fixture.payment.clock.advance(5_000);
    }
  });

  test("of half, which ends a dispute, withholds half", async () => {
    const fixture = await fixtureOf();
    const top = await paidBy(fixture, intentPath(alice));
    const dispute = { id: "dp_1", payment_intent: top.paymentSession.id, amount: 500, currency: "usd" };
    const tell = (id: string, createdAt: number, status: string) =>
      fixture.events.take({ id, type: "charge.dispute.updated", createdAt, object: { ...dispute, status } });
    await tell("evt_opened", 1_000, "needs_response");
    refundOf(fixture, top, 500);
    await fixture.settle();
    await tell("evt_ended", 3_000, "charge_refunded");
    expect(await fixture.balance(alice)).toBe(tenDollars / 2n);
  });

  test("does not begin with an inquiry, in which no money moves", async () => {
    const fixture = await fixtureOf();
    const top = await paidBy(fixture, intentPath(alice));
    const said = { kind: "dispute", disputeId: "dp_1", paymentId: top.paymentSession.id } as const;
    const money = { amount: 1000n, currency: "usd" };
    await fixture.events.learn({ ...said, ...money, status: "inquiry", asOf: 1_000 });
    expect(await fixture.balance(alice)).toBe(tenDollars);
    await fixture.events.learn({ ...said, ...money, status: "open", asOf: 2_000 });
    expect(await fixture.balance(alice)).toBe(0n);
    // A late delivery about the inquiry changes nothing.
    await fixture.events.learn({ ...said, ...money, status: "inquiry_closed", asOf: 3_000 });
    expect(await fixture.balance(alice)).toBe(0n);
  });
});

describe("a lost report", () => {
  test("of a payment is found by the status of the open quote", async () => {
    for (const path of [intentPath(alice), checkoutPath(bob)]) {
      const fixture = await fixtureOf({ isNotified: false });
      const top = await fixture.topUp(path);
      if (top.paymentSession.url === "") await confirm(fixture, top);
      else await fixture.payPage(top.paymentSession.url);
      // The list of events is cut off: only the quote itself is left to ask for.
      await fixture.payment.database.write((tx) =>
        tx.run("INSERT INTO card_marks (name, at) VALUES ('events', ?)", BigInt(fixture.payment.clock.now() + 10 ** 9)),
      );
      fixture.payment.clock.advance(2 * 60_000);
      await fixture.watch.look(signal);
      expect((await fixture.balance(alice)) + (await fixture.balance(bob))).toBe(tenDollars);
      expect(await fixture.findings()).toEqual([]);
      await fixture.close();
    }
    open = undefined;
  });

  test("of any kind is found in the list of events, once", async () => {
    const fixture = await fixtureOf({ isNotified: false });
    await fixture.watch.look(signal);
    const [stored, disputed, refunded] = [
      await fixture.topUp(intentPath(alice)),
      await fixture.topUp(checkoutPath(alice)),
      await fixture.topUp(intentPath(bob)),
    ];
    await confirm(fixture, stored);
    await fixture.payPage(disputed.paymentSession.url, "4000 0000 0000 0259");
    await confirm(fixture, refunded);
    refundOf(fixture, refunded, 500);
    for (let look = 0; look < 3; look += 1) {
      fixture.payment.clock.advance(30_000);
      await fixture.watch.look(signal);
    }
    expect(await fixture.balance(alice)).toBe(tenDollars);
    expect(await fixture.balance(bob)).toBe(tenDollars - tenDollars / 2n);
  });

  test("on any page is found when the service restarts after three days", async () => {
    const fixture = await fixtureOf({ isNotified: false });
    await fixture.watch.look(signal);
    for (let each = 0; each < 30; each += 1) {
      const top = await fixture.topUp(intentPath(alice));
      await confirm(fixture, top);
      refundOf(fixture, top, 10);
      refundOf(fixture, top, 10);
      refundOf(fixture, top, 10);
      fixture.payment.clock.advance(20 * 60_000);
    }
    fixture.payment.clock.advance(3 * 24 * 60 * 60_000);
    for (let look = 0; look < 3; look += 1) await fixture.watch.look(signal);
    const each = tenDollars - (tenDollars * 30n) / 1_000n;
    expect(await fixture.balance(alice)).toBe(30n * each);
  });

  test("that fails to be processed is found again when its time is long past, and others do not wait", async () => {
    const fixture = await fixtureOf({ isNotified: false });
    const [top, other] = [await fixture.topUp(intentPath(alice)), await fixture.topUp(intentPath(bob))];
    for (const each of [top, other]) await confirm(fixture, each);
    await fixture.watch.look(signal);
    const { database: ledger, clock } = fixture.payment;
    let isBroken = true;
    const events: CardEvents = {
      ...fixture.events,
      take: async (event) => {
        if (isBroken && event.object["id"] === chargeOf(fixture, top)) throw new Error("a defect");
        return await fixture.events.take(event);
      },
    };
    const parts = { ledger, provider: fixture.provider, events, clock: clock.now, log: silentLog };
    const watch = createCardWatch(parts);
    await watch.look(signal);
    refundOf(fixture, top, 500);
    refundOf(fixture, other, 500);
    for (let hour = 0; hour < 30; hour += 1) {
      clock.advance(60 * 60_000);
      await watch.look(signal);
    }
    expect([await fixture.balance(alice), await fixture.balance(bob)]).toEqual([tenDollars, tenDollars / 2n]);
    isBroken = false;
    await createCardWatch(parts).look(signal);
    expect(await fixture.balance(alice)).toBe(tenDollars / 2n);
    const marks = await ledger.read((tx) => tx.all<{ name: string }>("SELECT name FROM card_marks"));
    expect(marks.map(({ name }) => name)).toEqual(["events"]);
  });

  test("of a payment that fails to be processed does not block the others", async () => {
    const fixture = await fixtureOf({ isNotified: false });
    await fixture.watch.look(signal);
    const tops = [await fixture.topUp(intentPath(alice)), await fixture.topUp(intentPath(bob))];
    for (const top of tops) await confirm(fixture, top);
    const [poison] = tops;
    const { database: ledger, clock } = fixture.payment;
    const events: CardEvents = {
      ...fixture.events,
      take: async (event) => {
        if (event.object["id"] === poison?.paymentSession.id) throw new Error("a defect");
        return await fixture.events.take(event);
      },
    };
    const { provider: cards } = fixture;
    const watch = createCardWatch({ ledger, provider: cards, events, clock: clock.now, log: silentLog });
    await watch.look(signal);
    expect([await fixture.balance(alice), await fixture.balance(bob)]).toEqual([0n, tenDollars]);
    // A look at the quote itself finds what its event did not tell.
    clock.advance(5 * 60_000);
    await watch.look(signal);
    expect(await fixture.balance(alice)).toBe(tenDollars);
  });

  test("that is rejected repeatedly does not block other refunds or checks of quotes", async () => {
    const fixture = await fixtureOf({ isNotified: false });
    const { database: ledger, clock } = fixture.payment;
    const reject = async () => {
      throw new Failure("payment_session_failed", { status: 400 });
    };
    const [hopeless, good] = ["pi_a", "pi_z"];
    const refunded: string[] = [];
    const provider: CardProvider = {
      ...fixture.provider,
      refund: async (id) => (id.startsWith(hopeless) ? await reject() : void refunded.push(id)),
      findPayment: (id, own) => (lost.has(id) ? reject() : fixture.provider.findPayment(id, own)),
    };
    const watch = createCardWatch({
      ledger,
      provider,
      events: fixture.events,
      clock: clock.now,
      log: silentLog,
    });
    const lost = new Set<string>();
    for (let count = 0; count < 60; count += 1) lost.add((await fixture.topUp(intentPath(alice))).paymentSession.id);
    const paid = await fixture.topUp(intentPath(bob));
    await confirm(fixture, paid);
    await ledger.write(async (tx) => {
      for (let count = 0; count < 25; count += 1)
        await tx.run(
          "INSERT INTO card_payments (id, refunded, refunded_as_of, refund) VALUES (?, 0, 0, 'wanted')",
          `${hopeless}${count}`,
        );
      await tx.run("INSERT INTO card_payments (id, refunded, refunded_as_of, refund) VALUES (?, 0, 0, 'wanted')", good);
      // The list of events is cut off: only the quote itself is left to ask for.
      await tx.run("INSERT INTO card_marks (name, at) VALUES ('events', ?)", BigInt(clock.now() + 10 ** 9));
    });
    clock.advance(3 * 60_000);
    for (let look = 0; look < 3; look += 1) await watch.look(signal);
    expect(refunded).toEqual([good]);
    expect(await fixture.balance(bob)).toBe(tenDollars);
    // What was rejected is tried again.
    await watch.look(signal);
    const wanted = await ledger.read((tx) => tx.all("SELECT id FROM card_payments WHERE refund = 'wanted'"));
    expect(wanted).toHaveLength(25);
  });

  test("is not searched while Stripe is unreachable, and the watch reports for how long", async () => {
    const fixture = await fixtureOf({ stripe: { url: "http://127.0.0.1:1", secretKey: sandboxKey } });
    await fixture.watch.look(signal);
    fixture.payment.clock.advance(60_000);
    await fixture.watch.look(signal);
    expect(fixture.watch.blindMs()).toBe(60_000);
  });

  test("leaves no quote open for ever: unpaid quotes end, and are removed later", async () => {
    const fixture = await fixtureOf({ isNotified: false });
    const tops = [
      await fixture.topUp(intentPath(alice)),
      await fixture.topUp(checkoutPath(alice)),
      await fixture.topUp("/v1/top-up/checkout-session/gift/usd/1000?destinationAddressType=gift"),
    ];
    fixture.payment.clock.advance(36 * 60_000);
    await fixture.watch.look(signal);
    for (const top of tops) expect(await quoteOf(fixture, top)).toMatchObject({ state: "expired" });
    fixture.payment.clock.advance(91 * 24 * 60 * 60_000);
    await fixture.watch.look(signal);
    const left = await fixture.payment.database.read((tx) =>
      tx.get<{ n: bigint }>("SELECT (SELECT COUNT(*) FROM quotes) + (SELECT COUNT(*) FROM gifts) AS n"),
    );
    expect(left?.n).toBe(0n);
  });
});

describe("a quote", () => {
  test("I: whose session cannot be opened has failed, and the client gets the failure", async () => {
    const fixture = await fixtureOf({ stripe: { url: "http://127.0.0.1:1", secretKey: sandboxKey } });
    const { status, body } = await fixture.ask(checkoutPath(alice));
    expect([status, body]).toEqual([503, "Error creating stripe payment session!"]);
    const rows = await fixture.payment.database.read((tx) => tx.all<{ state: string }>("SELECT state FROM quotes"));
    expect(rows).toEqual([{ state: "failed" }]);
  });

  test("with a key that Stripe rejects opens no session", async () => {
    const elsewhere = await openCardFixture();
    const fixture = await fixtureOf({ stripe: { url: elsewhere.sandboxUrl, secretKey: "sk_test_wrong" } });
    expect((await fixture.ask(intentPath(alice))).status).toBe(503);
    await elsewhere.close();
  });
});

describe("a promo code", () => {
  const rules = { promos: [promoRule("HALF", "0.5"), promoRule("NEW", "0.9", { group: "new" })] };
  const half = (path: string) => `${path}?promoCode=half`;

  test("lowers the charge, and the unpaid credits come from promotions", async () => {
    const fixture = await fixtureOf({ rules });
    const top = await paidBy(fixture, half(intentPath(alice)));
    expect(top.topUpQuote).toMatchObject({ paymentAmount: 500, quotedPaymentAmount: 1000 });
    expect(top.adjustments[0]).toMatchObject({ promoCode: "HALF", adjustmentAmount: "-500" });
    expect(await fixture.balance(alice)).toBe(tenDollars);
    expect(await fixture.payment.held(promo)).toBe(-tenDollars / 2n);
    refundOf(fixture, top);
    await fixture.settle();
    expect(await fixture.balance(alice)).toBe(0n);
    expect(await fixture.payment.held(promo)).toBe(0n);
    expect(await fixture.payment.held(provider("stripe"))).toBe(0n);
  });

  test("is used up by a payment, not by a quote", async () => {
    const fixture = await fixtureOf({ rules });
    for (let unpaid = 0; unpaid < 3; unpaid += 1) await fixture.topUp(half(intentPath(alice)));
    await paidBy(fixture, half(intentPath(alice)));
    const { status, body } = await fixture.ask(half(intentPath(alice)));
    expect(status).toBe(400);
    expect(body).toContain("'HALF'");
  });

  test("that was used in between buys only the charged part: two quotes of one user do not get two discounts", async () => {
    const fixture = await fixtureOf({ rules });
    const first = await fixture.topUp(half(intentPath(alice)));
    const second = await fixture.topUp(half(intentPath(alice)));
    await confirm(fixture, first);
    await confirm(fixture, second);
    await fixture.settle();
    expect(await fixture.balance(alice)).toBe(tenDollars + tenDollars / 2n);
    expect(await fixture.payment.held(promo)).toBe(-tenDollars / 2n);
  });

  test("for new users is rejected for an account with an earlier payment", async () => {
    const fixture = await fixtureOf({ rules });
    await paidBy(fixture, intentPath(alice));
    expect((await fixture.ask(`${intentPath(alice)}?promoCode=NEW`)).status).toBe(400);
    expect((await fixture.ask(`${intentPath(bob)}?promoCode=NEW`)).status).toBe(200);
  });
});

describe("a gift", () => {
  const giftPath = "/v1/top-up/payment-intent/gift/usd/1000?destinationAddressType=gift&giftMessage=Hello";
  const redeem = (fixture: CardFixture, id: string | undefined, address: UserAddress, method = "GET") =>
    fixture.ask(`/v1/redeem?id=${id}&destinationAddress=${address}`, { method });

  async function giftHeld(fixture: CardFixture): Promise<bigint> {
    const row = await fixture.payment.database.read((tx) => tx.get<{ id: string }>("SELECT id FROM gifts"));
    return await fixture.payment.held(gift(row?.id ?? "none"));
  }

  test("that is paid for is redeemed once, by the first request", async () => {
    const fixture = await fixtureOf();
    const { giftId } = await paidBy(fixture, giftPath);
    expect(await giftHeld(fixture)).toBe(tenDollars);
    const responses = await Promise.all(
      Array.from({ length: 20 }, (_, index) => redeem(fixture, giftId, index % 2 === 0 ? alice : bob)),
    );
    const taken = responses.filter(({ status }) => status === 200);
    expect(taken).toHaveLength(1);
    expect(taken[0]?.body).toEqual({
      message: `Payment receipt redeemed for ${tenDollars} winc!`,
      userBalance: String(tenDollars),
      userAddress: expect.any(String),
      userCreationDate: new Date(fixture.payment.clock.now()).toISOString(),
    });
    expect(new Set(responses.filter(({ status }) => status !== 200).map(({ body }) => body))).toEqual(
      new Set(["Gift has already been redeemed!"]),
    );
    expect((await fixture.balance(alice)) + (await fixture.balance(bob))).toBe(tenDollars);
  });

  test("is not redeemed by a link preview", async () => {
    const fixture = await fixtureOf();
    const { giftId } = await paidBy(fixture, giftPath);
    const path = `/v1/redeem?id=${giftId}&destinationAddress=${alice}`;
    await fixture.ask(path, { method: "HEAD" });
    await fixture.ask(path, { headers: { "sec-purpose": "prefetch;prerender" } });
    await fixture.ask(path, { method: "OPTIONS" });
    expect(await giftHeld(fixture)).toBe(tenDollars);
    expect((await redeem(fixture, giftId, alice, "POST")).status).toBe(200);
  });

  test("is redeemed on the page of its link, which also shows that it is gone", async () => {
    const fixture = await fixtureOf();
    const { giftUrl = "", giftId = "" } = await paidBy(fixture, giftPath);
    const headers = { accept: "text/html,*/*;q=0.8" };
    const form = await fetch(giftUrl, { headers });
    const html = await form.text();
    expect([form.status, form.headers.get("referrer-policy")]).toEqual([200, "no-referrer"]);
    expect(html).toContain(`action="?id=${giftId}"`);
    expect(await giftHeld(fixture)).toBe(tenDollars);
    const take = (address: string) =>
      fetch(giftUrl, {
        method: "POST",
        headers,
        body: new URLSearchParams({ destinationAddress: address, token: "native" }),
      });
    const wrong = await take("unnamed");
    expect([wrong.status, await wrong.text()]).toEqual([400, expect.stringContaining("not a valid native address")]);
    const taken = await take(bob);
    expect([taken.status, await taken.text()]).toEqual([200, expect.stringContaining(`${tenDollars} winc`)]);
    const again = await take(alice);
    expect([again.status, await again.text()]).toEqual([400, expect.stringContaining("already been redeemed")]);
    expect(await fixture.balance(bob)).toBe(tenDollars);
  });

  test("link with an invalid id gets a JSON response, also in a browser", async () => {
    const fixture = await fixtureOf();
    const headers = { accept: "text/html" };
    const { status, body } = await fixture.ask("/v1/redeem?id=%3Cscript%3E", { headers });
    expect([status, body]).toEqual([400, "Invalid or missing parameters"]);
  });

  test.each([
    ["without an id", `destinationAddress=${alice}`, "Invalid or missing parameters"],
    ["without an address", "id=x", "Invalid or missing parameters"],
    ["with two ids", `id=x&id=y&destinationAddress=${alice}`, "Invalid or missing parameters"],
    ["for no address", "id=x&destinationAddress=x", "Provided destination address is not a valid native address!"],
    [
      "for no mail address",
      `id=x&destinationAddress=${alice}&email=x`,
      "Provided recipient email address is not a valid email!",
    ],
    ["that was never issued", `id=${"A".repeat(43)}&destinationAddress=${alice}`, "Failure to redeem payment receipt!"],
    ["by an id that is invalid", `id=x&destinationAddress=${alice}`, "Failure to redeem payment receipt!"],
  ])("%s is rejected", async (_name, query, message) => {
    const fixture = await fixtureOf();
    const { status, body } = await fixture.ask(`/v1/redeem?${query}`);
    expect([status, body]).toEqual([400, message]);
  });

  test("that is unpaid is rejected, and redeemed after the payment", async () => {
    const fixture = await fixtureOf();
    const top = await fixture.topUp(giftPath);
    expect((await redeem(fixture, top.giftId, alice)).body).toBe("Failure to redeem payment receipt!");
    await paid(fixture, top);
    expect((await redeem(fixture, top.giftId, alice)).status).toBe(200);
  });

  test("G: with a charged-back payment is withheld from its redeemer", async () => {
    const fixture = await fixtureOf();
    const top = await paidBy(fixture, giftPath);
    await redeem(fixture, top.giftId, bob);
    const dispute = disputeOf(fixture, top);
    await fixture.settle();
    expect(await fixture.balance(bob)).toBe(0n);
    fixture.sandbox.respondToDispute(dispute, { evidence: { uncategorized_text: "winning_evidence" } });
    await fixture.settle();
    expect(await fixture.balance(bob)).toBe(tenDollars);
  });

  test("with a charged-back payment before its redemption is empty until the dispute is won", async () => {
    const fixture = await fixtureOf();
    const top = await paidBy(fixture, giftPath);
    const dispute = disputeOf(fixture, top);
    await fixture.settle();
    expect((await redeem(fixture, top.giftId, bob)).body).toBe("Failure to redeem payment receipt!");
    fixture.sandbox.respondToDispute(dispute, { evidence: { uncategorized_text: "winning_evidence" } });
    await fixture.settle();
    expect((await redeem(fixture, top.giftId, bob)).status).toBe(200);
    expect(await fixture.balance(bob)).toBe(tenDollars);
  });
});

describe("reports that are repeated, late and out of order", () => {
  test("end in the same balances", async () => {
    for (let seed = 1; seed <= 5; seed += 1) {
      const faults = { ...noFaults, delayMsMax: 60_000, doubledShare: 0.5 };
      const fixture = await fixtureOf({ seed, faults });
      const tops = [];
      for (let each = 0; each < 8; each += 1) {
        const top = await fixture.topUp(intentPath(each % 2 === 0 ? alice : bob));
        await confirm(fixture, top);
        tops.push(top);
      }
      for (const top of tops.slice(0, 3)) refundOf(fixture, top, 500);
      for (const top of tops.slice(3, 5)) disputeOf(fixture, top);
      await fixture.settle();
      const half = tenDollars / 2n;
      expect([seed, await fixture.balance(alice), await fixture.balance(bob)]).toEqual([
        seed,
        4n * tenDollars - 2n * half - tenDollars,
        4n * tenDollars - half - tenDollars,
      ]);
      expect(await fixture.findings()).toEqual([]);
      await fixture.close();
    }
    open = undefined;
  });
});

async function paid(fixture: CardFixture, top: TopUpResponse): Promise<void> {
  expect(await confirm(fixture, top)).toBe(200);
  await fixture.settle();
}

test.each([
  ["readable", { type: "charge.refunded", created: 1, data: { object: {} } }, ["evt_last"]],
  ["not readable", { type: "charge.refunded" }, []],
] as const)(
  "a page of the list of events whose last event is %s is followed by the next page",
  async (_which, event, ids) => {
    const respond = () => Response.json({ data: [{ id: "evt_last", ...event }], has_more: true });
    const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: respond });
    const stripe = openStripe({ url: server.url.origin, secretKey: "secret-key", random: () => 0 });
    const page = await stripe.events(0, 1_000, undefined, new AbortController().signal);
    expect([page.events.map(({ id }) => id), page.next]).toEqual([[...ids], "evt_last"]);
    stripe.close();
    await server.stop(true);
  },
);
