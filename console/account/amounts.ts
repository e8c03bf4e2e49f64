/**
 * Amounts of credits and of money, as texts and as whole numbers of their smallest unit.
 * @module
 */
import { decimalText } from "../../src/lib/quantity-text.ts";
import { bytesText } from "../page-parts.tsx";

/** One credit is 10^12 winc. */
const creditPlaces = 12;

/** Winc in credits, with at most 6 significant digits after leading zeros. */
export function creditsText(winc: bigint): string {
  const credits = Number(winc) / 10 ** creditPlaces;
  return credits.toLocaleString("en", { maximumSignificantDigits: 6, maximumFractionDigits: creditPlaces });
}

/** Winc, with separators: exact. */
export function wincText(winc: bigint): string {
  return `${winc.toLocaleString("en")} winc`;
}

/** Size whose price is the rate of a page. Bytes. */
export const ratedBytes = 2n ** 30n;

/** About how many bytes credits buy. @param rate - Winc for `ratedBytes`. */
export function storedText(winc: bigint, rate: bigint | undefined): string {
  if (rate === undefined) return "…";
  if (winc <= 0n) return bytesText(0);
  return rate === 0n ? "without limit" : `about ${bytesText(Number((winc * ratedBytes) / rate))}`;
}

/** An amount of the smallest unit with its code, as in "10.00 USD". */
export function moneyText(amount: bigint, places: number, code: string): string {
  return `${decimalText(amount, places)} ${code.toUpperCase()}`;
}

/** Digits of an amount that a person writes. */
const digitsMax = 24;

/** The amount of a text in whole ones, such as "10", "10.5" or "10,50"; undefined if it is not one. */
export function readAmount(text: string, places: number): bigint | undefined {
  const [, whole = "", fraction = ""] = /^\s*(\d+)(?:[.,](\d*))?\s*$/.exec(text) ?? [];
  const isTooLong = whole.length > digitsMax || fraction.length > places;
  return whole === "" || isTooLong ? undefined : BigInt(whole + fraction.padEnd(places, "0"));
}
