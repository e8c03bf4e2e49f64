/**
 * Opens the payment service: prices, cards, payments in tokens and by x402, and the routes.
 * @module
 */
import { readFileSync, statSync } from "node:fs";
import type { Wallet } from "../arweave/wallet.ts";
import type { Nodes } from "../chain/nodes.ts";
import type { Config } from "../config/settings.ts";
import { Failure } from "../failures.ts";
import { createHealth, type HealthCheck } from "../gateway/health.ts";
import type { AdminEndpoint } from "../http/admin-endpoints.ts";
import { createAccountHistoryRoutes } from "../http/payment/account-history-routes.ts";
import { createApprovalRoutes, createBalanceRoutes, createHistoryRoutes } from "../http/payment/account-routes.ts";
import {
  createPromoGuard,
  createReportGuard,
  createSessionGuard,
  type FailedAttemptGuard,
} from "../http/payment/client-guards.ts";
import { createGiftRoutes } from "../http/payment/gift-routes.ts";
import { createAccountEndpoints } from "../http/payment/operator-account-routes.ts";
import { createPaymentEndpoints, type RefundPayment } from "../http/payment/operator-payment-routes.ts";
import { createPromoEndpoints } from "../http/payment/operator-promo-routes.ts";
import { paymentReference } from "../http/payment/payment-reference.ts";
import { createPriceRoutes } from "../http/payment/price-routes.ts";
import { createQuoteRoutes } from "../http/payment/quote-routes.ts";
import { createReportEndpoints, createSolvencyRoutes } from "../http/payment/solvency-routes.ts";
import { createWebhookRoutes } from "../http/payment/stripe-webhook-routes.ts";
import { createTokenRoutes } from "../http/payment/token-payment-routes.ts";
import { createTopUpRoutes } from "../http/payment/top-up-routes.ts";
import { createX402Routes } from "../http/payment/x402-top-up-routes.ts";
import type { PublicUrl } from "../http/public-url.ts";
import type { Service } from "../http/service-app.ts";
import { createPaymentInformationRoutes } from "../http/service-information.ts";
import { systemClock } from "../lib/clock.ts";
import type { Metrics } from "../lib/metrics.ts";
import { createWalletAccess, createWalletTokens } from "../payment/access/wallet-access.ts";
import type { Token } from "../payment/addresses.ts";
import { createCardEvents } from "../payment/cards/card-settlement.ts";
import { runCardWatch } from "../payment/cards/card-watch.ts";
import { openStripe } from "../payment/cards/stripe-client.ts";
import { type Credits, createCredits, openExpiry } from "../payment/credits/credits.ts";
import type { LedgerReports } from "../payment/operator/ledger-reports.ts";
import { createOperatorAccounts } from "../payment/operator/operator-accounts.ts";
import { createOperatorPromos } from "../payment/operator/operator-promos.ts";
import { refundPayment } from "../payment/operator/operator-refunds.ts";
import { defaultRules, type PriceRules } from "../payment/prices/price-rules.ts";
import { readRules } from "../payment/prices/price-rules-reader.ts";
import { openNetworkPrice, openPriceFeed } from "../payment/prices/price-sources.ts";
import { freeAllowance, type Prices } from "../payment/prices/price-types.ts";
import { createPrices, feedPairsOf } from "../payment/prices/prices.ts";
import { pendingPaymentsOf } from "../payment/tokens/token-payment-store.ts";
import { createGifts } from "../payment/top-ups/gifts.ts";
import { readPayments } from "../payment/top-ups/payment-history.ts";
import { type CountPromo, createPromos, type Promos } from "../payment/top-ups/promo.ts";
import { findQuote, hasPaid } from "../payment/top-ups/quotes.ts";
import { createTopUps } from "../payment/top-ups/top-up.ts";
import type { X402 } from "../payment/x402/x402.ts";
import type { IndexReader } from "../store/index/index-types.ts";
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import { createTransferIds, historyOf, type MakeId, user } from "../store/ledger/transfers.ts";
import { version } from "../version.ts";
import type { AppContext } from "./base.ts";
import { badSettings } from "./complaints.ts";
import type { DataFolder } from "./data-folder.ts";
import { storedKey } from "./keys.ts";
import { openLedgerReports } from "./open-solvency.ts";
import { openTokens } from "./open-tokens.ts";
import { openX402 } from "./open-x402.ts";
import { randomSeed, systemRandom, systemRandomBytes } from "./random.ts";
import type { OpenSandbox } from "./sandbox.ts";
import { accountUrlOf } from "./wallet-pages.ts";

