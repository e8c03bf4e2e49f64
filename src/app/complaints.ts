/**
 * Errors of the user at the terminal: they end the program with a message and exit code 2, without a stack.
 * @module
 */

/** `interrupted` is 128 plus the number of SIGINT, as in shells. */
export const exitCodes = { done: 0, failed: 1, misused: 2, interrupted: 130 } as const;

const misuseName = "Misuse";

/** Creates an error of the user. */
export function misuse(message: string): Error {
  const error = new Error(message);
  error.name = misuseName;
  return error;
}

const badSettingsStart = "Bad settings:\n  ";

/** Creates one error for all complaints about the settings. */
export function badSettings(complaints: readonly string[]): Error {
  return misuse(`${badSettingsStart}${complaints.join("\n  ")}`);
}

/** The complaints of an error of {@link badSettings}; other errors have none. */
export function complaintsIn(error: unknown): readonly string[] {
  if (!isMisuse(error) || !error.message.startsWith(badSettingsStart)) return [];
  return error.message.slice(badSettingsStart.length).split("\n  ");
}

export function isMisuse(error: unknown): error is Error {
  return error instanceof Error && error.name === misuseName;
}
