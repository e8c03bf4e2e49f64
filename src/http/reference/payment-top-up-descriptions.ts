/**
 * What the API reference says of top-ups by card: quotes with their sessions, what the provider reports, gifts.
 * Source: docs/reference/payment.md#top-ups.
 * @module
 */
import { giftParameters, topUpParameters } from "../payment/parameters.ts";
import {
  type Description,
  empty,
  inHeader,
  inPath,
  inQuery,
  json,
  record,
  ref,
  refusals,
  type Schema,
  textSchema,
} from "./words.ts";

const winc: Schema = { type: "string", pattern: "^[0-9]+$", description: "Winc." };
const date: Schema = { type: "string", format: "date-time" };
const page = { 200: { description: "The page.", content: { "text/html": { schema: textSchema } } } };
const adjustments: Schema = { type: "array", items: ref("Adjustment") };

/** Records that the descriptions below refer to. */
export const paymentTopUpRecords: Readonly<Record<string, Schema>> = {
  TopUpQuote: record({
    topUpQuoteId: textSchema,
    destinationAddress: textSchema,
    destinationAddressType: textSchema,
    paymentAmount: { type: "integer", description: "What is charged, in the currency's smallest unit." },
    quotedPaymentAmount: { type: "integer", description: "What it costs without promo codes." },
    currencyType: textSchema,
    winstonCreditAmount: winc,
    quoteExpirationDate: date,
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
    "giftId?": { type: "string", description: "What redeems the gift once it is paid for; told only here." },
    "giftUrl?": { type: "string", description: "The page on which a person takes it." },
  }),
  QuoteStanding: record({
    topUpQuoteId: textSchema,
    status: { type: "string", enum: ["open", "paid", "expired", "failed"] },
    wincCredited: winc,
    wincTakenBack: { ...winc, description: "Of it, what a refund or a dispute took back." },
    quoteExpirationDate: date,
  }),
  Redemption: record({
    message: textSchema,
    userBalance: winc,
    userAddress: textSchema,
    userCreationDate: date,
  }),
};

const topUps = "Top-ups";

const redemption: Omit<Description, "method"> = {
  path: "/redeem",
  tag: topUps,
  summary: "Take a gift",
  description:
    "Whoever knows the gift's id may take it, once. A browser that opens it without an address is shown a form.",
  parameters: [
    giftParameters.secret,
    giftParameters.destination,
    giftParameters.token,
    giftParameters.addressType,
    giftParameters.email,
  ],
  responses: {
    200: json("It was taken.", ref("Redemption")),
    ...refusals("payment_rejected", "database_unavailable"),
  },
};

/** Every route of top-ups. */
export const paymentTopUpDescriptions: readonly Description[] = [
  {
    method: "GET",
    path: "/top-up/:method/:address/:currency/:amount",
    tag: topUps,
    summary: "A quote, and a session to pay it with",
    description:
      "The quote holds until it expires; a payment made in time is credited whenever Stripe reports it. With " +
      "`destinationAddressType=gift` and the address `gift` the credits wait for whoever gets `giftId`.",
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
      ...refusals(
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
  },
  {
    method: "GET",
    path: "/top-up-quote/:id",
    tag: topUps,
    summary: "How a quote stands",
    description: "For whoever knows its id. Quotes that ended unpaid are removed after a while.",
    parameters: [topUpParameters.quoteId],
    responses: {
      200: json("What became of it.", ref("QuoteStanding")),
      ...refusals("not_found", "database_unavailable"),
    },
  },
  {
    method: "GET",
    path: "/done",
    tag: topUps,
    summary: "The page that completed checkouts return to",
    description: "Amount, credits and account, and whether they are there, of the quote that `topUpQuoteId` names.",
    responses: page,
  },
  {
    method: "GET",
    path: "/cancelled",
    tag: topUps,
    summary: "The page that abandoned checkouts return to",
    responses: page,
  },
  { ...redemption, method: "GET" },
  { ...redemption, method: "POST", description: `${redemption.description} Also as a form.` },
  {
    method: "POST",
    path: "/stripe-webhook",
    tag: topUps,
    summary: "Reports of Stripe",
    description: "Signed by Stripe; answered when what follows from it is on the disk.",
    parameters: [inHeader("stripe-signature", textSchema, "`t=…,v1=…`")],
    body: { type: "application/json", schema: { type: "object" }, example: {} },
    responses: {
      200: empty("It was taken in, now or before."),
      ...refusals("payment_rejected", "too_large", "fiat_off", "database_unavailable"),
    },
  },
];