type PaymentParts = Readonly<{
  ledger: LedgerDatabase;
  reader: IndexReader;
  nodes: Nodes;
  metrics: Metrics;
  /** Base URLs at which clients reach the gateway and this service. */
  gatewayUrl: PublicUrl;
  publicUrl: PublicUrl;
  /** Receives native payments unless a setting names another address. */
  wallet: Readonly<{ wallet: Pick<Wallet, "address"> }> | undefined;
  /** Under `dev`: replaces Stripe and the price feed. */
  sandbox: Pick<OpenSandbox, "stripe" | "feedUrl"> | undefined;
  /** Databases that were found damaged since the start. */
  damage: HealthCheck;
}>;

export type OpenPayment = Readonly<{
  /** Undefined: SERVICES leaves it out, and only uploads and paid reading use the credits. */
  service: Service | undefined;
  credits: Credits;
  prices: Prices;
  /** Whether the price of storage is known and recent. */
  isNetworkPriceKnown: () => boolean;
  /** The receiving address of each token. */
  addresses: ReadonlyMap<Token, string>;
  /** Undefined: x402 is off. */
  x402: X402 | undefined;
  reports: LedgerReports;
  /** Endpoints of the admin API. */
  operatorEndpoints: readonly AdminEndpoint[];
}>;

/** Time between two searches for expired reservations, far below their lifetime. Milliseconds. */
const expiryEveryMs = 30_000;

/** Opens credits, prices and x402, and the service if SERVICES has it; `closers` close them. */
export function openPayment(app: AppContext, parts: PaymentParts): OpenPayment {
  const { config, log, closers } = app;
  const { ledger, nodes, metrics, sandbox } = parts;
  const makeId = createTransferIds(systemClock, systemRandom);
  const credits = createCredits({ database: ledger, clock: systemClock, makeId });
  closers.add("expiry", openExpiry({ credits, everyMs: expiryEveryMs, log }).close);
  const priced = openPrices(app, { nodes, ledger, feedUrl: sandbox?.feedUrl, metrics });
  const { prices, rules, isNetworkPriceKnown } = priced;
  const x402 = openX402(app, { ledger, makeId, prices, rules });
  const reports = openLedgerReports(app);
  const sales = config.SERVICES.includes("payment")
    ? openSales(app, parts, { credits, makeId, priced, x402, reports })
    : undefined;
  const accounts = createOperatorAccounts({ ledger, clock: systemClock, makeId });
  return {
    credits,
    prices,
    isNetworkPriceKnown,
    service: sales?.service,
    addresses: sales?.addresses ?? new Map(),
    x402: x402.x402,
    reports,
    operatorEndpoints: [
      ...createAccountEndpoints(accounts),
      ...createPaymentEndpoints({ ledger, rules, refund: sales?.refund }),
      ...createPromoEndpoints(createOperatorPromos({ ledger, rules: rules.promos, clock: systemClock })),
      ...createReportEndpoints({ ledger, reports, everyMs: config.SOLVENCY_PUBLISH_MS, clock: systemClock }),
    ],
  };
}

type SalesParts = Readonly<{
  credits: Credits;
  makeId: MakeId;
  priced: OpenPrices;
  x402: ReturnType<typeof openX402>;
  reports: LedgerReports;
}>;

/** Opens cards, payments in tokens, and the routes. */
function openSales(app: AppContext, parts: PaymentParts, { credits, makeId, priced, x402, reports }: SalesParts) {
  const { config, folder } = app;
  const { ledger, reader, nodes, metrics, gatewayUrl, publicUrl, wallet, sandbox, damage } = parts;
  const { prices, rules, promos } = priced;
  const tokens = createWalletTokens(tokenSecret(config, folder), systemClock);
  const access = createWalletAccess({ database: ledger, tokens, clock: systemClock });
  const promoGuard = createPromoGuard(systemClock, randomSeed());
  const reportGuard = createReportGuard(systemClock, randomSeed());
  const cards = openCards(app, {
    ledger,
    makeId,
    prices,
    promoGuard,
    publicUrl,
    accountUrl: accountUrlOf(config, gatewayUrl),
    countPromo: promos.count,
    sandbox: sandbox?.stripe,
  });
  const tokenPayments = openTokens(app, { reader, nodes, metrics, ledger, makeId, prices, rules, wallet });
  const { payments, addresses } = tokenPayments;
  const checks = [damage, ledger.faults, priced.check, cards.check, tokenPayments.check, x402.check];
  const health = createHealth({ clock: systemClock, checks, notes: [], readiness: [] });
  const service: Service = {
    reference: paymentReference,
    publicUrl: config.PAYMENT_PUBLIC_URL,
    routes: () => [
      createPaymentInformationRoutes({
        release: version,
        gatewayUrl,
        addresses,
        freeBytesMax: config.FREE_UPLOAD_BYTES,
        health,
        metrics: config.METRICS_ON_ADMIN_LISTEN ? undefined : metrics,
      }),
      createPriceRoutes({ prices, promoGuard }),
      ...cards.routes(),
      createTokenRoutes({ payments, reportGuard }),
      createX402Routes({ x402: x402.x402, publicUrl }),
      createBalanceRoutes({ credits, access, free: () => freeAllowance(config.FREE_UPLOAD_BYTES) }),
      createApprovalRoutes({ credits }),
      createHistoryRoutes({
        access,
        payments: (address, page) => ledger.read((tx) => readPayments(tx, address, page)),
        pending: (address, limit) => ledger.read((tx) => pendingPaymentsOf(tx, address, limit)),
      }),
      createSolvencyRoutes({ access, prove: reports.prove }),
      createAccountHistoryRoutes({
        access,
        history: (address, page) => ledger.read((tx) => historyOf(tx, user(address), page)),
      }),
    ],
  };
  return { service, addresses, refund: cards.refund };
}

