/**
 * Payments by card with everything real but the money: a ledger, the payment service's routes on a socket, and the
 * sandbox that represents Stripe on another, both by one clock that the test moves.
 * @module
 */
import { openStripeSandbox, type StripeSandbox } from "../../../src/dev/sandbox/stripe.ts";
import type { DeliveryFaults } from "../../../src/dev/sandbox/stripe-events.ts";
import { createSandboxRoutes } from "../../../src/dev/sandbox-routes/sandbox-routes.ts";
import { Failure } from "../../../src/failures.ts";
import { createPromoGuard, createSessionGuard } from "../../../src/http/payment/client-guards.ts";
import { createGiftRoutes } from "../../../src/http/payment/gift-routes.ts";
import { createQuoteRoutes } from "../../../src/http/payment/quote-routes.ts";
import { createWebhookRoutes } from "../../../src/http/payment/stripe-webhook-routes.ts";
import { createTopUpRoutes } from "../../../src/http/payment/top-up-routes.ts";
import { createPublicUrl } from "../../../src/http/public-url.ts";
import { silentLog } from "../../../src/lib/log.ts";
import type { UserAddress } from "../../../src/payment/addresses.ts";
import type { CardProvider } from "../../../src/payment/cards/card-provider.ts";
import { type CardEvents, createCardEvents } from "../../../src/payment/cards/card-settlement.ts";
import { type CardWatch, createCardWatch } from "../../../src/payment/cards/card-watch.ts";
import { openStripe } from "../../../src/payment/cards/stripe-client.ts";
import { defaultRules, type PriceRules } from "../../../src/payment/prices/price-rules.ts";
import { keyOf } from "../../../src/payment/prices/price-sources.ts";
import { createPrices } from "../../../src/payment/prices/prices.ts";
import { readDecimal } from "../../../src/payment/prices/rational.ts";
import { createGifts, type Gifts } from "../../../src/payment/top-ups/gifts.ts";
import { createPromos } from "../../../src/payment/top-ups/promo.ts";
import { findQuote, hasPaid } from "../../../src/payment/top-ups/quotes.ts";
import { createTopUps, type TopUps } from "../../../src/payment/top-ups/top-up.ts";
import { checkLedger, type Finding } from "../../../src/store/ledger/ledger-check.ts";
import { user } from "../../../src/store/ledger/transfers.ts";
import type { LedgerKind } from "../../support/ledger-databases.ts";
import { openTestPayment, type TestPayment } from "../../support/payment.ts";
import { openPaymentServer, type PaymentServer } from "../../support/payment-server.ts";

/** What a fixture is made with. */
export type CardFixtureOptions = Readonly<{
  seed?: number;
  kind?: LedgerKind;
  rules?: Partial<PriceRules>;
  returnOrigins?: readonly string[];
  publicUrl?: string;
  /** Prices of the feed by pair; absent ones cannot be had. An AR costs 7 dollars where nothing is said. */
  feed?: Readonly<Record<string, string>>;
  faults?: DeliveryFaults;
  /** Stripe elsewhere: another process. */
  stripe?: Readonly<{ url: string; secretKey: string }>;
  openQuotesMax?: number;
  /** Whether webhooks are notified to the service. */
  isNotified?: boolean;
}>;

/** a fixture. */
export type CardFixture = Readonly<{
  payment: TestPayment;
  server: PaymentServer;
  sandbox: StripeSandbox;
  sandboxUrl: string;
  provider: CardProvider;
  events: CardEvents;
  watch: CardWatch;
  gifts: Gifts;
  topUps: TopUps;
  /** Asks the service. */
  ask: (path: string, init?: RequestInit) => Promise<Asked>;
  /** Opens a top-up that must be a response 200. */
  topUp: (path: string) => Promise<TopUpResponse>;
  /** Pays a hosted checkout as a browser's form does. @returns The status of the page. */
  payPage: (url: string, card?: string) => Promise<Response>;
  /** Moves the clock until every webhook was taken. */
  settle: () => Promise<void>;
  balance: (address: UserAddress) => Promise<bigint>;
  findings: () => Promise<Finding[]>;
  close: () => Promise<void>;
}>;

/** A response; the body is whatever the service said. */
export type Asked = Readonly<{ status: number; headers: Headers; body: ReturnType<typeof JSON.parse> }>;

/** The body of a top-up. */
export type TopUpResponse = Readonly<{
  topUpQuote: Readonly<Record<string, string>> & Readonly<{ paymentAmount: number; quotedPaymentAmount: number }>;
  paymentSession: Readonly<{ id: string; client_secret: string; url: string }>;
  adjustments: readonly Readonly<Record<string, string>>[];
  fees: readonly Readonly<Record<string, string>>[];
  giftId?: string;
  giftUrl?: string;
}>;

