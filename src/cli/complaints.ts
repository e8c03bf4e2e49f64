/**
 * What a person at the terminal did wrong: a list of complaints and exit code 2, never a stack.
 * @module
 */

/** Exit codes: done, failed, used wrongly. */
export const exitCodes = { done: 0, failed: 1, misused: 2 } as const;

const misuseName = "Misuse";

/** An error that is shown by its message alone and ends the program with exit code 2. */
export function misuse(message: string): Error {
  const error = new Error(message);
  error.name = misuseName;
  return error;
}

/** Every complaint about the settings at once. */
export function badSettings(complaints: readonly string[]): Error {
  return misuse(`Bad settings:\n  ${complaints.join("\n  ")}`);
}

/** Whether an error is the user's and not the program's. */
export function isMisuse(error: unknown): error is Error {
  return error instanceof Error && error.name === misuseName;
}
