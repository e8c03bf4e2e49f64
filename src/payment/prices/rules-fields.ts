/**
 * Fields of an operator's rules: a value with its path, and readers that say of a wrong one what would be right.
 * @module
 */
import { Failure } from "../../failures.ts";
import { isWrittenList, isWrittenObject, memberOf, numberText, type WrittenJson } from "../../lib/json.ts";
import { rational, readDecimal, writeDecimal } from "./rational.ts";
import type { Magnitude } from "./rules.ts";

/** A value, and where it stands: `fees[0].operatorMagnitude`; "" is the whole text. */
export type Field = Readonly<{ value: WrittenJson; path: string }>;

/** The fields of an object. */
export type Fields = Readonly<{
  find: (name: string) => Field | undefined;
  /** @throws Failure where it is absent. */
  get: (name: string) => Field;
}>;

/** Characters of a name or a description. */
const textLengthMax = 500;

/** Places of a decimal that can be read. */
const placesMax = 120n;

/** Items of a list. */
const itemsMax = 10_000;

/** What is wrong, for the operator. */
export function fault({ path }: Pick<Field, "path">, wanted: string): Failure {
  return new Failure("malformed_input", { reason: path === "" ? `it ${wanted}` : `${path} ${wanted}` });
}

/**
 * Reads an object. @param known - Its keys; others are mistyped.
 * @throws Failure `malformed_input`, as all of these.
 */
export function readFields(field: Field, known: readonly string[]): Fields {
  const stranger = keysOf(field).find((key) => !known.includes(key));
  if (stranger !== undefined) throw fault(within(field, stranger), `is not known here; known are ${known.join(", ")}`);
  const find = (name: string): Field | undefined => {
    const value = memberOf(field.value, name);
    return value === undefined ? undefined : { value, path: within(field, name).path };
  };
  return {
    find,
    get: (name) => {
      const found = find(name);
      if (found === undefined) throw fault(within(field, name), "is missing");
      return found;
    },
  };
}

/** Reads an object whose keys are names that the reader checks. */
export function readEntries(field: Field): (readonly [string, Field])[] {
  return keysOf(field).map((key) => {
    const value = memberOf(field.value, key) ?? null;
    return [key, { value, path: within(field, key).path }] as const;
  });
}

export function readList(field: Field): Field[] {
  if (!isWrittenList(field.value)) throw fault(field, "must be a list");
  if (field.value.length > itemsMax) throw fault(field, `must have at most ${itemsMax} items`);
  return field.value.map((value, index) => ({ value, path: `${field.path}[${index}]` }));
}

export function readText(field: Field): string {
  const { value } = field;
  if (typeof value !== "string" || value === "" || value.length > textLengthMax)
    throw fault(field, `must be a text of 1 to ${textLengthMax} characters`);
  return value;
}

export function readFlag(field: Field): boolean {
  if (typeof field.value !== "boolean") throw fault(field, "must be true or false");
  return field.value;
}

export function readOneOf<const Word extends string>(field: Field, words: readonly Word[]): Word {
  const word = words.find((each) => each === field.value);
  if (word === undefined) throw fault(field, `must be one of ${words.join(", ")}`);
  return word;
}

/** A whole number, 0 or more, as a number or as text. */
export function readWhole(field: Field): bigint {
  const text = digitsOf(field);
  if (text === undefined || !/^\d{1,18}$/.test(text)) throw fault(field, "must be a whole number, 0 or more");
  return BigInt(text);
}

/** A decimal, as a number or as text; it is written without an exponent. */
export function readMagnitude(field: Field): Magnitude {
  const value = readDecimal(digitsOf(field) ?? "");
  if (value === undefined) throw fault(field, 'must be a decimal, as 0.766 or "0.766"');
  const { over, under } = value;
  const sign = over < 0n ? "-" : "";
  const text = `${sign}${writeDecimal(rational(over < 0n ? -over : over, under), placesMax)}`;
  return { text, value };
}

const momentPattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?Z$/;

/** A moment: `2026-01-31T00:00:00Z`. @returns Unix milliseconds. */
export function readMoment(field: Field): bigint {
  const { value } = field;
  const at = typeof value === "string" && momentPattern.test(value) ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(at)) throw fault(field, "must be a moment, as 2026-01-31T00:00:00Z");
  return BigInt(at);
}

function digitsOf({ value }: Field): string | undefined {
  return typeof value === "string" ? value : numberText(value);
}

function keysOf(field: Field): string[] {
  if (!isWrittenObject(field.value)) throw fault(field, "must be an object");
  return Object.keys(field.value);
}

function within({ path }: Field, key: string): Pick<Field, "path"> {
  return { path: path === "" ? key : `${path}.${key}` };
}