export const sandboxKey = "sk_test_world";
export const webhookSecret = "whsec_world";

const usualFeed: Readonly<Record<string, string>> = {
  "arweave usd": "7",
  "arweave eur": "6.3",
  "arweave jpy": "1050",
  "arweave gbp": "5.25",
  "arweave cad": "9.8",
  "arweave aud": "10.5",
  "arweave brl": "38.5",
  "arweave hkd": "54.6",
  "arweave inr": "588",
  "arweave sgd": "9.1",
};

/** Opens a fixture. */
export async function openCardFixture(options: CardFixtureOptions = {}): Promise<CardFixture> {
  const payment = await openTestPayment({
    seed: options.seed ?? 1,
    ...(options.kind === undefined ? {} : { kind: options.kind }),
  });
  const { database: ledger, clock, random, makeId } = payment;
  const inUnit = () => random.below(2 ** 32) / 2 ** 32;
  const sandbox = openStripeSandbox({
    clock: clock.now,
    random: inUnit,
    log: silentLog,
    ...(options.faults === undefined ? {} : { faults: options.faults }),
  });
  let sandboxUrl = "";
  const listener = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: createSandboxRoutes({
      sandbox,
      secretKey: sandboxKey,
      pageUrl: () => sandboxUrl,
      priceFeed: () => undefined,
      log: silentLog,
    }),
  });
  sandboxUrl = `http://127.0.0.1:${listener.port}`;

  const rules: PriceRules = { ...defaultRules, ...options.rules };
  const feed = options.feed ?? usualFeed;
  const promos = createPromos({ database: ledger, rules: rules.promos, hasPaid, clock: clock.now });
  const prices = createPrices({
    rules,
    network: { price: async () => 1n },
    feed: {
      prices: async (pairs) =>
        pairs.map((pair) => {
          const price = readDecimal(feed[keyOf(pair)] ?? "");
          if (price === undefined) throw new Failure("fiat_oracle_unavailable", { pair });
          return price;
        }),
    },
    promos,
    clock: clock.now,
  });
  const provider = openStripe({
    ...(options.stripe ?? { url: sandboxUrl, secretKey: sandboxKey }),
    random: inUnit,
  });
  const log = silentLog;
  const events = createCardEvents({ ledger, makeId, countPromo: promos.count, clock: clock.now, log });
  const watch = createCardWatch({ ledger, provider, events, clock: clock.now, log });
  const gifts = createGifts({ ledger, makeId, clock: clock.now });
  const topUps = createTopUps({
    ledger,
    prices,
    provider,
    clock: clock.now,
    log,
    randomBytes: random.bytes,
    ...(options.openQuotesMax === undefined ? {} : { openQuotesMax: options.openQuotesMax }),
  });
  const publicUrl = createPublicUrl({
    setting: options.publicUrl,
    port: () => server.server.port,
    ownHosts: [],
  });
  const guards = {
    promoGuard: createPromoGuard(clock.now, 1),
    sessionGuard: createSessionGuard(clock.now, 1),
  };
  const server: PaymentServer = openPaymentServer(() => [
    createTopUpRoutes({ topUps, ...guards, publicUrl, returnOrigins: options.returnOrigins ?? [] }),
    createQuoteRoutes({ quote: (id) => ledger.read((tx) => findQuote(tx, id)) }),
    createWebhookRoutes({ events, secrets: [webhookSecret], clock: clock.now }),
    createGiftRoutes({ gifts }),
  ]);
  const isNotified = options.isNotified ?? true;
  if (isNotified) sandbox.deliverTo({ url: `${server.url}/v1/stripe-webhook`, secret: webhookSecret });

  const ask = async (path: string, init: RequestInit = {}): Promise<Asked> => {
    const response = await fetch(`${server.url}${path}`, init);
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: text === "" ? undefined : JSON.parse(text),
    };
  };
  return {
    payment,
    server,
    sandbox,
    sandboxUrl,
    provider,
    events,
    watch,
    gifts,
    topUps,
    ask,
    topUp: async (path) => {
      const { status, body } = await ask(path);
      if (status !== 200) throw new Error(`${path} responded ${status}: ${JSON.stringify(body)}`);
      return body;
    },
    payPage: (url, card = "4242 4242 4242 4242") =>
      fetch(url, {
        method: "POST",
        body: new URLSearchParams({ cardNumber: card, expiry: "12 / 40", cvc: "123" }),
        redirect: "manual",
      }),
    settle: async () => {
      while (sandbox.deliveriesWaiting() > 0) {
        clock.advance(250);
        await sandbox.deliver(new AbortController().signal);
      }
    },
    balance: (address) => payment.held(user(address)),
    findings: () => checkLedger(ledger),
    close: async () => {
      provider.close();
      await sandbox.close();
      await server.close();
      await listener.stop(true);
      await payment.close();
    },
  };
}
