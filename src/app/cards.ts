/**
 * Payments by card put together: Stripe or what stands for it, top-ups, reports, the watch, gifts.
 * @module
 */

import type { Config } from "../config/settings.ts";
import type { HealthCheck } from "../gateway/health.ts";
import { createGiftRoutes } from "../http/payment/gift-routes.ts";
import type { PromoGuard } from "../http/payment/promo-guard.ts";
import { createQuoteRoutes } from "../http/payment/quote-routes.ts";
import { createSessionGuard } from "../http/payment/session-guard.ts";
import { createTopUpRoutes } from "../http/payment/top-up-routes.ts";
import { createWebhookRoutes } from "../http/payment/webhook-routes.ts";
import type { PublicUrl } from "../http/public-url.ts";
import type { Service } from "../http/service.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import type { Log } from "../lib/log.ts";
import { createCardEvents } from "../payment/cards/card-settlement.ts";
import { runCardWatch } from "../payment/cards/card-watch.ts";
import type { Prices } from "../payment/prices/price-types.ts";
import { openStripe } from "../payment/providers/stripe-client.ts";
import { createGifts } from "../payment/top-ups/gifts.ts";
import type { CountPromo } from "../payment/top-ups/promo.ts";
import { findQuote } from "../payment/top-ups/quotes.ts";
import { createTopUps } from "../payment/top-ups/top-up.ts";
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import type { MakeId } from "../store/ledger/transfers.ts";
import { badSettings } from "./complaints.ts";
import { systemRandom } from "./random.ts";
import type { OpenSandbox } from "./sandbox.ts";

/** What they are opened with. */
export type CardParts = Readonly<{
  config: Config;
  ledger: LedgerDatabase;
  makeId: MakeId;
  prices: Pick<Prices, "limits" | "topUp">;
  countPromo: CountPromo;
  promoGuard: PromoGuard;
  /** Where a caller reaches the payment service. */
  publicUrl: PublicUrl;
  /** Under `dev`: what stands for Stripe where no key of Stripe's is set. */
  sandbox?: OpenSandbox["stripe"] | undefined;
  log: Log;
  closers: Closers;
}>;

/** Payments by card, open. */
export type OpenCards = Readonly<{
  routes: Service["routes"];
  /** Says since when Stripe has not been reached. */
  check: HealthCheck;
}>;

/** Where cards are taken. */
type Account = Readonly<{ url: string; secretKey: string; webhookSecrets: readonly string[] }>;

const stripeUrl = "https://api.stripe.com";

/**
 * Opens them; what has to be closed is closed by `closers`.
 *
 * Without a key of Stripe's the routes of cards say that they are off, and gifts can be redeemed.
 * @throws Misuse when Stripe's key is set and the key of its reports is not.
 */
export function openCards(parts: CardParts): OpenCards {
  const { config, ledger, makeId, prices, countPromo, promoGuard, publicUrl, log, closers } = parts;
  const gifts = createGifts({ ledger, makeId, clock: systemClock });
  const account = stripeAccountOf(config, parts.sandbox);
  const provider = account === undefined ? undefined : openStripe({ ...account, random: systemRandom });
  const events =
    provider === undefined ? undefined : createCardEvents({ ledger, makeId, countPromo, clock: systemClock, log });
  const topUps =
    provider === undefined
      ? undefined
      : createTopUps({ ledger, prices, provider, randomBytes, clock: systemClock, log });
  const watch =
    provider === undefined || events === undefined
      ? undefined
      : runCardWatch({ ledger, provider, events, clock: systemClock, log }, config.CARD_WATCH_MS);
  if (provider !== undefined) closers.add("card provider", provider.close);
  if (watch !== undefined) closers.add("watch over card payments", watch.close);
  const secrets = account?.webhookSecrets ?? [];
  const sessionGuard = createSessionGuard(systemClock, Math.floor(systemRandom() * 2 ** 32));
  const guards = { promoGuard, sessionGuard };
  const returnOrigins = config.TOP_UP_RETURN_ORIGINS;
  return {
    check: () => blindNotes(watch?.blindMs() ?? 0),
    routes: [
      () => createTopUpRoutes({ topUps, ...guards, publicUrl, returnOrigins }),
      () => createQuoteRoutes({ quote: (id) => ledger.read((tx) => findQuote(tx, id)) }),
      () => createWebhookRoutes({ events, secrets, clock: systemClock }),
      () => createGiftRoutes({ gifts }),
    ],
  };
}

/** A provider that is not reached for so long is worth a word: several looks have failed. Milliseconds. */
const notedBlindMs = 5 * 60_000;

function blindNotes(blindMs: number): readonly string[] {
  if (blindMs < notedBlindMs) return [];
  return [`Stripe has not been reached for ${Math.floor(blindMs / 60_000)} minutes.`];
}

/** Stripe's account of the settings, else what stands for it. @throws Misuse when one of its keys is missing. */
export function stripeAccountOf(config: Config, sandbox: OpenSandbox["stripe"] | undefined): Account | undefined {
  const { STRIPE_SECRET_KEY: secretKey, STRIPE_WEBHOOK_SECRET: webhookSecret } = config;
  if (secretKey === undefined)
    return sandbox === undefined ? undefined : { ...sandbox, webhookSecrets: [sandbox.webhookSecret] };
  if (webhookSecret === undefined)
    throw badSettings(["STRIPE_WEBHOOK_SECRET must be set where STRIPE_SECRET_KEY is: payments are reported with it"]);
  const webhookSecrets = webhookSecret.split(",").map((secret) => secret.trim());
  return { url: originOf(config.STRIPE_API_URL ?? stripeUrl), secretKey, webhookSecrets };
}

function originOf(url: string): string {
  return url.replace(/\/+$/, "");
}

function randomBytes(size: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(size));
}
