/**
 * The smallest unit of each currency: the whole one, its hundredth, or its thousandth.
 *
 * The card provider counts payments in it, so that a wrong word on it sells credits at a hundred times the price, or
 * at a hundredth.
 * Source: ISO 4217; Stripe's "Zero-decimal currencies", "Three-decimal currencies".
 * @module
 */

/** Currencies whose smallest unit is the whole one. The Ugandan shilling is left out: Stripe counts it both ways. */
const wholes = new Set([
  "bif",
  "clp",
  "djf",
  "gnf",
  "jpy",
  "kmf",
  "krw",
  "mga",
  "pyg",
  "rwf",
  "vnd",
  "vuv",
  "xaf",
  "xof",
  "xpf",
]);

/** Currencies that are divided by a thousand, in which no prices are made. */
const thousands = new Set(["bhd", "iqd", "jod", "kwd", "lyd", "omr", "tnd"]);

/** Writes an amount for people: "10.00 USD". @param amount - In the currency's smallest unit. */
export function writeMoney(amount: bigint, code: string): string {
  const places = wholes.has(code) ? 0 : 2;
  const digits = amount.toString().padStart(places + 1, "0");
  const whole = digits.slice(0, digits.length - places);
  return `${places === 0 ? whole : `${whole}.${digits.slice(-places)}`} ${code.toUpperCase()}`;
}

/**
 * What is wrong with a word on the unit of a currency.
 *
 * @param code - ISO 4217, lower case. @param isZeroDecimal - Whether its smallest unit is said to be the whole one.
 * @returns What would be right; `undefined` when it is, or when the currency is counted both ways.
 */
export function unitFault(code: string, isZeroDecimal: boolean): string | undefined {
  if (thousands.has(code)) return "is divided by a thousand: payments in it cannot be counted";
  if (code === "ugx" || wholes.has(code) === isZeroDecimal) return undefined;
  return isZeroDecimal
    ? "must not have zeroDecimalCurrency: its smallest unit is a hundredth"
    : "must have zeroDecimalCurrency true: its smallest unit is the whole one";
}
