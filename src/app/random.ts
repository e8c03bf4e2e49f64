/**
 * Randomness of the system, as the parts of the program receive it.
 * @module
 */

const values = new Uint32Array(1);

/** A number in [0, 1), for jitter and for the order of equal sources. */
export function systemRandom(): number {
  return randomSeed() / 2 ** 32;
}

/** A 32-bit seed. */
export function randomSeed(): number {
  return crypto.getRandomValues(values)[0] ?? 0;
}

/** Cryptographically secure bytes. */
export function systemRandomBytes(size: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(size));
}
