/**
 * Minimum and maximum of counts, heights and waits. Amounts of money are `bigint` and are not handled here.
 * @module
 */

/** The value, or the least that it may be. */
export function atLeast(value: number, least: number): number {
  return Math.max(value, least);
}

/** The value, or the most that it may be. */
export function atMost(value: number, most: number): number {
  return Math.min(value, most);
}
