/**
 * Chance from a seed, for tests that must be repeatable.
 * @module
 */

/** A source of chance. */
export type Random = Readonly<{
  /** A number of 0 ≤ n < 1. */
  next: () => number;
  /** A whole number of 0 ≤ n < bound. */
  below: (bound: number) => number;
  chance: (share: number) => boolean;
  pick: <Value>(list: readonly Value[]) => Value;
  bytes: (size: number) => Uint8Array;
}>;

/** Makes a source of chance; the same seed gives the same sequence (mulberry32). */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (bound: number): number => Math.floor(next() * bound);
  return {
    next,
    below,
    chance: (share) => next() < share,
    pick: (list) => {
      const value = list[below(list.length)];
      if (value === undefined) throw new Error("nothing to pick from");
      return value;
    },
    bytes: (size) => Uint8Array.from({ length: size }, () => below(256)),
  };
}
