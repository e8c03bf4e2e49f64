/**
 * JSON without loss: exact integers, detection of repeated keys, and exact decimals.
 *
 * `JSON.parse` rounds integers above 2^53, which old blocks have (reward_pool). `readJson` returns them as `bigint`,
 * and `writeJson` writes a `bigint` as an integer. `repeatedKey` finds the keys that `JSON.parse` silently overwrites.
 * `readWrittenJson` returns numbers as their text: amounts of money must not become floats.
 * @module
 */

/** A JSON value. The keys of an object are in the order of the text. */
export type JsonValue = null | boolean | number | bigint | string | readonly JsonValue[] | JsonObject;

export type JsonObject = { readonly [key: string]: JsonValue };

/** Sixteen consecutive digits, the shortest number that can exceed 2^53. May also match inside strings. */
const longDigits = /(?:^|[[:,\s-])\d{16}/;

const integerPattern = /^-?\d+$/;

/** Longer integers are rejected: the conversion of a million digits takes seconds. */
const integerDigitsMax = 1_000;

/**
 * Parses a JSON text.
 *
 * @param text - Its length bounds time and memory; deep nesting takes about 80 bytes of memory per character.
 * @returns The value, or `undefined` when the text is not JSON or has an integer of more than 1,000 digits.
 */
export function readJson(text: string): JsonValue | undefined {
  try {
    return longDigits.test(text) ? JSON.parse(text, keepInteger) : JSON.parse(text);
  } catch (error) {
    // Every caller must handle `undefined`.
    if (isJsonFault(error)) return undefined;
    throw error;
  }
}

/** Whether an error reports invalid JSON, or JSON beyond a limit of the engine or of this file. */
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

export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

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

/** One open object or list: its keys so far (`undefined` for a list), and the position of the scan. */
type Level = { readonly keys: Set<string> | undefined; step: string | number };

const tokenPattern = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|[{}[\],]/g;

/**
 * Finds the first key that occurs twice in one object.
 *
 * @param text - A valid JSON text.
 * @returns The path of the repeated key, such as `$.and[0].tags`, or `undefined`.
 */
export function repeatedKey(text: string): string | undefined {
  const levels: Level[] = [];
  for (const [token, quoted, colon] of text.matchAll(tokenPattern)) {
    if (quoted === undefined) moveBy(token, levels);
    else if (colon !== undefined && !isNewKey(quoted, levels.at(-1))) return pathOf(levels);
  }
  return undefined;
}

function moveBy(token: string, levels: Level[]): void {
  if (token === "{") levels.push({ keys: new Set(), step: "" });
  else if (token === "[") levels.push({ keys: undefined, step: 0 });
  else if (token !== ",") levels.pop();
  else {
    const level = levels.at(-1);
    if (typeof level?.step === "number") level.step += 1;
  }
}

function isNewKey(quoted: string, level: Level | undefined): boolean {
  if (level?.keys === undefined) return true;
  const key: unknown = JSON.parse(quoted);
  level.step = String(key);
  if (level.keys.has(level.step)) return false;
  level.keys.add(level.step);
  return true;
}

function pathOf(levels: readonly Level[]): string {
  const steps = levels.map(({ step }) => (typeof step === "number" ? `[${step}]` : `.${step}`));
  return `$${steps.join("")}`;
}

/** The key of a number's text; no JSON text yields an object with this key. */
const written = Symbol("written number");

/** A number as its text. */
export type WrittenNumber = Readonly<{ [written]: string }>;

/** A JSON value whose numbers are texts. */
export type WrittenJson = null | boolean | string | WrittenNumber | readonly WrittenJson[] | WrittenObject;

export type WrittenObject = { readonly [key: string]: WrittenJson };

/**
 * Parses a JSON text, with numbers as texts.
 *
 * @param text - Its length bounds time and memory.
 * @returns `undefined` when the text is not JSON, or nested more deeply than the engine supports.
 */
export function readWrittenJson(text: string): WrittenJson | undefined {
  try {
    return JSON.parse(text, keepNumber);
  } catch (error) {
    // Every caller must handle `undefined`.
    if (isJsonFault(error)) return undefined;
    throw error;
  }
}

/** The text of a number; `undefined` for every other value. */
export function numberText(value: WrittenJson | undefined): string | undefined {
  return isWrittenNumber(value) ? value[written] : undefined;
}

/** The value of an object's own key; `undefined` for other values and missing keys. */
export function memberOf(value: WrittenJson | undefined, key: string): WrittenJson | undefined {
  const members: WrittenObject = isWrittenObject(value) ? value : {};
  return Object.hasOwn(members, key) ? members[key] : undefined;
}

export function isWrittenObject(value: WrittenJson | undefined): value is WrittenObject {
  return typeof value === "object" && value !== null && !isWrittenList(value) && !isWrittenNumber(value);
}

export function isWrittenList(value: WrittenJson | undefined): value is readonly WrittenJson[] {
  return Array.isArray(value);
}

function isWrittenNumber(value: WrittenJson | undefined): value is WrittenNumber {
  return typeof value === "object" && value !== null && written in value;
}

function keepNumber(_key: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === "number" ? { [written]: context?.source ?? "" } : value;
}
