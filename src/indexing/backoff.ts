/**
 * When to try again: waits that double, with chance in them so that a thousand failed things do not return at once.
 * @module
 */

/** How waits grow. */
export type BackoffRule = Readonly<{
  /** The wait after the first failure, milliseconds. */
  firstMs: number;
  /** No wait is longer, milliseconds. */
  mostMs: number;
}>;

/** A number in [0, 1), passed in so that a seed repeats a run. */
export type Chance = () => number;

/**
 * Says how long to wait after a failure.
 *
 * @param failures - Failures so far in a row, 1 or more.
 * @param chance - Spreads the wait over its upper half.
 * @returns Whole milliseconds in [half the doubled wait, the doubled wait], never above `rule.mostMs`.
 */
export function backoffMs(rule: BackoffRule, failures: number, chance: Chance): number {
  // 2^31 is beyond every cap; the limit keeps the power finite.
  const doubled = rule.firstMs * 2 ** Math.min(Math.max(failures, 1) - 1, 31);
  const wait = Math.min(doubled, rule.mostMs);
  return Math.round(wait / 2 + (chance() * wait) / 2);
}
