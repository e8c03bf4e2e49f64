/**
 * Assertions of internal invariants. A failed assertion is a defect of this program, never an invalid input.
 * @module
 */

/**
 * Throws when an invariant does not hold.
 *
 * @param invariant - The invariant as a positive sentence.
 * @throws Error that is logged with its stack; the response is 500.
 */
export function assert(condition: boolean, invariant: string): asserts condition {
  if (!condition) throw new Error(`invariant broken: ${invariant}`);
}
