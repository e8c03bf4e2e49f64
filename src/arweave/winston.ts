/**
 * Amounts: winston (10⁻¹² AR) on the chain, winc (credit for one winston of storage) in accounts.
 *
 * Both are `bigint` and branded, so that the compiler tells them apart.
 * @module
 */
import { assert } from "../lib/assert.ts";

/** An amount of the chain's smallest unit, 0 or more. */
export type Winston = bigint & { readonly __brand: "Winston" };

/** An amount of credit, 0 or more. */
export type Winc = bigint & { readonly __brand: "Winc" };

/** Winston in one AR. */
export const winstonPerAr = 1_000_000_000_000n;

/** Most digits of a text: the chain accepts 30, and 3 more for each of at most 30 redenominations. */
const amountDigitsMax = 120;

const amountPattern = /^(?:0|[1-9]\d*)$/;

/** Names an amount as winston. */
export function winston(amount: bigint): Winston {
  assert(amount >= 0n, "an amount is 0 or more");
  return amount as Winston;
}

/** Names an amount as winc. */
export function winc(amount: bigint): Winc {
  assert(amount >= 0n, "an amount is 0 or more");
  return amount as Winc;
}

/** Reads decimal winc; `undefined` for signs, leading zeros, fractions, and more than 120 digits. */
export function readWinc(text: string): Winc | undefined {
  return isAmount(text) ? (BigInt(text) as Winc) : undefined;
}

function isAmount(text: string): boolean {
  return text.length <= amountDigitsMax && amountPattern.test(text);
}
