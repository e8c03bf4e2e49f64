/**
 * Prices as they stand on the wire.
 * Source: docs/reference/payment.md#routes.
 * @module
 */
import type { Adjustment, BytesPrice, CurrencyLimits, PaymentPrice, Rates } from "../../payment/prices/price-types.ts";

/** The adjustment record: six texts, of which the promo code stands on its own rows only. */
export function adjustmentRecord(adjustment: Adjustment) {
  const { name, description, operator, operatorMagnitude, promoCode } = adjustment;
  const adjustmentAmount = adjustment.adjustmentAmount.toString();
  const record = { name, description, operatorMagnitude, operator, adjustmentAmount };
  return promoCode === undefined ? record : { ...record, promoCode };
}

/** The price of an upload. */
export function bytesPriceRecord({ winc, adjustments }: BytesPrice) {
  return { winc: winc.toString(), adjustments: adjustments.map(adjustmentRecord) };
}

/** What a payment buys. */
export function paymentPriceRecord(price: PaymentPrice) {
  return {
    winc: price.winc.toString(),
    adjustments: price.adjustments.map(adjustmentRecord),
    fees: price.fees.map(adjustmentRecord),
    actualPaymentAmount: wireInteger(price.actualPaymentAmount),
    quotedPaymentAmount: wireInteger(price.quotedPaymentAmount),
  };
}

/** What payments in the currencies may be. */
export function currenciesRecord(limits: ReadonlyMap<string, CurrencyLimits>) {
  const records = [...limits].map(([currency, limit]) => [currency, limitsRecord(limit)] as const);
  return { supportedCurrencies: [...limits.keys()], limits: Object.fromEntries(records) };
}

/** The rates as JSON text: their numbers are written digit by digit. */
export function ratesText({ winc, fiat, adjustments }: Rates): string {
  const prices = [...fiat].map(([currency, price]) => `${JSON.stringify(currency)}:${price}`);
  const others = JSON.stringify({ winc: wireInteger(winc), adjustments: adjustments.map(adjustmentRecord) });
  return `${others.slice(0, -1)},"fiat":{${prices.join(",")}}}`;
}

/** One rate as JSON text. @param rate - Decimal text. */
export function rateText(currency: string, rate: string): string {
  return `{"currency":${JSON.stringify(currency)},"rate":${rate}}`;
}

/** An integer of the wire: a number as long as a reader's floating point holds it, then its digits as text. */
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
