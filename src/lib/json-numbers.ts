/**
 * JSON whose numbers stay as they were written: what is money there must not pass through floating point.
 * @module
 */
import { isJsonFault } from "./json.ts";

/** The key under which a number's text lies: no text makes an object that has it. */
const written = Symbol("a number as it was written");

/** A number, as its digits. */
export type WrittenNumber = Readonly<{ [written]: string }>;

/** What a JSON text may mean. */
export type WrittenJson = null | boolean | string | WrittenNumber | readonly WrittenJson[] | WrittenObject;

/** An object. */
export type WrittenObject = { readonly [key: string]: WrittenJson };

/**
 * Reads a JSON text.
 *
 * @param text - Its length bounds time and memory.
 * @returns The value; `undefined` when the text is not JSON, or nested more deeply than the engine can walk.
 */
export function readWrittenJson(text: string): WrittenJson | undefined {
  try {
    return JSON.parse(text, keepNumber);
  } catch (error) {
    // `undefined` says so, and every caller must answer it.
    if (isJsonFault(error)) return undefined;
    throw error;
  }
}

/** The digits of a number; `undefined` for every other value. */
export function numberText(value: WrittenJson | undefined): string | undefined {
  return isWrittenNumber(value) ? value[written] : undefined;
}

/** The value of an object's own key; `undefined` for what has none. */
export function memberOf(value: WrittenJson | undefined, key: string): WrittenJson | undefined {
  const members: WrittenObject = isWrittenObject(value) ? value : {};
  return Object.hasOwn(members, key) ? members[key] : undefined;
}

/** Tells an object from the other values. */
export function isWrittenObject(value: WrittenJson | undefined): value is WrittenObject {
  return typeof value === "object" && value !== null && !isWrittenList(value) && !isWrittenNumber(value);
}

/** Tells a list from the other values. */
export function isWrittenList(value: WrittenJson | undefined): value is readonly WrittenJson[] {
  return Array.isArray(value);
}

function isWrittenNumber(value: WrittenJson | undefined): value is WrittenNumber {
  return typeof value === "object" && value !== null && written in value;
}

function keepNumber(_key: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === "number" ? { [written]: context?.source ?? "" } : value;
}
