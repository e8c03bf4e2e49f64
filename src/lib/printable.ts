/**
 * Text of messages: escapes untrusted text for terminals and logs, and reports invalid values.
 * @module
 */

/**
 * The characters that a terminal interprets: C0 and C1 controls, line and paragraph separators, and the characters
 * that change the order in which a line is read.
 * Source: ECMA-48 §5.2, §5.3; Unicode Standard Annex #9 §2.
 */
const obeyed = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Escapes these characters: `\x1b`, `\u202e`. */
export function printable(text: string): string {
  return text.replace(obeyed, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** Escapes these characters except line breaks and tabs, for texts of several lines. */
export function printableLines(text: string): string {
  return text
    .split(/([\n\t])/)
    .map((part) => (part === "\n" || part === "\t" ? part : printable(part)))
    .join("");
}

/** Writes a value as one line of JSON without these characters; a parser reads the same value. */
export function jsonText(value: unknown, replacer?: (name: string, value: unknown) => unknown): string {
  return escapeJson(JSON.stringify(value, replacer));
}

/** Escapes these characters in a JSON text, where they occur only in strings. */
export function escapeJson(json: string): string {
  return json.replace(obeyed, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * The message for an invalid setting or command option: `invalid value 'abc' for PORT: expected 0–65535`.
 *
 * @param value - The text as it was given; `undefined` hides a secret.
 * @param expected - The valid values, as a noun: "a whole number of milliseconds, 1 or more".
 */
export function invalidValue(name: string, value: string | undefined, expected: string): string {
  const shown = value === undefined ? "(hidden)" : `'${printable(value)}'`;
  return `invalid value ${shown} for ${name}: expected ${expected}`;
}
