/**
 * Clocks are passed as values, so that tests control time.
 * @module
 */

/** The current time, milliseconds since the Unix epoch. */
export type Clock = () => number;

export const systemClock: Clock = () => Date.now();

/** The time in whole Unix seconds, as in timestamps of HTTP messages. */
export function unixSeconds(clock: Clock): number {
  return Math.floor(clock() / 1_000);
}
