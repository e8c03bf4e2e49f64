/**
 * Top-ups over HTTP: a quote, and a session at the card provider.
 * Source: docs/reference/payment.md#top-ups.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import { giftWord, type QuoteTerms } from "../../payment/top-ups/quotes.ts";
import type { TopUp, TopUpRequest, TopUps } from "../../payment/top-ups/top-up.ts";
import type { PublicUrl } from "../public-url.ts";
import { failureResponses, inPath, inQuery, json, record, ref, type Schema, textSchema } from "../reference/words.ts";
import { contextOf } from "../request-context.ts";
import { jsonResponse } from "../responses.ts";
import { described, type RouteDescription } from "../route-schema.ts";
import { isoDate } from "./credit-records.ts";
import { redeemPath } from "./gift-routes.ts";
import { adjustments, dateTime, winc } from "./payment-schemas.ts";
import { adjustmentRecord, wireInteger } from "./price-records.ts";
import type { PromoGuard } from "./promo-guard.ts";
import type { SessionGuard } from "./session-guard.ts";
import { noStore } from "./signer.ts";
import { readTopUp, topUpParameters } from "./top-up-request.ts";
import { fromLedger } from "./unavailable.ts";

export type TopUpRoutesOptions = Readonly<{
  /** Undefined: no cards are taken. */
  topUps: TopUps | undefined;
  promoGuard: PromoGuard;
  sessionGuard: SessionGuard;
  publicUrl: PublicUrl;
  /** The only origins that a checkout may return to; empty: any. */
  returnOrigins: readonly string[];
}>;

/** The provider can be slow, and requests to it are retried. */
const silenceSeconds = 120;

/** The records of top-ups, as components of the API reference. */
export const topUpSchemas: Readonly<Record<string, Schema>> = {
  TopUpQuote: record({
    topUpQuoteId: textSchema,
    destinationAddress: textSchema,
    destinationAddressType: textSchema,
    paymentAmount: { type: "integer", description: "What is charged, in the currency's smallest unit." },
    quotedPaymentAmount: { type: "integer", description: "The price without promo codes." },
    currencyType: textSchema,
    winstonCreditAmount: winc,
    quoteExpirationDate: dateTime,
    paymentProvider: textSchema,
    "giftMessage?": textSchema,
  }),
  PaymentSession: record(
    { id: textSchema, client_secret: textSchema, url: textSchema },
    "The session at Stripe; an empty text where it has none.",
  ),
  TopUp: record({
    topUpQuote: ref("TopUpQuote"),
    paymentSession: ref("PaymentSession"),
    adjustments,
    fees: adjustments,
    "giftId?": { type: "string", description: "Redeems the gift once it is paid for; returned only here." },
    "giftUrl?": { type: "string", description: "The page on which a person redeems it." },
  }),
};

const ofTopUp: RouteDescription = {
  tag: "Top-ups",
  summary: "A quote, and a session to pay it with",
  description:
    "The quote holds until it expires; a payment made in time is credited whenever Stripe reports it. With " +
    "`destinationAddressType=gift` and the address `gift` the credits wait for the person who gets `giftId`.",
  parameters: [
    topUpParameters.method,
    inPath("address", textSchema, "A".repeat(43), "The account that gets the credits."),
    inPath("currency", textSchema, "usd", "Currency."),
    topUpParameters.amount,
    topUpParameters.token,
    topUpParameters.addressType,
    topUpParameters.giftMessage,
    inQuery("promoCode", textSchema, "Promo codes, separated by commas."),
    topUpParameters.uiMode,
    topUpParameters.successUrl,
    topUpParameters.cancelUrl,
    topUpParameters.returnUrl,
  ],
  responses: {
    200: json("The quote and its session.", ref("TopUp")),
    ...failureResponses(
      "top_up_amount_invalid",
      "payment_rejected",
      "invalid_destination",
      "gifting_by_email_off",
      "too_many_requests",
      "fiat_oracle_unavailable",
      "payment_session_failed",
      "busy",
      "fiat_off",
      "database_unavailable",
    ),
  },
};

export function createTopUpRoutes(options: TopUpRoutesOptions): AnyElysia {
  const { topUps, promoGuard, sessionGuard, publicUrl, returnOrigins } = options;
  return new Elysia({ strictPath: true }).get(
    "/top-up/:method/:address/:currency/:amount",
    async ({ params, request }) => {
      if (topUps === undefined) throw new Failure("fiat_off", {});
      const context = contextOf(request);
      const rules = { publicUrl: publicUrl(request), origins: returnOrigins };
      const order = readTopUp(params, new URLSearchParams(context.target.query), rules);
      if (!context.headOnly) sessionGuard.admit(request);
      context.allowSilence(silenceSeconds);
      const work = () => start(topUps, order, rules.publicUrl, context.headOnly, request.signal);
      const topUp = await (order.promoCodes.length > 0 ? promoGuard.guarded(request, work) : work());
      return jsonResponse(topUp, 200, noStore);
    },
    { detail: described(ofTopUp) },
  );
}

/** A HEAD request opens no session. */
async function start(
  topUps: TopUps,
  order: TopUpRequest,
  publicUrl: string,
  headOnly: boolean,
  signal: AbortSignal,
): Promise<Readonly<Record<string, unknown>>> {
  if (headOnly) {
    await topUps.price(order, signal);
    return {};
  }
  return topUpRecord(await fromLedger("database_unavailable", topUps.start(order, signal)), publicUrl);
}

function topUpRecord(topUp: TopUp, publicUrl: string): Readonly<Record<string, unknown>> {
  const { quote, session, fees, giftSecret } = topUp;
  return {
    topUpQuote: quoteRecord(quote),
    paymentSession: { id: session.id, client_secret: session.clientSecret, url: session.url },
    adjustments: topUp.adjustments.map(adjustmentRecord),
    fees: fees.map(adjustmentRecord),
    ...(giftSecret === undefined ? {} : giftRecord(giftSecret, publicUrl)),
  };
}

/** The secret that redeems a gift, and the page on which a person does so. */
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
