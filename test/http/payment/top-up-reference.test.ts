/**
 * What the API reference says of top-ups, reports and gifts, held against the routes and their responses.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { type AnyElysia, Elysia } from "elysia";
import { createGiftRoutes } from "../../../src/http/payment/gift-routes.ts";
import { paymentReference } from "../../../src/http/payment/payment-reference.ts";
import { createQuoteRoutes } from "../../../src/http/payment/quote-routes.ts";
import { createWebhookRoutes } from "../../../src/http/payment/stripe-webhook-routes.ts";
import { type Operation, operationsOf } from "../../../src/http/reference/document.ts";
import { type CardFixture, openCardFixture, sandboxKey, webhookSecret } from "../../payment/cards/card-fixture.ts";
import { testAddress, testStart } from "../../support/payment.ts";
import { cardlessTopUpRoutes } from "../../support/payment-server.ts";
import { closed, faultsOf } from "../../support/schema.ts";

const records = closed(paymentReference.records);
let fixture: CardFixture;
let app: AnyElysia;
let descriptions: readonly Operation[];

beforeAll(async () => {
  fixture = await openCardFixture();
  const routes: readonly AnyElysia[] = [
    cardlessTopUpRoutes(),
    createQuoteRoutes({ quote: async () => undefined }),
    createWebhookRoutes({ events: undefined, secrets: [], clock: Date.now }),
    createGiftRoutes({ gifts: fixture.gifts }),
  ];
  app = routes.reduce((all, each) => all.use(each), new Elysia() as AnyElysia);
  descriptions = operationsOf(app.routes);
});

afterAll(() => fixture.close());

const schemaOf = (path: string) =>
  descriptions.find((each) => each.path === path)?.responses[200]?.content?.["application/json"]?.schema ?? {};

test("it has every route and nothing else", () => {
  const found = app.routes.map(({ method, path }) => `${method} ${path}`);
  expect(descriptions.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(found.sort());
});

test("top-ups of every kind respond as described", async () => {
  const path = "/top-up/:method/:address/:currency/:amount";
  const address = testAddress("Anyone");
  for (const asked of [
    `/top-up/checkout-session/${address}/usd/1000`,
    `/top-up/checkout-session/${address}/usd/1000?uiMode=embedded`,
    `/top-up/payment-intent/${address}/jpy/1000`,
    "/top-up/payment-intent/gift/eur/1000?destinationAddressType=gift&giftMessage=Hello",
  ])
    expect(faultsOf(await fixture.topUp(asked), schemaOf(path), records), asked).toEqual([]);
});

test("a quote is returned as described", async () => {
  const { topUpQuote } = await fixture.topUp(`/top-up/checkout-session/${testAddress("Anyone")}/usd/1000`);
  const { status, body } = await fixture.ask(`/v1/top-up-quote/${topUpQuote["topUpQuoteId"]}`);
  expect(status).toBe(200);
  expect(faultsOf(body, schemaOf("/top-up-quote/:id"), records)).toEqual([]);
});

test("a gift is redeemed as described, and a report gets a response without a body", async () => {
  const { giftId, paymentSession } = await fixture.topUp(
    "/top-up/payment-intent/gift/usd/1000?destinationAddressType=gift",
  );
  await fetch(`${fixture.sandboxUrl}/v1/payment_intents/${paymentSession.id}/confirm`, {
    method: "POST",
    headers: { authorization: `Bearer ${sandboxKey}` },
    body: new URLSearchParams({ payment_method: "pm_card_visa" }),
  });
  await fixture.settle();
  const taken = await fixture.ask(`/redeem?id=${giftId}&destinationAddress=${testAddress("Anyone")}`);
  expect(taken.status).toBe(200);
  expect(faultsOf(taken.body, schemaOf("/redeem"), records)).toEqual([]);
  const at = testStart / 1_000;
  const body = "{}";
  const signature = createHmac("sha256", webhookSecret).update(`${at}.${body}`).digest("hex");
  const rejected = await fixture.ask("/stripe-webhook", {
    method: "POST",
    body,
    headers: { "stripe-signature": `t=${at},v1=${signature}` },
  });
  const [webhook] = descriptions.filter((each) => each.path === "/stripe-webhook");
  expect(Object.keys(webhook?.responses ?? {})).toContain(String(rejected.status));
});

test("every record that is named is there, and every required parameter has an example", () => {
  const text = JSON.stringify([descriptions, paymentReference.records]);
  for (const [, name] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g))
    expect(Object.keys(records)).toContain(name ?? "");
  for (const { parameters = [] } of descriptions)
    for (const each of parameters.filter(({ required }) => required)) expect(each.example).toBeString();
});
