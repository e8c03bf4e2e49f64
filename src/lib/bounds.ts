/**
 * Counts, heights and waits held within bounds. Amounts of money are no numbers, and have no part in this.
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
