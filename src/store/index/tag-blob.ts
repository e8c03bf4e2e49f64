/**
 * Tags of one row as a compact byte string, and back without loss.
 *
 * Known names and known pairs are a number; values that are ids, hashes, UUIDs or decimal numbers take their bytes
 * instead of their text (8 typical tags: 125 bytes instead of 260). A blob is tags one after the other:
 *   code     varint: 0 = the name follows (varint length, UTF-8); odd = known name (code − 1) / 2;
 *            even = known pair code / 2 − 1, and nothing follows
 *   value    varint (length << 3 | form), then that many bytes in that form
 * Source: docs/reference/index-layout.md#tags.
 * @module
 */
import type { Tag } from "../../arweave/tags.ts";
import { assert } from "../../lib/assert.ts";
import { knownNames, knownPairs } from "./known-tags.ts";

const nameCodes = new Map(knownNames.map((name, index) => [name, index * 2 + 1]));
/** Codes of known pairs, by name, then value. */
const pairCodes = new Map<string, Map<string, number>>();
for (const [index, [name, value]] of knownPairs.entries()) {
  const codes = pairCodes.get(name) ?? new Map<string, number>();
  pairCodes.set(name, codes.set(value, index * 2 + 2));
}

/** How the bytes of a value stand for its text. Numbers are part of the format. */
const forms = { text: 0, base64url: 1, hex: 2, decimal: 3, uuid: 4, prefixedHex: 5 } as const;

const hexPattern = /^[0-9a-f]+$/;
const decimalPattern = /^[1-9][0-9]{4,14}$/;
const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const base64urlLengths = new Set([43, 64, 86]); // 32, 48 and 64 bytes: ids, block hashes, signatures
const hexLengthMin = 16;
const uuidLength = 36;

let scratch = Buffer.alloc(16 * 1_024);

/** Writes tags, in their order. The text of each must be well-formed UTF-16 (decoded UTF-8 always is). */
export function encodeTagBlob(tags: readonly Tag[]): Uint8Array {
  let at = 0;
  for (const { name, value } of tags) {
    // Three bytes of UTF-8 a UTF-16 unit at most, and three varints.
    reserve(at + (name.length + value.length) * 3 + 16);
    const pairCode = pairCodes.get(name)?.get(value);
    if (pairCode !== undefined) {
      at = writeVarint(at, pairCode);
      continue;
    }
    at = writeName(at, name);
    at = writeValue(at, value);
  }
  return new Uint8Array(scratch.subarray(0, at));
}

/** Reads what `encodeTagBlob` wrote. */
export function decodeTagBlob(blob: Uint8Array): Tag[] {
  const tags: Tag[] = [];
  const cursor = { at: 0 };
  while (cursor.at < blob.length) tags.push(readTag(blob, cursor));
  return tags;
}

/**
 * A Buffer's methods on the bytes as the database gives them: to ask those for the memory of a Buffer costs more than
 * to read eight texts from it (0.8 µs of 1.3, measured).
 */
const { toString: readBytes, readUIntBE } = Buffer.prototype;

type Cursor = { at: number };

function readTag(bytes: Uint8Array, cursor: Cursor): Tag {
  const code = readVarint(bytes, cursor);
  if (code !== 0 && code % 2 === 0) {
    const pair = knownPairs[code / 2 - 1];
    assert(pair !== undefined, "a tag blob names a known pair");
    return { name: pair[0], value: pair[1] };
  }
  const name = code === 0 ? readText(bytes, cursor) : knownNames[(code - 1) / 2];
  assert(name !== undefined, "a tag blob names a known name");
  return { name, value: readValue(bytes, cursor) };
}

function readText(bytes: Uint8Array, cursor: Cursor): string {
  const size = readVarint(bytes, cursor);
  const end = cursor.at + size;
  const text = readBytes.call(bytes, "utf8", cursor.at, end);
  cursor.at = end;
  return text;
}

