/**
 * Values of rows as the rules use them.
 * @module
 */
import { assert } from "../../lib/assert.ts";

/** A time as `Clock` gives it. @param value - Unix milliseconds. */
export function readTime(value: bigint): number {
  const time = Number(value);
  assert(Number.isSafeInteger(time), "a time in the ledger is a safe integer");
  return time;
}

/** A count, or a height of a chain. */
export function readCount(value: bigint): number {
  const count = Number(value);
  assert(Number.isSafeInteger(count) && count >= 0, "a count in the ledger is a safe integer, 0 or more");
  return count;
}
