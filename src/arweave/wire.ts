/**
 * Parsers of fields in the chain's JSON: each has a limit, and every error names the field.
 * @module
 */
import { Failure } from "../failures.ts";
import { decodeBase64url } from "../lib/base64url.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, readJson } from "../lib/json.ts";

const integerPattern = /^(?:0|[1-9]\d*)$/;

/**
 * Most objects, and most lists, that a text may open: objects of the chain have at most 2,048 tags, and their strings
 * contain no brackets. A text of brackets alone would take 80 times its size in memory (measured).
 */
const openingsMax = 4_096;

/** The failure for invalid input. */
export function malformed(reason: string): Failure {
  return new Failure("malformed_input", { reason });
}

/**
 * Reads a text as one JSON object.
 *
 * @param sizeMax - Most characters.
 */
export function readFields(text: string, sizeMax: number): JsonObject {
  if (text.length > sizeMax) throw malformed(`the JSON has ${text.length} characters: expected at most ${sizeMax}`);
  if (opensMoreThan(text, openingsMax)) throw malformed(`the JSON opens more than ${openingsMax} lists or objects`);
  const fields = readJson(text);
  if (!isJsonObject(fields)) throw malformed("the text is not a JSON object");
  return fields;
}

/** Whether a JSON text opens more than `most` lists, or objects; brackets in strings count too. */
export function opensMoreThan(text: string, most: number): boolean {
  return occursMoreThan(text, "[", most) || occursMoreThan(text, "{", most);
}

/** A field that is text. */
export function textField(fields: JsonObject, key: string): string {
  const value = fields[key];
  if (typeof value !== "string") throw malformed(`${key} is not text`);
  return value;
}

/** A field of base64url. @param sizeMax - Most bytes. */
export function bytesField(fields: JsonObject, key: string, sizeMax: number): Uint8Array {
  return readBytes(fields[key], key, sizeMax);
}

/** A field of base64url with an exact size. */
export function exactBytesField(fields: JsonObject, key: string, size: number): Uint8Array {
  const bytes = readBytes(fields[key], key, size);
  if (bytes.length !== size) throw malformed(`${key} has ${bytes.length} bytes instead of ${size}`);
  return bytes;
}

/** Reads base64url. @param sizeMax - Most bytes. */
export function readBytes(value: JsonValue | undefined, name: string, sizeMax: number): Uint8Array {
  if (typeof value !== "string") throw malformed(`${name} is not text`);
  if (value.length > Math.ceil((sizeMax * 4) / 3)) throw malformed(`${name} has more than ${sizeMax} bytes`);
  const bytes = decodeBase64url(value);
  if (bytes === undefined) throw malformed(`${name} is not canonical base64url`);
  return bytes;
}

/** An integer of 0 or more, as a JSON number or as decimal text; eras differ. */
export function integerField(fields: JsonObject, key: string, digitsMax: number): bigint {
  return readInteger(fields[key], key, digitsMax);
}

/** Reads an integer of 0 or more. */
export function readInteger(value: JsonValue | undefined, name: string, digitsMax: number): bigint {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return BigInt(value);
  if (typeof value === "bigint" && value >= 0n) return readInteger(value.toString(), name, digitsMax);
  if (typeof value !== "string" || !integerPattern.test(value)) throw malformed(`${name} is not a whole number`);
  if (value.length > digitsMax) throw malformed(`${name} has more than ${digitsMax} digits`);
  return BigInt(value);
}

/** A JSON number: an integer from 0 to 2^53 − 1. */
export function countField(fields: JsonObject, key: string): number {
  const value = fields[key];
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) {
    throw malformed(`${key} is not a whole number below 2^53`);
  }
  return value;
}

/** A field that is a list. @param countMax - Most items. */
export function listField(fields: JsonObject, key: string, countMax: number): readonly JsonValue[] {
  const value = fields[key];
  if (!isJsonArray(value)) throw malformed(`${key} is not a list`);
  if (value.length > countMax) throw malformed(`${key} has more than ${countMax} items`);
  return value;
}

/** A field that is an object. */
export function objectField(fields: JsonObject, key: string): JsonObject {
  const value = fields[key];
  if (!isJsonObject(value)) throw malformed(`${key} is not an object`);
  return value;
}

function occursMoreThan(text: string, character: string, most: number): boolean {
  let count = 0;
  for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1)) {
    count += 1;
    if (count > most) return true;
  }
  return false;
}