function readValue(bytes: Uint8Array, cursor: Cursor): string {
  const head = readVarint(bytes, cursor);
  const start = cursor.at;
  const end = start + Math.floor(head / 8);
  cursor.at = end;
  switch (head % 8) {
    case forms.text:
      return readBytes.call(bytes, "utf8", start, end);
    case forms.base64url:
      return readBytes.call(bytes, "base64url", start, end);
    case forms.hex:
      return readBytes.call(bytes, "hex", start, end);
    case forms.prefixedHex:
      return `0x${readBytes.call(bytes, "hex", start, end)}`;
    case forms.decimal:
      return String(readUIntBE.call(bytes, start, end - start));
    case forms.uuid: {
      const hex = readBytes.call(bytes, "hex", start, end);
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
    }
    default:
      throw new Error(`a tag blob has no form ${head % 8}`);
  }
}

function writeName(at: number, name: string): number {
  const code = nameCodes.get(name);
  if (code !== undefined) return writeVarint(at, code);
  const lengthAt = writeVarint(at, 0);
  const size = Buffer.byteLength(name);
  const start = writeVarint(lengthAt, size);
  scratch.write(name, start);
  return start + size;
}

function writeValue(at: number, value: string): number {
  // The form is tried in place, behind room for a length of one byte or two.
  const form = formOf(value);
  if (form !== forms.text) {
    const size = writeCompact(at + 2, value, form);
    if (size > 0) return closeValue(at, size, form);
  }
  const size = Buffer.byteLength(value);
  const start = writeVarint(at, size * 8 + forms.text);
  scratch.write(value, start);
  return start + size;
}

/** Writes the head of a value whose bytes stand two behind it. */
function closeValue(at: number, size: number, form: number): number {
  const start = writeVarint(at, size * 8 + form);
  if (start !== at + 2) scratch.copyWithin(start, at + 2, at + 2 + size);
  return start + size;
}

/** The form that a value seems to have; only the bytes can tell whether exactly its text comes back. */
function formOf(value: string): number {
  const { length } = value;
  if (length < hexLengthMin) return decimalPattern.test(value) ? forms.decimal : forms.text;
  if (length % 2 === 0) {
    if (length === uuidLength && uuidPattern.test(value)) return forms.uuid;
    if (hexPattern.test(value)) return forms.hex;
    if (value.startsWith("0x") && hexPattern.test(value.slice(2))) return forms.prefixedHex;
  }
  return base64urlLengths.has(length) ? forms.base64url : forms.text;
}

/** Writes a value in its form; answers how many bytes that took, 0 when its text would not come back. */
function writeCompact(at: number, value: string, form: number): number {
  switch (form) {
    case forms.uuid:
      return scratch.write(value.replaceAll("-", ""), at, "hex");
    case forms.hex:
      return scratch.write(value, at, "hex");
    case forms.prefixedHex:
      return scratch.write(value.slice(2), at, "hex");
    case forms.decimal:
      return writeDecimal(at, Number(value));
    default: {
      const size = scratch.write(value, at, "base64url");
      return scratch.toString("base64url", at, at + size) === value ? size : 0;
    }
  }
}

function writeDecimal(at: number, value: number): number {
  // Six bytes are the most that a Buffer reads as one number.
  if (value >= 2 ** 48) return 0;
  const size = Math.ceil(Math.log2(value + 1) / 8);
  scratch.writeUIntBE(value, at, size);
  return size;
}

function writeVarint(at: number, value: number): number {
  let rest = value;
  let end = at;
  while (rest >= 128) {
    scratch[end++] = (rest % 128) + 128;
    rest = Math.floor(rest / 128);
  }
  scratch[end++] = rest;
  return end;
}

function readVarint(bytes: Uint8Array, cursor: Cursor): number {
  let value = 0;
  let scale = 1;
  for (;;) {
    const byte = bytes[cursor.at++];
    assert(byte !== undefined && scale < 2 ** 49, "a tag blob ends at the end of a tag");
    value += (byte % 128) * scale;
    if (byte < 128) return value;
    scale *= 128;
  }
}

function reserve(size: number): void {
  if (size <= scratch.length) return;
  const larger = Buffer.alloc(2 ** Math.ceil(Math.log2(size)));
  scratch.copy(larger);
  scratch = larger;
}
