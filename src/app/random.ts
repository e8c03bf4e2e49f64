/**
 * Chance for what need not be repeatable: jitter of waits, the order in which equals are asked.
 * @module
 */

const values = new Uint32Array(1);

/** A number in [0, 1). */
export function systemRandom(): number {
  return (crypto.getRandomValues(values)[0] ?? 0) / 2 ** 32;
}

/** Bytes that nobody can guess. */
export function systemRandomBytes(size: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(size));
}
