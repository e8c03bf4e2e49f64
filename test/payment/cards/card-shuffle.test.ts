/**
 * Webhooks shuffled: whatever the order in which reports come, and however often, the balances end the same, and they
 * are those that follow from how things are at the provider.
 *
 * RUNS is the number of orders (the usual is small), SEED repeats one run.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { UserAddress } from "../../../src/payment/addresses.ts";
import type { StripeEvent } from "../../../src/payment/cards/card-provider.ts";
import { eventTypes, readEvent } from "../../../src/payment/cards/stripe-objects.ts";
import type { Row, Tx, Value } from "../../../src/store/ledger/ledger-database.ts";
import { testAddress } from "../../support/payment.ts";
import { createRandom, type Random } from "../../support/random.ts";
import { newSeed } from "../../support/seed.ts";
import { promoRule } from "../prices/price-fixture.ts";
import { type CardFixture, openCardFixture, sandboxKey, type TopUpResponse } from "./card-fixture.ts";

const { RUNS = "100" } = process.env;
const runs = Number(RUNS);
const seed = newSeed();

const people = ["Ann", "Ben", "Cem", "Dua", "Eli"].map(testAddress);
const redeemer = testAddress("Red");
/** Codes are used by one payment each: which of two comes first must not matter. */
const promoUsers = ["Pia", "Pol"].map(testAddress);
const quoteCount = 24;
const signal = new AbortController().signal;

/** Rows that every run begins with, in the order in which they may be written. */
const tables = ["quotes", "gifts"] as const;
/** Rows that a run leaves, in the order in which they may be removed. */
const written = [
  "gifts",
  "quotes",
  "card_payments",
  "card_disputes",
  "card_marks",
  "promo_uses",
  "promo_counts",
  "entries",
  "transfers",
  "accounts",
  "events",
];

let fixture: CardFixture;
let events: StripeEvent[];
let giftIds: string[];
let beginning: ReadonlyMap<string, readonly Row[]>;
let expected: Readonly<Record<string, bigint>>;

beforeAll(async () => {
  const random = createRandom(seed);
  fixture = await openCardFixture({ seed, isNotified: false, rules: { promos: [promoRule("HALF", "0.5")] } });
  const tops: TopUpResponse[] = [];
  for (let each = 0; each < quoteCount; each += 1) tops.push(await fixture.topUp(pathOf(random, each)));
  beginning = await rowsOf(fixture);
  giftIds = tops.flatMap(({ giftId }) => (giftId === undefined ? [] : [giftId]));
  // The last ones are paid when their quotes have long expired.
  const isLate = (index: number) => index >= quoteCount - 3;
  for (const [index, top] of tops.entries()) if (!isLate(index)) await live(fixture, random, top, index);
  fixture.payment.clock.advance(2 * 60 * 60_000);
  for (const [index, top] of tops.entries()) if (isLate(index)) await pay(fixture, top, "pm_card_visa");
  events = reported(fixture);
  expected = await status(fixture, tops);
  console.log(`${events.length} events of ${new Set(events.map(({ type }) => type)).size} kinds`);
});

afterAll(() => fixture.close());

test(
  `L3: reports in ${runs} orders end in the balances that follow from the provider's books`,
  async () => {
    for (let run = 0; run < runs; run += 1) {
      const random = createRandom(seed + run);
      await begin(fixture);
      await tellAll(random);
      await settleDoubts();
      const found = await balances();
      expect({ seed, run, found }).toEqual({ seed, run, found: expected });
      if (run % 10 === 0) expect(await fixture.findings()).toEqual([]);
    }
  },
  30_000 + runs * 2_000,
);

/** Tells everything, some of it twice, some of it at once; gifts are redeemed somewhere on the way. */
async function tellAll(random: Random): Promise<void> {
  const deliveries = shuffled(random, [...events, ...events.filter(() => random.chance(0.3))]);
  const moments = new Map(giftIds.map((id) => [random.below(deliveries.length), id]));
  let together: Promise<unknown>[] = [];
  for (const [index, event] of deliveries.entries()) {
    together.push(fixture.events.take(event));
    const secret = moments.get(index);
    if (secret !== undefined) together.push(tryRedeem(secret));
    if (random.chance(0.3)) {
      await Promise.all(together);
      together = [];
    }
  }
  await Promise.all(together);
  for (const secret of giftIds) await tryRedeem(secret);
}

