/**
 * Prices in their wire format, and its schemas.
 * Source: docs/reference/payment.md#routes.
 * @module
 */
import type { Adjustment, BytesPrice, CurrencyLimits, PaymentPrice, Rates } from "../../payment/prices/price-types.ts";
import { record, ref, type Schema, textSchema } from "../reference/words.ts";
import { adjustments, largeInteger, winc } from "./payment-schemas.ts";

const integer: Schema = { type: "integer", minimum: 0 };

/** The records of prices, as components of the API reference. */
export const priceSchemas: Readonly<Record<string, Schema>> = {
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

/** The adjustment record: six texts; only adjustments by a promo code have `promoCode`. */
export function adjustmentRecord(adjustment: Adjustment) {
  const { name, description, operator, operatorMagnitude, promoCode } = adjustment;
  const adjustmentAmount = adjustment.adjustmentAmount.toString();
  const record = { name, description, operatorMagnitude, operator, adjustmentAmount };
  return promoCode === undefined ? record : { ...record, promoCode };
}

export function bytesPriceRecord({ winc, adjustments }: BytesPrice) {
  return { winc: winc.toString(), adjustments: adjustments.map(adjustmentRecord) };
}

export function paymentPriceRecord(price: PaymentPrice) {
  return {
    winc: price.winc.toString(),
    adjustments: price.adjustments.map(adjustmentRecord),
    fees: price.fees.map(adjustmentRecord),
    actualPaymentAmount: wireInteger(price.actualPaymentAmount),
    quotedPaymentAmount: wireInteger(price.quotedPaymentAmount),
  };
}

export function currenciesRecord(limits: ReadonlyMap<string, CurrencyLimits>) {
  const records = [...limits].map(([currency, limit]) => [currency, limitsRecord(limit)] as const);
  return { supportedCurrencies: [...limits.keys()], limits: Object.fromEntries(records) };
}

/** The rates as JSON text, whose numbers are decimal digits without an exponent. */
export function ratesText({ winc, fiat, adjustments }: Rates): string {
  const prices = [...fiat].map(([currency, price]) => `${JSON.stringify(currency)}:${price}`);
  const others = JSON.stringify({ winc: wireInteger(winc), adjustments: adjustments.map(adjustmentRecord) });
  return `${others.slice(0, -1)},"fiat":{${prices.join(",")}}}`;
}

/** One rate as JSON text. @param rate - Decimal text. */
export function rateText(currency: string, rate: string): string {
  return `{"currency":${JSON.stringify(currency)},"rate":${rate}}`;
}

/** An integer in JSON: a number below 2^53, its digits as text from there up. */
export function wireInteger(amount: bigint): number | string {
  const number = Number(amount);
  return Number.isSafeInteger(number) ? number : amount.toString();
}

function limitsRecord(limit: CurrencyLimits) {
  return {
    minimumPaymentAmount: wireInteger(limit.minimum),
    maximumPaymentAmount: wireInteger(limit.maximum),
    suggestedPaymentAmounts: limit.suggested.map(wireInteger),
    stripeMinimumPaymentAmount: wireInteger(limit.stripeMinimum),
    zeroDecimalCurrency: limit.isZeroDecimal,
  };
}
