/**
 * Assertions state our own invariants; a failed one is a defect, never a caller's fault.
 * @module
 */

/**
 * Throws when an invariant of ours does not hold.
 *
 * @param condition - What must be true.
 * @param invariant - The invariant as a positive sentence.
 * @throws Error that is logged whole; the response is 500.
 */
export function assert(condition: boolean, invariant: string): asserts condition {
  if (!condition) throw new Error(`invariant broken: ${invariant}`);
}
