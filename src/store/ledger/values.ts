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
