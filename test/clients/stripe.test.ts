/**
 * Stripe's published client library against the simulated Stripe, its signatures against ours both ways,
 * and its requests beside those of our own client: what we take for Stripe's protocol is what Stripe's own code speaks.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { signDelivery } from "../../src/dev/sandbox/stripe-events.ts";
import { openStripe } from "../../src/payment/cards/stripe-client.ts";
import { eventTypes, isSignedByStripe } from "../../src/payment/cards/stripe-objects.ts";
import { type CardFixture, openCardFixture, sandboxKey, webhookSecret } from "../payment/cards/card-fixture.ts";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { testAddress } from "../support/payment.ts";

const library = clientLibraries.there ? await import("stripe") : undefined;

describeWith(clientLibraries, "stripe (npm)", () => {
  let fixture: CardFixture;
  let stripe: ReturnType<typeof clientOf>;

  beforeAll(async () => {
    fixture = await openCardFixture({ isNotified: false });
    stripe = clientOf(fixture.sandboxUrl);
  });

  afterAll(() => fixture.close());

  function clientOf(url: string, key = sandboxKey) {
    if (library === undefined) throw new Error("the library is not installed");
    const { hostname, port } = new URL(url);
    return new library.default(key, {
      host: hostname,
      port: Number(port),
      protocol: "http",
      maxNetworkRetries: 0,
      telemetry: false,
    });
  }

  const failureOf = (call: Promise<unknown>) =>
    call.then(
      () => {
        throw new Error("the call was not rejected");
      },
      (error: { type: string; code?: string; statusCode?: number; param?: string; decline_code?: string }) => {
        const { type, code, statusCode, param, decline_code } = error;
        return { type, code, statusCode, param, decline_code };
      },
    );

  const money = { amount: 1234, currency: "usd" };

  describe("the sandbox", () => {
    test("with a payment that is made, confirmed, and expanded with its charge", async () => {
      const made = await stripe.paymentIntents.create({
        ...money,
        // Not in the types of this version any more, but sent by clients.
        ...{ payment_method_types: ["card"] },
        metadata: { "with space": "ü & = [x]", topUpQuoteId: "q" },
      });
      expect(made).toMatchObject({ object: "payment_intent", status: "requires_payment_method", ...money });
      expect(made.metadata).toEqual({ "with space": "ü & = [x]", topUpQuoteId: "q" });
      const confirmed = await stripe.paymentIntents.confirm(made.id, { payment_method: "pm_card_visa" });
      expect(confirmed).toMatchObject({ id: made.id, status: "succeeded", amount_received: 1234 });
      const whole = await stripe.paymentIntents.retrieve(made.id, { expand: ["latest_charge"] });
      expect(whole.latest_charge).toMatchObject({
        object: "charge",
        amount: 1234,
        paid: true,
        amount_refunded: 0,
      });
      expect(whole.client_secret).toStartWith(`${made.id}_secret_`);
    });

    test.each([
      ["pm_card_chargeDeclined", "card_declined", "generic_decline"],
      ["pm_card_chargeDeclinedInsufficientFunds", "card_declined", "insufficient_funds"],
      ["pm_card_chargeDeclinedExpiredCard", "expired_card", "expired_card"],
    ])("with its error for the card %s, and the payment can be tried again", async (method, code, decline) => {
      const made = await stripe.paymentIntents.create(money);
      const failure = await failureOf(stripe.paymentIntents.confirm(made.id, { payment_method: method }));
      expect(failure).toMatchObject({
        type: "StripeCardError",
        code,
        decline_code: decline,
        statusCode: 402,
      });
      const after = await stripe.paymentIntents.retrieve(made.id);
      expect(after).toMatchObject({ status: "requires_payment_method", last_payment_error: { code } });
      const paid = await stripe.paymentIntents.confirm(made.id, { payment_method: "pm_card_visa" });
      expect(paid.status).toBe("succeeded");
    });

    test("with a payment that is canceled once, and not when it is paid", async () => {
      const made = await stripe.paymentIntents.create(money);
      expect((await stripe.paymentIntents.cancel(made.id)).status).toBe("canceled");
      const unexpected = { type: "StripeInvalidRequestError", code: "payment_intent_unexpected_state" };
      expect(await failureOf(stripe.paymentIntents.cancel(made.id))).toMatchObject(unexpected);
      const other = await stripe.paymentIntents.create(money);
      await stripe.paymentIntents.confirm(other.id, { payment_method: "pm_card_visa" });
      expect(await failureOf(stripe.paymentIntents.cancel(other.id))).toMatchObject(unexpected);
    });

    const items = [
      { price_data: { currency: "usd", unit_amount: 700, product_data: { name: "Credits" } }, quantity: 2 },
    ];

    test.each([
      ["hosted", { success_url: "https://a.example/ok" }, true],
      ["hosted_page", { success_url: "https://a.example/ok" }, true],
      ["embedded", { return_url: "https://a.example/back" }, false],
      ["embedded_page", { redirect_on_completion: "never" }, false],
    ])("with a checkout that is %s", async (ui_mode, back, hasUrl) => {
      const made = await stripe.checkout.sessions.create({
        mode: "payment",
        ui_mode,
        line_items: items,
        ...back,
      });
      expect(made).toMatchObject({
        object: "checkout.session",
        status: "open",
        payment_status: "unpaid",
        amount_total: 1400,
        payment_intent: null,
      });
      expect([typeof made.url, typeof made.client_secret]).toEqual(
        hasUrl ? ["string", "object"] : ["object", "string"],
      );
      expect((await stripe.checkout.sessions.retrieve(made.id)).id).toBe(made.id);
      expect((await stripe.checkout.sessions.expire(made.id)).status).toBe("expired");
      expect((await failureOf(stripe.checkout.sessions.expire(made.id))).type).toBe("StripeInvalidRequestError");
    });

    test("with a checkout whose payment carries the metadata that was meant for it", async () => {
      const made = await stripe.checkout.sessions.create({
        mode: "payment",
        success_url: "https://a.example/ok",
        line_items: items,
        metadata: { of: "session" },
        payment_intent_data: { metadata: { of: "payment" } },
      });
      expect((await fixture.payPage(made.url ?? "")).status).toBe(303);
      const after = await stripe.checkout.sessions.retrieve(made.id, { expand: ["payment_intent"] });
      expect(after).toMatchObject({
        status: "complete",
        payment_status: "paid",
        metadata: { of: "session" },
      });
      expect(after.payment_intent).toMatchObject({
        status: "succeeded",
        metadata: { of: "payment" },
        amount: 1400,
      });
    });

    test("with refunds in part and in whole, and its error beyond that", async () => {
      const made = await stripe.paymentIntents.create(money);
      const early = await failureOf(stripe.refunds.create({ payment_intent: made.id }));
      expect(early.type).toBe("StripeInvalidRequestError");
      await stripe.paymentIntents.confirm(made.id, { payment_method: "pm_card_visa" });
      const part = await stripe.refunds.create({ payment_intent: made.id, amount: 234 });
      expect(part).toMatchObject({ object: "refund", status: "succeeded", amount: 234 });
      expect((await stripe.refunds.create({ payment_intent: made.id })).amount).toBe(1000);
      expect(await failureOf(stripe.refunds.create({ payment_intent: made.id }))).toMatchObject({
        code: "charge_already_refunded",
      });
      const charge = await stripe.charges.retrieve(String(part.charge));
      expect(charge).toMatchObject({ amount_refunded: 1234, refunded: true });
      expect((await stripe.refunds.retrieve(part.id)).id).toBe(part.id);
    });

    test.each([
      ["winning_evidence", "won"],
      ["losing_evidence", "lost"],
      ["perhaps", "under_review"],
    ])("with a dispute that ends after %s as %s", async (uncategorized_text, status) => {
      const made = await stripe.paymentIntents.create(money);
      await stripe.paymentIntents.confirm(made.id, { payment_method: "pm_card_createDispute" });
      const [event] = (await stripe.events.list({ type: "charge.dispute.created", limit: 1 })).data;
      const { id } = (event?.data.object ?? {}) as { id: string };
      expect(await stripe.disputes.retrieve(id)).toMatchObject({
        status: "needs_response",
        payment_intent: made.id,
      });
      expect(await stripe.disputes.update(id, { evidence: { uncategorized_text } })).toMatchObject({
        id,
        status,
      });
      if (status === "under_review") expect((await stripe.disputes.close(id)).status).toBe("lost");
    });

    test("with events page by page, of the kinds and the time that it asks for", async () => {
      const ids: string[] = [];
      for await (const event of stripe.events.list({ limit: 7 })) ids.push(event.id);
      expect(new Set(ids).size).toBe(ids.length);
      expect(ids.length).toBeGreaterThan(40);
      const types = ["charge.refunded", "refund.created"];
      const some = await stripe.events.list({ types, limit: 100 });
      expect(some.data.length).toBeGreaterThan(0);
      for (const { type } of some.data) expect(types).toContain(type);
      const now = Math.floor(fixture.payment.clock.now() / 1_000);
      expect((await stripe.events.list({ created: { gte: now + 1 } })).data).toEqual([]);
      expect((await stripe.events.list({ created: { gte: now, lt: now + 1 }, limit: 1 })).has_more).toBe(true);
      const [newest = ""] = ids;
      expect((await stripe.events.retrieve(newest)).id).toBe(newest);
    });

    test("once for one key, and with its error for another request by the same key", async () => {
      const key = { idempotencyKey: "one key" };
      const first = await stripe.paymentIntents.create(money, key);
      const again = await stripe.paymentIntents.create(money, key);
      expect(again.id).toBe(first.id);
      const other = await failureOf(stripe.paymentIntents.create({ ...money, amount: 1 }, key));
      expect(other).toMatchObject({ type: "StripeIdempotencyError", statusCode: 400 });
    });

    test("with its errors for what is wrong with a call", async () => {
      const rows: [() => Promise<unknown>, object][] = [
        [() => stripe.paymentIntents.retrieve("pi_none"), { code: "resource_missing", statusCode: 404 }],
        [() => stripe.checkout.sessions.retrieve("cs_none"), { code: "resource_missing", statusCode: 404 }],
        [
          () => stripe.paymentIntents.create({ currency: "usd" } as typeof money),
          { code: "parameter_missing", param: "amount" },
        ],
        [() => stripe.paymentIntents.create({ ...money, amount: 0 }), { param: "amount" }],
        [() => stripe.paymentIntents.create({ ...money, amount: 1.5 }), { code: "parameter_invalid_integer" }],
        [() => stripe.paymentIntents.create({ ...money, amount: 100_000_000 }), { code: "amount_too_large" }],
        [
          () => stripe.paymentIntents.create(Object.assign({ colour: "red" }, money)),
          { code: "parameter_unknown", param: "colour" },
        ],
        [() => stripe.paymentIntents.create({ ...money, metadata: { k: "x".repeat(501) } }), { param: "metadata" }],
        [
          () =>
            stripe.checkout.sessions.create({
              mode: "payment",
              success_url: "https://a.example",
              line_items: items,
              expires_at: 5,
            }),
          { param: "expires_at" },
        ],
        [
          () => stripe.checkout.sessions.create({ mode: "payment", success_url: "nowhere", line_items: items }),
          { code: "url_invalid", param: "success_url" },
        ],
      ];
      for (const [call, failure] of rows)
        expect(await failureOf(call())).toMatchObject({ type: "StripeInvalidRequestError", ...failure });
      const stranger = clientOf(fixture.sandboxUrl, "sk_test_stranger");
      expect(await failureOf(stranger.paymentIntents.create(money))).toMatchObject({
        type: "StripeAuthenticationError",
        statusCode: 401,
      });
    });
  });

  describe("signatures", () => {
    const payload = JSON.stringify({
      id: "evt_1",
      object: "event",
      type: "ping",
      created: 1,
      data: { object: {} },
    });
    const nowSeconds = () => Math.floor(Date.now() / 1_000);

    test("of the library are believed by the payment service, with its own tolerance", async () => {
      const bytes = new TextEncoder().encode(payload);
      const now = nowSeconds();
      for (const [age, isGood] of [
        [0, true],
        [300, true],
        [301, false],
      ] as const) {
        const timestamp = now - age;
        const header = await stripe.webhooks.generateTestHeaderStringAsync({
          ...{ payload, secret: webhookSecret, timestamp },
        });
        expect(isSignedByStripe(bytes, header, webhookSecret, now * 1_000)).toBe(isGood);
        expect(isSignedByStripe(bytes, header, "whsec_other", now * 1_000)).toBe(false);
        const library = stripe.webhooks.constructEventAsync(
          ...([payload, header, webhookSecret, undefined, undefined, now * 1_000] as const),
        );
        expect(
          await library.then(
            () => true,
            () => false,
          ),
        ).toBe(isGood);
      }
    });

    test("of the sandbox are accepted by the library, and altered deliveries are not", async () => {
      const header = signDelivery(payload, webhookSecret, nowSeconds());
      expect((await stripe.webhooks.constructEventAsync(payload, header, webhookSecret)).id).toBe("evt_1");
      const altered = stripe.webhooks.constructEventAsync(`${payload} `, header, webhookSecret);
      expect(await failureOf(altered)).toMatchObject({ type: "StripeSignatureVerificationError" });
    });

    test("of the library on a payment's report credit it on the socket", async () => {
      const address = testAddress("Library");
      const top = await fixture.topUp(`/v1/top-up/payment-intent/${address}/usd/1000`);
      const body = JSON.stringify({
        ...{ id: "evt_library", object: "event", type: "payment_intent.succeeded", created: nowSeconds() },
        data: {
          object: {
            ...{ id: top.paymentSession.id, amount_received: 1000, currency: "usd" },
            metadata: { topUpQuoteId: top.topUpQuote["topUpQuoteId"] },
          },
        },
      });
      const timestamp = Math.floor(fixture.payment.clock.now() / 1_000);
      const signature = await stripe.webhooks.generateTestHeaderStringAsync({
        ...{ payload: body, secret: webhookSecret, timestamp },
      });
      const { status } = await fixture.ask("/v1/stripe-webhook", {
        ...{ method: "POST", body, headers: { "stripe-signature": signature } },
      });
      expect(status).toBe(200);
      expect(await fixture.balance(address)).toBe(BigInt(top.topUpQuote["winstonCreditAmount"] ?? ""));
    });

    test("of deliveries that the sandbox sends over a socket are accepted by the library", async () => {
      const deliveries: string[] = [];
      const server = Bun.serve({
        ...{ hostname: "127.0.0.1", port: 0 },
        fetch: async (request) => {
          const text = await request.text();
          const header = request.headers.get("stripe-signature") ?? "";
          const seen = fixture.payment.clock.now() / 1_000;
          const event = await stripe.webhooks.constructEventAsync(
            text,
            header,
            webhookSecret,
            300,
            undefined,
            seen * 1_000,
          );
          deliveries.push(event.type);
          return new Response();
        },
      });
      const other = await openCardFixture({ isNotified: false });
      other.payment.clock.set(fixture.payment.clock.now());
      other.sandbox.deliverTo({ url: `http://127.0.0.1:${server.port}/`, secret: webhookSecret });
      const made = await clientOf(other.sandboxUrl).paymentIntents.create(money);
      await clientOf(other.sandboxUrl).paymentIntents.confirm(made.id, { payment_method: "pm_card_visa" });
      await other.settle();
      expect(deliveries.sort()).toEqual(["charge.succeeded", "payment_intent.created", "payment_intent.succeeded"]);
      await other.close();
      await server.stop(true);
    });
  });

  describe("our own client sends what the library sends", () => {
    /** What a server is asked, one request at a time. */
    async function recorded(ask: (url: string) => Promise<unknown>): Promise<Record<string, unknown>> {
      let seen: Record<string, unknown> = {};
      const server = Bun.serve({
        ...{ hostname: "127.0.0.1", port: 0 },
        fetch: async (request) => {
          const { pathname, search } = new URL(request.url);
          const form = [...new URLSearchParams(await request.text())].sort();
          const { headers } = request;
          seen = {
            ...{ method: request.method, pathname, form },
            query: [...new URLSearchParams(search)].sort(),
            authorization: headers.get("authorization"),
            // The library names a type also for questions without a body.
            type: form.length === 0 ? undefined : headers.get("content-type"),
            hasKey: headers.has("idempotency-key"),
            hasVersion: headers.has("stripe-version"),
          };
          return Response.json({ id: "x_1", status: "open", amount_received: 0, currency: "usd", data: [] });
        },
      });
      await ask(`http://127.0.0.1:${server.port}`);
      await server.stop(true);
      return seen;
    }

    const signal = new AbortController().signal;
    const oursOf = (url: string) => openStripe({ url, secretKey: sandboxKey, random: () => 0 });
    const terms = {
      ...{ quoteId: "q1", currency: "usd", amount: 1000n, description: 'credits "for" ü&=[]' },
      metadata: { winstonCreditAmount: "123" },
    };
    const metadata = { winstonCreditAmount: "123", topUpQuoteId: "q1" };
    const expiresAt = 1_800_000_000_000;
    const checkout = {
      ...{
        mode: "payment",
        client_reference_id: "q1",
        expires_at: 1_800_000_000,
        payment_method_types: ["card"],
      },
      line_items: [
        {
          quantity: 1,
          price_data: {
            ...{ currency: "usd", unit_amount: 1000 },
            product_data: { name: "Storage credits", description: terms.description },
          },
        },
      ],
      metadata,
      payment_intent_data: { metadata },
    };
    const hosted = {
      uiMode: "hosted",
      successUrl: "https://a.example/ok?s={CHECKOUT_SESSION_ID}",
      cancelUrl: "https://a.example/",
    } as const;

    type Ask = (url: string) => Promise<unknown>;
    const rows: readonly (readonly [string, Ask, Ask])[] = [
      [
        "to make a payment",
        (url) => oursOf(url).createPaymentIntent(terms, signal),
        (url) =>
          clientOf(url).paymentIntents.create({
            ...{
              amount: 1000,
              currency: "usd",
              description: terms.description,
              payment_method_types: ["card"],
            },
            metadata,
          }),
      ],
      [
        "to make a hosted checkout",
        (url) => oursOf(url).createCheckout(terms, expiresAt, hosted, signal),
        (url) =>
          clientOf(url).checkout.sessions.create({
            ...checkout,
            ...{ ui_mode: "hosted", success_url: hosted.successUrl, cancel_url: hosted.cancelUrl },
          }),
      ],
      [
        "to make an embedded checkout that leads nowhere",
        (url) => oursOf(url).createCheckout(terms, expiresAt, { uiMode: "embedded", returnUrl: undefined }, signal),
        (url) =>
          clientOf(url).checkout.sessions.create({
            ...checkout,
            ui_mode: "embedded",
            redirect_on_completion: "never",
          }),
      ],
      [
        "to make an embedded checkout that leads back",
        (url) =>
          oursOf(url).createCheckout(terms, expiresAt, { uiMode: "embedded", returnUrl: "https://a.example/" }, signal),
        (url) =>
          clientOf(url).checkout.sessions.create({
            ...checkout,
            ui_mode: "embedded",
            return_url: "https://a.example/",
          }),
      ],
      [
        "to find a payment with its charge",
        (url) => oursOf(url).findPayment("pi_1", signal),
        (url) => clientOf(url).paymentIntents.retrieve("pi_1", { expand: ["latest_charge"] }),
      ],
      [
        "to find a checkout",
        (url) => oursOf(url).findCheckout("cs_1", signal),
        (url) => clientOf(url).checkout.sessions.retrieve("cs_1"),
      ],
      [
        "to list events",
        (url) => oursOf(url).events(3_000, 9_000, "evt_1", signal),
        (url) =>
          clientOf(url).events.list({
            ...{ created: { gte: 3, lt: 9 }, types: [...eventTypes], limit: 100, starting_after: "evt_1" },
          }),
      ],
      [
        "to give a payment back",
        (url) => oursOf(url).refund("pi_1", "a reason", signal),
        (url) => clientOf(url).refunds.create({ payment_intent: "pi_1" }),
      ],
    ];

    test.each(rows)("%s", async (_name, ours, theirs) => {
      const [mine, library] = [await recorded(ours), await recorded(theirs)];
      expect(mine).toEqual(library);
    });
  });
});
