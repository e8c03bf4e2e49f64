/**
 * Webhooks of Stripe: which events are accepted, their effects, and that the response follows after they are on the
 * disk.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { Failure } from "../../../src/failures.ts";
import { createWebhookRoutes } from "../../../src/http/payment/stripe-webhook-routes.ts";
import { type CardFixture, openCardFixture, webhookSecret } from "../../payment/cards/card-fixture.ts";
import { testAddress, testStart } from "../../support/payment.ts";
import { openPaymentServer } from "../../support/payment-server.ts";

let fixture: CardFixture;

beforeAll(async () => {
  fixture = await openCardFixture({ isNotified: false });
});

afterAll(() => fixture.close());

/** The clock of the fixture does not advance. */
const seconds = () => testStart / 1_000;

function sign(body: string | Uint8Array, secret = webhookSecret, at: number | string = seconds()): string {
  return `t=${at},v1=${createHmac("sha256", secret).update(`${at}.`).update(body).digest("hex")}`;
}

async function tell(body: string | Uint8Array<ArrayBuffer>, signature: string | undefined) {
  const headers = signature === undefined ? {} : { "stripe-signature": signature };
  return await fixture.ask("/v1/stripe-webhook", { method: "POST", body, headers });
}

const delivery = (id: string, type: string, object: Record<string, unknown>) =>
  JSON.stringify({ id, object: "event", type, created: seconds(), data: { object } });

const unknown = delivery("evt_unknown", "customer.created", { id: "cus_1" });

