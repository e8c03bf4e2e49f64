/**
 * What a parameter of a statement must be, the same on both databases: what one of them would refuse, or silently
 * change, neither is given.
 * @module
 */
import { assert } from "../../lib/assert.ts";
import type { Value } from "./database.ts";
import { amountMax } from "./limits.ts";

/** Takes any other parameter for a defect. */
export function checkValues(values: readonly Value[]): void {
  for (const value of values) {
    if (typeof value === "bigint")
      assert(value <= amountMax && value >= -amountMax, "an integer of the ledger lies within ±(2^62 − 1)");
    else if (value !== null)
      assert(!value.includes("\0"), "a text of the ledger holds no NUL, which PostgreSQL refuses");
  }
}