/** The secret of wallet access tokens. It is stored, so that tokens stay valid after a restart. */
function tokenSecret(config: Config, folder: Pick<DataFolder, "keys">): Uint8Array {
  if (config.JWT_SECRET !== undefined) return new TextEncoder().encode(config.JWT_SECRET);
  return storedKey(folder.keys, "wallet-tokens");
}

type PricesParts = Readonly<{
  nodes: Pick<Nodes, "ask">;
  ledger: LedgerDatabase;
  /** Used if PRICE_FEED_URL is not set; the public feed by default. */
  feedUrl?: string | undefined;
  metrics: Metrics;
}>;

export type OpenPrices = Readonly<{
  rules: PriceRules;
  prices: Prices;
  promos: Promos;
  isNetworkPriceKnown: () => boolean;
  /** Reports unavailable and old prices. */
  check: HealthCheck;
}>;

/** Without sales only the price of the network is needed. */
const noFeed: ReturnType<typeof openPriceFeed> = {
  prices: async (wanted) => {
    throw new Failure("fiat_oracle_unavailable", { wanted });
  },
  ageMs: () => undefined,
  close: async () => undefined,
};

const publicFeedUrl = "https://api.coingecko.com/api/v3";

/** Size of a file with ten thousand promo codes. Bytes. */
const rulesBytesMax = 8 * 2 ** 20;

/** Health reports older prices: ten attempts have failed. Milliseconds. */
const notedAgeMs = 10n * 60_000n;

/** Opens the price sources; `closers` close them. @throws Misuse when the price rules cannot be read. */
export function openPrices(
  { config, log, closers }: Omit<AppContext, "folder">,
  { nodes, ledger, feedUrl, metrics }: PricesParts,
): OpenPrices {
  const rules = readRulesFile(config.PAYMENT_RULES_FILE);
  const source = { ageMaxMs: config.PRICE_AGE_MAX, clock: systemClock, random: systemRandom, log };
  const network = openNetworkPrice({ ...source, nodes });
  closers.add("network price", network.close);
  const url = config.PRICE_FEED_URL ?? feedUrl ?? publicFeedUrl;
  const isFeedUsed = config.SERVICES.includes("payment") || config.X402_PAY_TO !== undefined;
  const feed = isFeedUsed ? openPriceFeed({ ...source, url, pairs: feedPairsOf(rules) }) : noFeed;
  closers.add("price feed", feed.close);

  const ages = { "The network's price": network.ageMs, ...(isFeedUsed ? { "The price feed": feed.ageMs } : {}) };
  metrics.gaugesOf({
    name: "payment_price_age_seconds",
    help: "Seconds since the oldest price of a source was current; absent before the first price.",
    label: "source",
    values: ["network", "feed"],
    read: () => ({ ...ageSeconds("network", network.ageMs()), ...ageSeconds("feed", feed.ageMs()) }),
  });
  const promos = createPromos({ database: ledger, rules: rules.promos, hasPaid, clock: systemClock });
  return {
    rules,
    promos,
    prices: createPrices({ rules, network, feed, promos, clock: systemClock }),
    isNetworkPriceKnown: () => {
      const age = network.ageMs();
      return age !== undefined && age <= BigInt(config.PRICE_AGE_MAX);
    },
    check: () => Object.entries(ages).flatMap(([name, ageMs]) => ageNotes(name, ageMs())),
  };
}

/** Reads the price rules. @throws Misuse when the file is missing or invalid. */
export function readRulesFile(path: string | undefined): PriceRules {
  if (path === undefined) return defaultRules;
  try {
    const { size } = statSync(path);
    if (size > rulesBytesMax) throw new Error(`the file has ${size} bytes; at most ${rulesBytesMax} are allowed`);
    return readRules(readFileSync(path, "utf8"), defaultRules);
  } catch (error) {
    const reason = error instanceof Failure ? error.context["reason"] : error;
    throw badSettings([`PAYMENT_RULES_FILE: ${reason instanceof Error ? reason.message : reason}`]);
  }
}

