/**
 * Time as a value that is passed in, so that tests can move it.
 * @module
 */

/** Milliseconds since the Unix epoch, now. */
export type Clock = () => number;

/** The machine's own clock. */
export const systemClock: Clock = () => Date.now();

/** Whole Unix seconds of a clock, as the wire's timestamps are. */
export function unixSeconds(clock: Clock): number {
  return Math.floor(clock() / 1_000);
}

/** The earlier of two times. */
export function earlier(left: number, right: number): number {
  return Math.min(left, right);
}

/** The later of two times. */
export function later(left: number, right: number): number {
  return Math.max(left, right);
}
