/**
 * Top-ups: from a request to a quote that is stored and a payment session at the card provider.
 *
 * The quote is on the disk before the request to the provider, so that every payment has its quote. A session whose
 * response was lost is never paid, because no client knows its URL; its quote expires.
 * Source: docs/reference/payment.md#top-ups.
 * @module
 */
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { LedgerDatabase } from "../../store/ledger/ledger-database.ts";
import type { CardProvider, CheckoutReturn, PaymentSession, SessionRequest } from "../cards/card-provider.ts";
import type { Adjustment, PaymentPrice, Prices } from "../prices/price-types.ts";
import { createGift } from "./gifts.ts";
import { areQuotesOpen, type Destination, endQuote, type QuoteTerms, storeQuote, storeSession } from "./quotes.ts";

/** The recipient of a top-up: an account, or the holder of a gift's secret. */
export type Recipient =
  | Extract<Destination, { kind: "account" }>
  | Readonly<{ kind: "gift"; message: string | undefined }>;

/** A request for a top-up; its addresses and URLs are valid. */
export type TopUpRequest = Readonly<{
  recipient: Recipient;
  currency: string;
  /** As written in the path. */
  amount: string;
  promoCodes: readonly string[];
  session:
    | Readonly<{ method: "payment-intent" }>
    | Readonly<{ method: "checkout-session"; back: (quoteId: string) => CheckoutReturn }>;
}>;

/** The result of a top-up. */
export type TopUp = Readonly<{
  quote: QuoteTerms;
  session: PaymentSession;
  adjustments: readonly Adjustment[];
  fees: readonly Adjustment[];
  /** Redeems the gift once it is paid for; returned only here. */
  giftSecret: string | undefined;
}>;

export type TopUpParts = Readonly<{
  ledger: LedgerDatabase;
  prices: Pick<Prices, "limits" | "topUp">;
  provider: CardProvider;
  /** Cryptographically random bytes for the ids of quotes and gifts. */
  randomBytes: (size: number) => Uint8Array;
  /** Quotes that may be open at once; 100,000 by default. */
  openQuotesMax?: number;
  clock: Clock;
  log: Log;
}>;

export type TopUps = Readonly<{
  /**
   * Checks that an amount can be paid, and computes its price.
   * @throws Failure as `Prices.topUp`.
   */
  price: (request: TopUpRequest, signal: AbortSignal) => Promise<PaymentPrice>;
  /**
   * Stores a quote and opens its session.
   * @throws Failure as `price`, `too_many_requests` when too many quotes are open, `payment_session_failed`, and
   *   what the ledger's `write` throws.
   */
  start: (request: TopUpRequest, signal: AbortSignal) => Promise<TopUp>;
}>;

/**
 * Lifetime of a quote. Stripe ends a checkout no sooner than 30 minutes after it was made, by its own clock;
 * the rest allows for the call and for clock differences.
 */
export const quoteLifeMs = 35 * 60_000;

/** Delay of the first status request, in case a webhook was lost. */
const firstLookMs = 2 * 60_000;

/** Quotes end within minutes; more of them are an attack, and each costs requests to the provider. */
const openQuotesMaxDefault = 100_000;

/** Random bytes of a quote's id. */
const quoteIdSize = 16;

export function createTopUps(parts: TopUpParts): TopUps {
  const { openQuotesMax = openQuotesMaxDefault } = parts;
  const price = (request: TopUpRequest, signal: AbortSignal) => priceOf(parts, request, signal);
  return {
    price,
    start: async (request, signal) => {
      const priced = await price(request, signal);
      const gift = request.recipient.kind === "gift" ? createGift(parts.randomBytes) : undefined;
      const destination: Destination =
        request.recipient.kind === "account" ? request.recipient : { ...request.recipient, giftId: gift?.giftId ?? "" };
      const quote = termsOf(parts, request, destination, priced);
      await parts.ledger.write(async (tx) => {
        if (await areQuotesOpen(tx, openQuotesMax)) throw new Failure("too_many_requests", { openQuotesMax });
        await storeQuote(tx, quote, quote.createdAt + firstLookMs);
      });
      const session = await openSession(parts, request, quote, signal);
      await parts.ledger.write((tx) => storeSession(tx, quote.id, session.id));
      const { adjustments, fees } = priced;
      return { quote, session, adjustments, fees, giftSecret: gift?.secret };
    },
  };
}

async function priceOf({ prices }: TopUpParts, request: TopUpRequest, signal: AbortSignal): Promise<PaymentPrice> {
  const { recipient, promoCodes } = request;
  const address = recipient.kind === "account" ? recipient.address : undefined;
  // An unreachable feed is reported before an invalid amount.
  await prices.limits(signal);
  return await prices.topUp(request.currency, request.amount, { promoCodes, address }, signal);
}

function termsOf(
  { randomBytes, clock }: TopUpParts,
  request: TopUpRequest,
  destination: Destination,
  priced: PaymentPrice,
): QuoteTerms {
  const now = clock();
  return {
    id: randomBytes(quoteIdSize).toHex(),
    method: request.session.method,
    destination,
    currency: request.currency,
    paymentAmount: priced.actualPaymentAmount,
    quotedPaymentAmount: priced.quotedPaymentAmount,
    winc: priced.winc,
    promoCodes: priced.adjustments.flatMap(({ promoCode }) => (promoCode === undefined ? [] : [promoCode])),
    createdAt: now,
    expiresAt: now + quoteLifeMs - (now % 1_000),
  };
}

/** Opens the session; a failure ends the quote. */
async function openSession(
  { provider, ledger, log }: TopUpParts,
  request: TopUpRequest,
  quote: QuoteTerms,
  signal: AbortSignal,
): Promise<PaymentSession> {
  const asked = sessionRequestOf(quote);
  try {
    if (request.session.method === "payment-intent") return await provider.createPaymentIntent(asked, signal);
    return await provider.createCheckout(asked, quote.expiresAt, request.session.back(quote.id), signal);
  } catch (error) {
    log.warn("payment session of a quote failed", { quoteId: quote.id, error });
    await ledger.write((tx) => endQuote(tx, quote.id, "failed", "no session was opened"));
    throw error;
  }
}

function sessionRequestOf(quote: QuoteTerms): SessionRequest {
  const { destination } = quote;
  const to =
    destination.kind === "account" ? `destination address "${destination.address}"` : "the holder of the gift's link";
  return {
    quoteId: quote.id,
    currency: quote.currency,
    amount: quote.paymentAmount,
    description: `${creditsOf(quote.winc)} credits for ${to}`,
    metadata: {
      winstonCreditAmount: quote.winc.toString(),
      ...(destination.kind === "account"
        ? { destinationAddress: destination.address, destinationAddressType: destination.type }
        : {}),
    },
  };
}

/** One credit is 10^12 winc. */
const wincDigits = 12;

/** Writes credits with as many decimal places as needed. */
export function creditsOf(winc: bigint): string {
  const digits = winc.toString().padStart(wincDigits + 1, "0");
  const places = digits.slice(-wincDigits).replace(/0+$/, "");
  return places === "" ? digits.slice(0, -wincDigits) : `${digits.slice(0, -wincDigits)}.${places}`;
}