/** A gift that is not paid for, or is taken back, is rejected; it is tried again at the end. */
async function tryRedeem(secret: string): Promise<void> {
  await fixture.gifts.redeem(secret, redeemer).then(
    () => undefined,
    () => undefined,
  );
}

/** Sums of refunds that are in doubt are requested; the list of events and open quotes stay unread. */
async function settleDoubts(): Promise<void> {
  for (let look = 0; look < 5; look += 1) await fixture.watch.look(signal);
}

async function balances(): Promise<Record<string, bigint>> {
  const rows = await fixture.payment.database.read((tx) =>
    tx.all<{ account: string; balance: bigint }>(
      "SELECT account, balance FROM accounts WHERE account LIKE 'user:%' AND balance <> 0",
    ),
  );
  return Object.fromEntries(rows.map(({ account, balance }) => [account.slice("user:".length), balance]));
}

function pathOf(random: Random, index: number): string {
  const method = (index + Math.floor(index / 10)) % 2 === 0 ? "payment-intent" : "checkout-session";
  const promoUser = promoUsers[index];
  if (promoUser !== undefined) return `/top-up/${method}/${promoUser}/usd/1000?promoCode=HALF`;
  const amount = random.pick([500, 1000, 3333, 99_999]);
  if (index % 4 === 0) return `/top-up/${method}/gift/usd/${amount}?destinationAddressType=gift`;
  return `/top-up/${method}/${random.pick(people)}/${random.pick(["usd", "eur"])}/${amount}`;
}

/** Lets something happen to a top-up; to the first twenty each kind of thing. */
async function live(of: CardFixture, random: Random, top: TopUpResponse, index: number): Promise<void> {
  const { sandbox, payment } = of;
  const isCheckout = top.paymentSession.id.startsWith("cs_");
  const fate = index < 20 ? index % 10 : random.below(10);
  if (fate === 0) {
    if (isCheckout) sandbox.expireCheckout(top.paymentSession.id);
    else sandbox.cancelIntent(top.paymentSession.id);
    return;
  }
  if (random.chance(0.3)) await pay(of, top, "pm_card_chargeDeclined");
  await pay(of, top, fate === 1 ? "pm_card_createDispute" : "pm_card_visa");
  const charge = chargeOf(of, top);
  const later = () => payment.clock.advance(random.pick([0, 0, 400, 1_000, 60_000]));
  if (fate >= 2 && fate <= 5) {
    for (let part = 0; part < 1 + random.below(3); part += 1) {
      later();
      const refund = sandbox.createRefund({ charge, amount: String(50 + random.below(50)) });
      later();
      if (index === 2 || random.chance(0.3)) sandbox.failRefund(String(refund["id"]));
    }
  }
  const dispute =
    fate === 1 ? firstDispute(of, charge) : fate >= 5 && fate <= 7 ? opened(of, charge, random) : undefined;
  if (dispute === undefined) return;
  later();
  const evidence = ["winning_evidence", "losing_evidence", "something", ""][index % 4] ?? "";
  if (evidence !== "") sandbox.respondToDispute(dispute, { evidence: { uncategorized_text: evidence } });
  if (evidence === "something" && random.chance(0.5)) sandbox.closeDispute(dispute);
}

function opened(of: CardFixture, charge: string, random: Random): string {
  const amount = random.pick([0, 77, 400]);
  return String(of.sandbox.openDispute(charge, "fraudulent", amount === 0 ? undefined : amount)["id"]);
}

async function pay(of: CardFixture, top: TopUpResponse, method: string): Promise<void> {
  const { id, url } = top.paymentSession;
  const cards: Readonly<Record<string, string>> = {
    pm_card_visa: "4242424242424242",
    pm_card_createDispute: "4000000000000259",
    pm_card_chargeDeclined: "4000000000000002",
  };
  const response = url === "" ? await confirm(of, id, method) : await of.payPage(url, cards[method]);
  await response.body?.cancel();
}

function confirm(of: CardFixture, id: string, method: string): Promise<Response> {
  return fetch(`${of.sandboxUrl}/v1/payment_intents/${id}/confirm`, {
    method: "POST",
    headers: { authorization: `Bearer ${sandboxKey}` },
    body: new URLSearchParams({ payment_method: method }),
  });
}

