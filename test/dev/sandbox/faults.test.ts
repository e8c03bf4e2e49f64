/**
 * Payments by card while Stripe is another process whose webhooks come late, twice, in any order or never, and which
 * is killed in the middle: the balances end as Stripe's books say.
 *
 * PAYMENTS is how many payments a seed makes, SEED repeats one.
 */
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "../../../src/lib/remove-folder.ts";
import {
  type CardFixture,
  openCardFixture,
  type TopUpResponse,
  webhookSecret,
} from "../../payment/cards/card-fixture.ts";
import { testAddress } from "../../support/payment.ts";
import { createRandom, type Random } from "../../support/random.ts";
import { seedsOr } from "../../support/seed.ts";
import { type StripeProcess, startStripe } from "./stripe-process.ts";

const { PAYMENTS = "20" } = process.env;
const payments = Number(PAYMENTS);
const secretKey = "sk_test_process";
const people = ["Ann", "Ben", "Cem"].map(testAddress);
const signal = new AbortController().signal;

/** Looks after which everything must have been found; each is short. */
const looksMax = 400;

let cleanUp: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const step of cleanUp.reverse()) await step();
  cleanUp = [];
});

/** What the test knows of one payment. */
type Made = Readonly<{ top: TopUpResponse; person: string; winc: bigint }>;

test.each(seedsOr([1, 2, 3]))(
  "with seed %i everything is credited and taken back as it should be",
  async (seed) => {
    const random = createRandom(seed);
    const folder = mkdtempSync(join(tmpdir(), "cairn-stripe-"));
    cleanUp.push(async () => removeFolder(folder));
    const options = {
      path: join(folder, "sandbox.sqlite"),
      port: 0,
      seed,
      secretKey,
      faults: { delayMsMax: 300, doubledShare: 0.3, lostShare: 0.3 },
    };
    let stripe = await startStripe(options);
    cleanUp.push(() => stripe.kill());
    const fixture = await openCardFixture({ seed, stripe: { url: stripe.url, secretKey }, isNotified: false });
    cleanUp.push(fixture.close);
    const target = { url: `${fixture.server.url}/v1/stripe-webhook`, secret: webhookSecret };
    fixture.payment.clock.set(Date.now());
    await fixture.watch.look(signal);
    stripe.deliverTo(target);

    const made: Made[] = [];
    for (let each = 0; each < payments; each += 1) {
      fixture.payment.clock.set(Date.now());
      made.push(await makeOne(fixture, stripe, random));
      if (each !== Math.floor(payments / 2)) continue;
      await stripe.kill();
      // Its stored responses remain, and waiting deliveries are sent.
      stripe = await startStripe({ ...options, port: stripe.port, seed: seed + 1_000 });
      stripe.deliverTo(target);
    }

    const expected = await booksOf(stripe, made);
    let found: Record<string, bigint> = {};
    for (let look = 0; look < looksMax; look += 1) {
      fixture.payment.clock.set(Date.now());
      await fixture.watch.look(signal);
      found = await balancesOf(fixture);
      if (Bun.deepEquals(found, expected)) break;
      await Bun.sleep(25);
    }
    expect(found).toEqual(expected);
    expect(await fixture.findings()).toEqual([]);
    // Late deliveries change nothing.
    await Bun.sleep(400); // time for late deliveries, which must change nothing
    expect(await balancesOf(fixture)).toEqual(expected);
  },
  120_000,
);

async function makeOne(fixture: CardFixture, stripe: StripeProcess, random: Random): Promise<Made> {
  const person = random.pick(people);
  const isPage = random.chance(0.5);
  const method = isPage ? "checkout-session" : "payment-intent";
  const top = await fixture.topUp(`/v1/top-up/${method}/${person}/usd/${random.pick([500, 1000, 2500])}`);
  const fate = random.below(6);
  const winc = BigInt(top.topUpQuote["winstonCreditAmount"] ?? "");
  if (fate === 0) return { top, person, winc };
  const isDisputed = fate === 1;
  if (isPage) {
    const page = await fixture.payPage(top.paymentSession.url, isDisputed ? "4000000000000259" : "4242424242424242");
    expect(page.status).toBe(303);
  } else {
    const payment_method = isDisputed ? "pm_card_createDispute" : "pm_card_visa";
    await post(stripe, `/v1/payment_intents/${top.paymentSession.id}/confirm`, { payment_method });
  }
  if (fate === 2) {
    const payment_intent = String((await paymentOf(stripe, top))?.["id"]);
    await post(stripe, "/v1/refunds", { payment_intent, amount: "123" });
  }
  return { top, person, winc };
}

/** What the accounts should hold by Stripe's books. */
async function booksOf(stripe: StripeProcess, made: readonly Made[]): Promise<Record<string, bigint>> {
  const sums: Record<string, bigint> = {};
  for (const { top, person, winc } of made) {
    const intent = await paymentOf(stripe, top);
    if (intent?.["status"] !== "succeeded") continue;
    const { amount, amount_refunded: refunded, disputed } = intent["latest_charge"];
    const lost = disputed === true ? amount : refunded;
    sums[person] = (sums[person] ?? 0n) + winc - (winc * BigInt(lost)) / BigInt(amount);
  }
  return Object.fromEntries(Object.entries(sums).filter(([, sum]) => sum !== 0n));
}

async function balancesOf(fixture: CardFixture): Promise<Record<string, bigint>> {
  const held = await Promise.all(people.map(async (person) => [person, await fixture.balance(person)] as const));
  return Object.fromEntries(held.filter(([, balance]) => balance !== 0n));
}

async function paymentOf(stripe: StripeProcess, { paymentSession: { id } }: TopUpResponse) {
  const intentId = id.startsWith("pi_") ? id : (await get(stripe, `/v1/checkout/sessions/${id}`)).payment_intent;
  return intentId === null ? undefined : await get(stripe, `/v1/payment_intents/${intentId}?expand[]=latest_charge`);
}

const authorization = `Bearer ${secretKey}`;

async function get(stripe: StripeProcess, path: string) {
  return JSON.parse(await (await fetch(`${stripe.url}${path}`, { headers: { authorization } })).text());
}

async function post(stripe: StripeProcess, path: string, fields: Record<string, string>): Promise<void> {
  const response = await fetch(`${stripe.url}${path}`, {
    method: "POST",
    headers: { authorization },
    body: new URLSearchParams(fields),
  });
  expect(response.status).toBe(200);
  await response.body?.cancel();
}
