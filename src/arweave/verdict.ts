/**
 * The outcome of checking a signature: valid, or a reason for people.
 * @module
 */

/** The outcome of a check; a reason is one lower-case sentence. */
export type Verdict = Readonly<{ valid: true }> | Readonly<{ valid: false; reason: string }>;

/** The one verdict of success, so that checking many items allocates none. */
export const valid: Verdict = { valid: true };

/** A verdict of failure. */
export function invalid(reason: string): Verdict {
  return { valid: false, reason };
}
