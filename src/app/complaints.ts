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

const badSettingsStart = "Bad settings:\n  ";

/** Every complaint about the settings at once. */
export function badSettings(complaints: readonly string[]): Error {
  return misuse(`${badSettingsStart}${complaints.join("\n  ")}`);
}

/** The complaints of {@link badSettings}; none are in any other error. */
export function complaintsIn(error: unknown): readonly string[] {
  if (!isMisuse(error) || !error.message.startsWith(badSettingsStart)) return [];
  return error.message.slice(badSettingsStart.length).split("\n  ");
}

/** Whether an error is the user's and not the program's. */
export function isMisuse(error: unknown): error is Error {
  return error instanceof Error && error.name === misuseName;
}