function ageSeconds(source: string, ageMs: bigint | undefined): Readonly<Record<string, number>> {
  return ageMs === undefined ? {} : { [source]: Number(ageMs) / 1_000 };
}

function ageNotes(name: string, ageMs: bigint | undefined): readonly string[] {
  if (ageMs === undefined) return [`${name} is not known yet.`];
  return ageMs < notedAgeMs ? [] : [`${name} has not been current for ${ageMs / 60_000n} minutes.`];
}

type CardParts = Readonly<{
  ledger: LedgerDatabase;
  makeId: MakeId;
  prices: Pick<Prices, "limits" | "topUp">;
  countPromo: CountPromo;
  promoGuard: FailedAttemptGuard;
  /** The base URL at which clients reach the payment service. */
  publicUrl: PublicUrl;
  /** The page that sells credits; undefined where it is off. */
  accountUrl: PublicUrl | undefined;
  /** Under `dev`: used if no key of Stripe is set. */
  sandbox: OpenSandbox["stripe"] | undefined;
}>;

type OpenCards = Readonly<{
  routes: Service["routes"];
  /** Reports since when Stripe has been unreachable. */
  check: HealthCheck;
  /** Undefined: payments by card are off. */
  refund: RefundPayment | undefined;
}>;

/** An account at Stripe, or at the sandbox. */
type Account = Readonly<{ url: string; secretKey: string; webhookSecrets: readonly string[] }>;

const stripeUrl = "https://api.stripe.com";

/**
 * Opens payments by card; `closers` close them. Without a key of Stripe the card routes respond that they are off, and
 * gifts can still be redeemed.
 *
 * @throws Misuse when Stripe's key is set and the secret of its webhooks is not.
 */
function openCards({ config, log, closers }: AppContext, parts: CardParts): OpenCards {
  const { ledger, makeId, prices, countPromo, promoGuard, publicUrl, sandbox } = parts;
  const gifts = createGifts({ ledger, makeId, clock: systemClock });
  const account = stripeAccountOf(config, sandbox);
  const provider = account && openStripe({ ...account, random: systemRandom });
  const events = provider && createCardEvents({ ledger, makeId, countPromo, clock: systemClock, log });
  const topUps =
    provider && createTopUps({ ledger, prices, provider, randomBytes: systemRandomBytes, clock: systemClock, log });
  const watch =
    provider && events && runCardWatch({ ledger, provider, events, clock: systemClock, log }, config.CARD_WATCH_MS);
  if (provider !== undefined) closers.add("card provider", provider.close);
  if (watch !== undefined) closers.add("card watch", watch.close);
  const secrets = account?.webhookSecrets ?? [];
  const sessionGuard = createSessionGuard(systemClock, randomSeed());
  const returnOrigins = config.TOP_UP_RETURN_ORIGINS;
  return {
    check: () => blindNotes(watch?.blindMs() ?? 0),
    refund:
      provider &&
      events &&
      ((order, signal) => refundPayment({ ledger, provider, events, clock: systemClock }, order, signal)),
    routes: () => [
      createTopUpRoutes({ topUps, promoGuard, sessionGuard, publicUrl, returnOrigins }),
      createQuoteRoutes({ quote: (id) => ledger.read((tx) => findQuote(tx, id)), accountUrl: parts.accountUrl }),
      createWebhookRoutes({ events, secrets, clock: systemClock }),
      createGiftRoutes({ gifts }),
    ],
  };
}

/** Health reports a longer time without a response of the provider: several attempts have failed. Milliseconds. */
const notedBlindMs = 5 * 60_000;

function blindNotes(blindMs: number): readonly string[] {
  if (blindMs < notedBlindMs) return [];
  return [`Stripe has not been reached for ${Math.floor(blindMs / 60_000)} minutes.`];
}

/** The account of the settings, or the sandbox. @throws Misuse when the webhook secret is missing. */
export function stripeAccountOf(config: Config, sandbox: OpenSandbox["stripe"] | undefined): Account | undefined {
  const { STRIPE_SECRET_KEY: secretKey, STRIPE_WEBHOOK_SECRET: webhookSecret } = config;
  if (secretKey === undefined)
    return sandbox === undefined ? undefined : { ...sandbox, webhookSecrets: [sandbox.webhookSecret] };
  if (webhookSecret === undefined)
    throw badSettings(["STRIPE_WEBHOOK_SECRET must be set when STRIPE_SECRET_KEY is: it verifies reports of payments"]);
  const webhookSecrets = webhookSecret.split(",").map((secret) => secret.trim());
  return { url: originOf(config.STRIPE_API_URL ?? stripeUrl), secretKey, webhookSecrets };
}

function originOf(url: string): string {
  return url.replace(/\/+$/, "");
}
