/**
 * The one phrase for a value that a person set wrongly: in a setting or in an option of a command.
 * @module
 */
import { printable } from "./printable.ts";

/**
 * `invalid value 'abc' for PORT: expected 0–65535`.
 *
 * @param value - The text as it was given; `undefined` hides a secret.
 * @param expected - The valid values, as a noun: "a whole number of milliseconds, 1 or more".
 */
export function invalidValue(name: string, value: string | undefined, expected: string): string {
  const shown = value === undefined ? "(hidden)" : `'${printable(value)}'`;
  return `invalid value ${shown} for ${name}: expected ${expected}`;
}
