/**
 * What the API reference says of prices: of bytes, of payments, rates, and what payments may be.
 * Source: docs/reference/payment.md#routes.
 * @module
 */
import { priceParameters } from "../payment/parameters.ts";
import { signed } from "./payment-account-descriptions.ts";
import {
  type Description,
  inPath,
  inQuery,
  json,
  type Parameter,
  patterns,
  type Responses,
  record,
  ref,
  refusals,
  type Schema,
  textSchema,
} from "./words.ts";

const winc: Schema = { type: "string", pattern: patterns.digits, description: "Winc." };
const adjustments: Schema = { type: "array", items: ref("Adjustment") };
const integer: Schema = { type: "integer", minimum: 0 };
const largeInteger: Schema = {
  oneOf: [integer, { type: "string", pattern: patterns.digits }],
  description: "Beyond 2^53 − 1 as text.",
};

/** Records that the descriptions below refer to. */
export const paymentPriceRecords: Readonly<Record<string, Schema>> = {
  Adjustment: record(
    {
      name: textSchema,
      description: textSchema,
      operatorMagnitude: { type: "string", pattern: "^-?[0-9]+(\\.[0-9]+)?$" },
      operator: { type: "string", enum: ["multiply", "add"] },
      adjustmentAmount: {
        type: "string",
        pattern: "^-?[0-9]+$",
        description:
          "What the step added, below 0 where it took away: winc, or of a payment in fiat money its smallest unit.",
      },
      "promoCode?": { type: "string", description: "Only where a promo code was used." },
    },
    "One step on the way to a price.",
  ),
  BytesPrice: record({ winc, adjustments }),
  PaymentPrice: record(
    {
      winc,
      adjustments,
      fees: adjustments,
      actualPaymentAmount: largeInteger,
      quotedPaymentAmount: largeInteger,
    },
    "`winc` is what the account is credited with. Of fiat money `actualPaymentAmount` is what is charged and " +
      "`quotedPaymentAmount` what it is without promo codes; of tokens both are the payment's worth in winc, before " +
      "fees.",
  ),
  Rates: record({
    winc: largeInteger,
    fiat: {
      type: "object",
      additionalProperties: { type: "number" },
      description: "By currency, whole units; fees are in it.",
    },
    adjustments,
  }),
  Rate: record({ currency: textSchema, rate: { type: "number" } }),
  Currencies: record({
    supportedCurrencies: { type: "array", items: textSchema },
    limits: { type: "object", additionalProperties: ref("CurrencyLimits") },
  }),
  CurrencyLimits: record(
    {
      minimumPaymentAmount: integer,
      maximumPaymentAmount: integer,
      suggestedPaymentAmounts: { type: "array", items: integer },
      stripeMinimumPaymentAmount: integer,
      zeroDecimalCurrency: { type: "boolean", description: "The smallest unit is the whole one." },
    },
    "In the currency's smallest unit, both ends inclusive.",
  ),
};

const prices = "Prices";

const noNetwork = refusals("pricing_oracle_unavailable");
const noFeed = refusals("fiat_oracle_unavailable");

const ofPayments: Responses = {
  200: json("What it buys.", ref("PaymentPrice")),
  ...refusals("price_amount_invalid", "payment_rejected"),
  ...refusals("invalid_signature", "too_many_requests"),
  ...noFeed,
};

function ofBytes(path: string, parameter: Parameter): Description {
  return {
    method: "GET",
    path,
    tag: prices,
    summary: "What an upload of so many bytes costs",
    parameters: [parameter],
    responses: {
      200: json("The price.", ref("BytesPrice")),
      ...refusals("invalid_byte_count"),
      ...noNetwork,
    },
  };
}

/** Every route of prices. */
export const paymentPriceDescriptions: readonly Description[] = [
  ofBytes("/price/bytes/:amount", priceParameters.bytes),
  ofBytes("/price/:type", priceParameters.bytesAlone),
  {
    method: "GET",
    path: "/price/:type/:amount",
    tag: prices,
    summary: "What a payment buys",
    description: "Promo codes are those of the address that is named, or of whoever signed.",
    parameters: [
      inPath("type", textSchema, "usd", "A currency, `fiat` for US dollars, or a token."),
      priceParameters.amount,
      inQuery("promoCode", textSchema, "Promo codes, separated by commas; currencies only."),
      inQuery(
        "destinationAddress",
        textSchema,
        "The account that is to be credited; it stands before the one that signed.",
      ),
      ...signed,
    ],
    responses: ofPayments,
  },
  {
    method: "GET",
    path: "/rates",
    tag: prices,
    summary: "What a gibibyte costs",
    responses: {
      200: json("The rates.", ref("Rates")),
      ...refusals("pricing_oracle_unavailable", "fiat_oracle_unavailable"),
    },
  },
  {
    method: "GET",
    path: "/rates/:currency",
    tag: prices,
    summary: "What one native token costs, without fees",
    parameters: [inPath("currency", textSchema, "usd", "A currency.")],
    responses: { 200: json("The rate.", ref("Rate")), ...refusals("invalid_currency"), ...noFeed },
  },
  {
    method: "GET",
    path: "/currencies",
    tag: prices,
    summary: "Currencies, and what payments in them may be",
    responses: { 200: json("The limits, after today's rates.", ref("Currencies")), ...noFeed },
  },
];
