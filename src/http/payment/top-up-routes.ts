/**
 * Top-ups over HTTP: a quote with its session for a request.
 * Source: docs/reference/payment.md#top-ups.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import { giftWord, type QuoteTerms } from "../../payment/top-ups/quotes.ts";
import type { TopUp, TopUpRequest, TopUps } from "../../payment/top-ups/top-up.ts";
import { contextOf } from "../context.ts";
import type { PublicUrl } from "../public-url.ts";
import { jsonResponse } from "../responses.ts";
import { isoDate } from "./credit-records.ts";
import { redeemPath } from "./gift-routes.ts";
import { adjustmentRecord, wireInteger } from "./price-records.ts";
import type { PromoGuard } from "./promo-guard.ts";
import type { SessionGuard } from "./session-guard.ts";
import { noStore } from "./signer.ts";
import { readTopUp } from "./top-up-request.ts";
import { fromLedger } from "./unavailable.ts";

/** What the routes ask. */
export type TopUpRoutesOptions = Readonly<{
  /** Undefined: no cards are taken. */
  topUps: TopUps | undefined;
  promoGuard: PromoGuard;
  sessionGuard: SessionGuard;
  publicUrl: PublicUrl;
  /** The only origins that a checkout may return to; empty: any. */
  returnOrigins: readonly string[];
}>;

/** The provider may take its time, and is asked again. */
const silenceSeconds = 120;

/** Creates the routes. */
export function createTopUpRoutes(options: TopUpRoutesOptions): AnyElysia {
  const { topUps, promoGuard, sessionGuard, publicUrl, returnOrigins } = options;
  return new Elysia({ strictPath: true }).get(
    "/top-up/:method/:address/:currency/:amount",
    async ({ params, request }) => {
      if (topUps === undefined) throw new Failure("fiat_off", {});
      const context = contextOf(request);
      const rules = { publicUrl: publicUrl(request), origins: returnOrigins };
      const wish = readTopUp(params, new URLSearchParams(context.target.query), rules);
      if (!context.headOnly) sessionGuard.admit(request);
      context.allowSilence(silenceSeconds);
      const work = () => start(topUps, wish, rules.publicUrl, context.headOnly, request.signal);
      const record = await (wish.promoCodes.length > 0 ? promoGuard.guarded(request, work) : work());
      return jsonResponse(record, 200, noStore);
    },
  );
}

/** A question about headers alone opens no session. */
async function start(
  topUps: TopUps,
  wish: TopUpRequest,
  publicUrl: string,
  headOnly: boolean,
  signal: AbortSignal,
): Promise<Readonly<Record<string, unknown>>> {
  if (headOnly) {
    await topUps.price(wish, signal);
    return {};
  }
  return topUpRecord(await fromLedger("database_unavailable", topUps.start(wish, signal)), publicUrl);
}

function topUpRecord(topUp: TopUp, publicUrl: string): Readonly<Record<string, unknown>> {
  const { quote, session, adjustments, fees, giftSecret } = topUp;
  return {
    topUpQuote: quoteRecord(quote),
    paymentSession: { id: session.id, client_secret: session.clientSecret, url: session.url },
    adjustments: adjustments.map(adjustmentRecord),
    fees: fees.map(adjustmentRecord),
    ...(giftSecret === undefined ? {} : giftRecord(giftSecret, publicUrl)),
  };
}

/** What redeems a gift, and the page on which a person does so. */
function giftRecord(secret: string, publicUrl: string): Readonly<Record<string, string>> {
  return { giftId: secret, giftUrl: `${publicUrl}${redeemPath}?id=${secret}` };
}

function quoteRecord(quote: QuoteTerms) {
  const { destination } = quote;
  const isGift = destination.kind === "gift";
  return {
    topUpQuoteId: quote.id,
    destinationAddress: isGift ? giftWord : destination.address,
    destinationAddressType: isGift ? giftWord : destination.type,
    paymentAmount: wireInteger(quote.paymentAmount),
    quotedPaymentAmount: wireInteger(quote.quotedPaymentAmount),
    currencyType: quote.currency,
    winstonCreditAmount: quote.winc.toString(),
    quoteExpirationDate: isoDate(quote.expiresAt),
    paymentProvider: "stripe",
    ...(isGift && destination.message !== undefined ? { giftMessage: destination.message } : {}),
  };
}
