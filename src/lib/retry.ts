/**
 * Retries with exponential backoff.
 * @module
 */
import { sleep } from "./stop.ts";

export type RetryPlan = Readonly<{
  attempts: number; // 1 or more, the first included
  firstMs: number; // wait before the second attempt
  longestMs: number; // maximum wait
}>;

/**
 * The wait before an attempt: it doubles each time, less a random part of up to a half, so that clients that failed
 * together do not retry together.
 *
 * @param attempt - Attempts already made, 1 or more.
 * @param random - In [0, 1).
 * @returns Milliseconds.
 */
export function retryWaitMs(plan: RetryPlan, attempt: number, random: () => number): number {
  const longest = Math.min(plan.longestMs, plan.firstMs * 2 ** Math.min(attempt - 1, 52));
  return Math.round(longest / 2 + (longest / 2) * random());
}

/**
 * Repeats an attempt until its result is final.
 *
 * @param attempt - Receives the number of earlier attempts.
 * @returns The final result, or the last result when no attempt is left.
 * @throws The error of an attempt, which is not retried, or the signal's reason.
 */
export async function retry<Value>(
  plan: RetryPlan,
  signal: AbortSignal,
  random: () => number,
  attempt: (made: number) => Promise<Value>,
  isFinal: (value: Value) => boolean,
): Promise<Value> {
  let made = 0;
  for (;;) {
    const value = await attempt(made);
    made += 1;
    if (isFinal(value) || made >= plan.attempts) return value;
    await sleep(retryWaitMs(plan, made, random), signal);
  }
}
