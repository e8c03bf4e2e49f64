/**
 * The seed of tests that use chance: every run prints the one it has, and SEED repeats it.
 * @module
 */

const { SEED } = process.env;

/** Seeds that are made up are below this, so that they are easily read and typed. */
const seedsMax = 1_000_000_000;

if (SEED !== undefined && !/^\d{1,15}$/.test(SEED)) throw new Error(`SEED must be a whole number, got "${SEED}"`);

/** The seed of this run: SEED, else one that chances. Printed. */
export function newSeed(): number {
  return seedOr(Date.now() % seedsMax);
}

/** The seed of this run: SEED, else the usual one. Printed. */
export function seedOr(usual: number): number {
  const seed = SEED === undefined ? usual : Number(SEED);
  console.log(`SEED=${seed}`);
  return seed;
}

/** The seeds of this run: SEED alone, else the usual ones. Printed. */
export function seedsOr(usual: readonly number[]): readonly number[] {
  const seeds = SEED === undefined ? usual : [Number(SEED)];
  for (const seed of seeds) console.log(`SEED=${seed}`);
  return seeds;
}
