/**
 * JSON in which no integer loses a digit.
 *
 * `JSON.parse` rounds integers above 2^53; old blocks carry them (reward_pool). Here they become `bigint`, and
 * `writeJson` writes a `bigint` as a bare integer. Everything else is as in `JSON`.
 * @module
 */

/** What a JSON text may mean. An object's keys keep the order of the text. */
export type JsonValue = null | boolean | number | bigint | string | readonly JsonValue[] | JsonObject;

/** A JSON object. */
export type JsonObject = { readonly [key: string]: JsonValue };

/** Sixteen digits in a row outside of a word: the least that can lie beyond 2^53. May also match inside of strings. */
const longDigits = /(?:^|[[:,\s-])\d{16}/;

const integerPattern = /^-?\d+$/;

/** Longer integers are refused: making a `bigint` of a million digits takes seconds, and nobody means one. */
const integerDigitsMax = 1_000;

/**
 * Reads a JSON text.
 *
 * @param text - Its length bounds time and memory; deep nesting takes about 80 bytes of memory a character.
 * @returns The value, or `undefined` when the text is not JSON or holds an integer of more than 1,000 digits.
 */
export function readJson(text: string): JsonValue | undefined {
  try {
    return longDigits.test(text) ? JSON.parse(text, keepInteger) : JSON.parse(text);
  } catch (error) {
    // `undefined` says so, and every caller must answer it.
    if (isJsonFault(error)) return undefined;
    throw error;
  }
}

/** Whether an error says that a text is no JSON, or lies beyond a bound: the engine's depth and memory, or ours. */
export function isJsonFault(error: unknown): boolean {
  return error instanceof SyntaxError || error instanceof RangeError;
}

/** Writes a value as JSON without white space; a `bigint` as an integer. */
export function writeJson(value: JsonValue): string {
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (isJsonArray(value)) return `[${value.map(writeJson).join(",")}]`;
  const members = Object.entries(value).map(([key, part]) => `${JSON.stringify(key)}:${writeJson(part)}`);
  return `{${members.join(",")}}`;
}

/** Tells an object from the other values. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Tells a list from the other values. */
export function isJsonArray(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

function keepInteger(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context?.source ?? "";
  if (!integerPattern.test(source)) return value;
  if (source.length > integerDigitsMax) throw new RangeError("an integer has more than 1,000 digits");
  return BigInt(source);
}