describe("L3: an event", () => {
  const good = () => sign(unknown);
  const rows: readonly (readonly [string, () => readonly [string, string | undefined], number])[] = [
    ["rightly signed is taken", () => [unknown, good()], 200],
    ["without a signature is rejected", () => [unknown, undefined], 400],
    ["with an empty signature is rejected", () => [unknown, ""], 400],
    ["signed with another secret is rejected", () => [unknown, sign(unknown, "whsec_other")], 400],
    ["signed with no secret is rejected", () => [unknown, sign(unknown, "")], 400],
    ["of which one byte was changed is rejected", () => [unknown.replace("cus_1", "cus_2"), good()], 400],
    ["with a byte more is rejected", () => [`${unknown} `, good()], 400],
    ["300 seconds old is taken", () => [unknown, sign(unknown, webhookSecret, seconds() - 300)], 200],
    ["301 seconds old is rejected", () => [unknown, sign(unknown, webhookSecret, seconds() - 301)], 400],
    ["300 seconds early is taken", () => [unknown, sign(unknown, webhookSecret, seconds() + 300)], 200],
    ["301 seconds early is rejected", () => [unknown, sign(unknown, webhookSecret, seconds() + 301)], 400],
    ["whose time was changed is rejected", () => [unknown, good().replace(/t=\d+/, `t=${seconds() - 1}`)], 400],
    ["whose time is not a number is rejected", () => [unknown, sign(unknown, webhookSecret, "now")], 400],
    ["whose time is enormous is rejected", () => [unknown, sign(unknown, webhookSecret, "9".repeat(400))], 400],
    ["signed by an older scheme alone is rejected", () => [unknown, good().replace("v1=", "v0=")], 400],
    ["with two signatures, one of them right, is taken", () => [unknown, `${good()},v1=${"0".repeat(64)}`], 200],
    ["with the right one last is taken", () => [unknown, good().replace(",", `,v1=${"0".repeat(64)},`)], 200],
    ["with a signature in capitals is rejected", () => [unknown, good().toUpperCase()], 400],
    ["with half a signature is rejected", () => [unknown, good().slice(0, -32)], 400],
    ["that is not JSON is rejected", () => ["nonsense", sign("nonsense")], 400],
    ["that is empty is rejected", () => ["", sign("")], 400],
    ["that is not an event is rejected", () => ['{"id":1}', sign('{"id":1}')], 400],
  ];

  test.each(rows)("%s", async (_name, make, status) => {
    const [body, signature] = make();
    const response = await tell(body, signature);
    const said = status === 200 ? undefined : "Webhook Error!";
    expect({ status: response.status, body: response.body }).toEqual({ status, body: said });
  });

  test("of a mebibyte is read, one byte more is not", async () => {
    const padded = (size: number) => unknown.replace("cus_1", "c".repeat(size - unknown.length + 5));
    const whole = padded(2 ** 20);
    expect(whole.length).toBe(2 ** 20);
    expect((await tell(whole, sign(whole))).status).toBe(200);
    const larger = padded(2 ** 20 + 1);
    const response = await fetch(`${fixture.server.url}/v1/stripe-webhook`, {
      method: "POST",
      body: larger,
      headers: { "stripe-signature": sign(larger) },
    });
    expect(response.status).toBe(413);
    await response.body?.cancel();
  });

  test("of unknown shape within a known kind changes nothing and is taken", async () => {
    const odd = ["payment_intent.succeeded", "checkout.session.completed", "charge.refunded", "charge.dispute.created"];
    for (const [index, type] of odd.entries()) {
      const body = delivery(`evt_odd_${index}`, type, {
        id: 5,
        amount: "many",
        metadata: null,
        payment_intent: [],
      });
      expect((await tell(body, sign(body))).status).toBe(200);
    }
    expect(await fixture.findings()).toEqual([]);
  });

  test("for a payment that is not ours changes nothing", async () => {
    const body = delivery("evt_foreign", "payment_intent.succeeded", {
      id: "pi_foreign",
      amount_received: 1000,
      currency: "usd",
      metadata: { topUpQuoteId: "0123456789abcdef" },
    });
    expect((await tell(body, sign(body))).status).toBe(200);
    const rows = await fixture.payment.database.read((tx) =>
      tx.all<{ refund: string | null }>("SELECT refund FROM card_payments WHERE id = 'pi_foreign'"),
    );
    expect(rows).toEqual([{ refund: null }]);
    expect(await fixture.findings()).toEqual([]);
  });

  test("H: is credited before the response, and credited once if it arrives a hundred times at once", async () => {
    const address = testAddress("Hundred");
    const { topUpQuote, paymentSession } = await fixture.topUp(`/v1/top-up/payment-intent/${address}/usd/1000`);
    const body = delivery("evt_hundred", "payment_intent.succeeded", {
      id: paymentSession.id,
      amount_received: 1000,
      currency: "usd",
      metadata: { topUpQuoteId: topUpQuote["topUpQuoteId"] },
    });
    const first = await tell(body, sign(body));
    expect(first.status).toBe(200);
    expect(await fixture.balance(address)).toBe(BigInt(topUpQuote["winstonCreditAmount"] ?? ""));
    const responses = await Promise.all(Array.from({ length: 100 }, () => tell(body, sign(body))));
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
    // The same payment under another event's name is the same payment.
    const again = body.replace("evt_hundred", "evt_hundred_and_one");
    expect((await tell(again, sign(again))).status).toBe(200);
    expect(await fixture.balance(address)).toBe(BigInt(topUpQuote["winstonCreditAmount"] ?? ""));
    expect(await fixture.findings()).toEqual([]);
  });

  test("H: is not said to be taken while the ledger cannot write", async () => {
    const server = openPaymentServer(() => [
      createWebhookRoutes({
        events: {
          take: async () => {
            throw new Failure("database_unavailable", {});
          },
        },
        secrets: [webhookSecret],
        clock: fixture.payment.clock.now,
      }),
    ]);
    const response = await fetch(`${server.url}/stripe-webhook`, {
      method: "POST",
      body: unknown,
      headers: { "stripe-signature": sign(unknown) },
    });
    expect(response.status).toBe(503);
    await server.close();
  });

  test("signed with either of two secrets is taken while they are exchanged", async () => {
    const taken: string[] = [];
    const server = openPaymentServer(() => [
      createWebhookRoutes({
        events: {
          take: async ({ id }) => {
            taken.push(id);
            return "nothing";
          },
        },
        secrets: ["whsec_old", "whsec_new"],
        clock: fixture.payment.clock.now,
      }),
    ]);
    const statuses = await Promise.all(
      ["whsec_old", "whsec_new", "whsec_none"].map(async (secret) => {
        const headers = { "stripe-signature": sign(unknown, secret) };
        return (await fetch(`${server.url}/stripe-webhook`, { method: "POST", body: unknown, headers })).status;
      }),
    );
    expect(statuses).toEqual([200, 200, 400]);
    expect(taken).toHaveLength(2);
    await server.close();
  });

  test("finds no route while no cards are taken, and says so in words that clients know", async () => {
    const server = openPaymentServer(() => [createWebhookRoutes({ events: undefined, secrets: [], clock: Date.now })]);
    const response = await fetch(`${server.url}/stripe-webhook`, { method: "POST", body: unknown });
    expect(response.status).toBe(503);
    expect(await response.json()).toMatch(/Fiat \(Stripe\).*disabled/i);
    await server.close();
  });
});