function intentOf(of: CardFixture, top: TopUpResponse) {
  const { id } = top.paymentSession;
  const intentId = id.startsWith("pi_") ? id : of.sandbox.fetchCheckout(id)["payment_intent"];
  return typeof intentId === "string" ? of.sandbox.fetch("payment_intent", intentId) : undefined;
}

function chargeOf(of: CardFixture, top: TopUpResponse): string {
  return String(intentOf(of, top)?.["latest_charge"]);
}

function allEvents(of: CardFixture) {
  return of.sandbox.events({ from: 0, to: undefined, types: [], limit: 100_000, after: undefined }).events;
}

function reported(of: CardFixture): StripeEvent[] {
  return allEvents(of)
    .map((event) => readEvent(event))
    .filter((event) => event !== undefined);
}

function firstDispute(of: CardFixture, charge: string): string {
  const objects = reported(of).map(({ object }) => object);
  return String(objects.find((object) => object["object"] === "dispute" && object["charge"] === charge)?.["id"]);
}

/** What every account should hold, from the provider's books alone. */
async function status(of: CardFixture, tops: readonly TopUpResponse[]): Promise<Record<string, bigint>> {
  const disputes = new Map(
    reported(of)
      .filter(({ object }) => object["object"] === "dispute")
      .map(({ object }) => [String(object["id"]), String(object["charge"])]),
  );
  const sums: Record<string, bigint> = {};
  for (const [index, top] of tops.entries()) {
    const intent = intentOf(of, top);
    const isLate = index >= quoteCount - 3;
    if (intent?.["status"] !== "succeeded" || isLate) continue;
    const charge = of.sandbox.fetch("charge", String(intent["latest_charge"]));
    const against = [...disputes]
      .filter(([, disputed]) => disputed === charge["id"])
      .map(([id]) => of.sandbox.fetch("dispute", id))
      .filter(({ status }) => status !== "won")
      .map(({ amount }) => BigInt(String(amount)));
    const lost = against.reduce((sum, amount) => sum + amount, BigInt(String(charge["amount_refunded"])));
    const paid = BigInt(String(charge["amount"]));
    const winc = BigInt(top.topUpQuote["winstonCreditAmount"] ?? "");
    const held = lost >= paid ? winc : (winc * lost) / paid;
    const account: UserAddress | string =
      top.giftId === undefined ? (top.topUpQuote["destinationAddress"] ?? "") : redeemer;
    sums[account] = (sums[account] ?? 0n) + winc - held;
  }
  return Object.fromEntries(Object.entries(sums).filter(([, sum]) => sum !== 0n));
}

async function rowsOf(of: CardFixture): Promise<Map<string, readonly Row[]>> {
  return await of.payment.database.read(async (tx) => {
    const rows = new Map<string, readonly Row[]>();
    for (const table of tables) rows.set(table, await tx.all(`SELECT * FROM ${table}`));
    return rows;
  });
}

/** Makes the ledger what it was before anything was notified; only that open quotes are not requested. */
async function begin(of: CardFixture): Promise<void> {
  await of.payment.database.write(async (tx) => {
    for (const table of written) await tx.run(`DELETE FROM ${table}`);
    for (const table of tables) for (const row of beginning.get(table) ?? []) await insert(tx, table, row);
    await tx.run("UPDATE quotes SET look_at = NULL");
    // The list of events has been read up to a day that is far away.
    await tx.run("INSERT INTO card_marks (name, at) VALUES ('events', ?)", BigInt(of.payment.clock.now()) * 2n);
  });
}

async function insert(tx: Tx, table: string, row: Row): Promise<void> {
  const names = Object.keys(row);
  const values: Value[] = Object.values(row);
  await tx.run(`INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`, ...values);
}

function shuffled<Value>(random: Random, list: readonly Value[]): Value[] {
  const left = [...list];
  const order: Value[] = [];
  while (left.length > 0) order.push(...left.splice(random.below(left.length), 1));
  return order;
}

test("the generated orders contain every kind of relevant report", () => {
  const kinds = new Set(events.map(({ type }) => type));
  // Sessions of cards have no payments that come later, and the sandbox tells refunds by their newer name.
  const never = [
    "checkout.session.async_payment_succeeded",
    "checkout.session.async_payment_failed",
    "charge.refund.updated",
  ];
  expect(eventTypes.filter((type) => !kinds.has(type) && !never.includes(type))).toEqual([]);
});
