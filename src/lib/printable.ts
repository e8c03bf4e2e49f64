/**
 * Text of others made safe to show: a terminal obeys control characters, and a line break begins a line of its own.
 * @module
 */

/**
 * What a terminal obeys: C0 and C1 controls, line and paragraph separators, and the characters that change the order
 * in which a line is read.
 * Source: ECMA-48 §5.2, §5.3; Unicode Standard Annex #9 §2.
 */
const obeyed = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Spells such characters out: `\x1b`, `\u202e`. */
export function printable(text: string): string {
  return text.replace(obeyed, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** The same, but for line breaks and tabs: of a text that has lines of our own. */
export function printableLines(text: string): string {
  return text
    .split(/([\n\t])/)
    .map((part) => (part === "\n" || part === "\t" ? part : printable(part)))
    .join("");
}

/** Writes a value as one line of JSON without such characters, which means the same to who parses it. */
export function jsonText(value: unknown, replacer?: (name: string, value: unknown) => unknown): string {
  return escapeJson(JSON.stringify(value, replacer));
}

/** Spells such characters out in a JSON text, where they only stand in strings. */
export function escapeJson(json: string): string {
  return json.replace(obeyed, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
