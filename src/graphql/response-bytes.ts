/**
 * Writes a response straight from stored rows to UTF-8, without texts or objects in between.
 *
 * A shape says for every field of a type how its JSON is written; compiling a selection against a shape gives one
 * function a field, called row by row. Bytes are written by loops over arrays: for the short pieces of a row they cost
 * less than calls of the runtime's encoders, each of which makes a string (measured).
 * @module
 */
import { assert } from "../lib/assert.ts";
import { encodeBase64url } from "../lib/base64url.ts";
import type { WrittenField } from "./selection.ts";

/** A response that is being written: `size` bytes of `bytes`. */
export type Output = {
  bytes: Uint8Array<ArrayBuffer>;
  size: number;
  /** Where values that rows share were written, by their writers. */
  readonly shared: Map<object, Map<object, Span>>;
};

/** A half-open range of the bytes of a response. */
type Span = Readonly<{ start: number; end: number }>;

/** Writes one value that is already known. */
export type WriteValue = (out: Output) => void;

/** Writes one value of a row. */
export type Write<Source> = (source: Source, out: Output) => void;

/** A type of the schema: its name, and for each field the function that makes a writer from what is selected. */
export type Shape<Source> = Readonly<{
  name: string;
  fields: Readonly<Record<string, (field: WrittenField) => Write<Source>>>;
}>;

/** Bytes of the buffer that stays between responses; the page of a hundred rows takes 250 KB. */
const storedBytes = 2 ** 20;

/**
 * Largest response: twice that is in memory at its end. A page of ordinary rows is far below; aliases can repeat each
 * tag of a thousand rows thirty times. Bytes.
 */
export const responseBytesMax = 64 * 2 ** 20;

/** A response above {@link responseBytesMax}. */
export class ResponseTooLarge extends Error {}

/** A UTF-16 unit takes at most three bytes of UTF-8. */
const bytesPerUnitMax = 3;

/**
 * Creates the function that begins responses. They share a buffer, which would else be allocated for each: one
 * response is finished before the next is begun. The first response allocates it: before, it would only add to what the
 * collector counts during the start.
 */
export function createOutputs(): () => Output {
  let stored: Uint8Array<ArrayBuffer> | undefined;
  return () => {
    stored ??= new Uint8Array(storedBytes);
    return { bytes: stored, size: 0, shared: new Map() };
  };
}

/** Ends a response. @returns Its bytes, in a buffer of exactly their size. */
export function finished({ bytes, size }: Output): Uint8Array<ArrayBuffer> {
  return bytes.slice(0, size);
}

/** Makes space for `count` more bytes. @throws ResponseTooLarge. */
function reserve(out: Output, count: number): void {
  const needed = out.size + count;
  if (needed <= out.bytes.length) return;
  if (needed > responseBytesMax) throw new ResponseTooLarge(`Response is larger than ${responseBytesMax} bytes`);
  const larger = new Uint8Array(Math.min(responseBytesMax, Math.max(needed, out.bytes.length * 2)));
  larger.set(out.bytes.subarray(0, out.size));
  out.bytes = larger;
}

const encoder = new TextEncoder();

/** Adds a text as it is. */
export function addText(out: Output, text: string): void {
  reserve(out, text.length * bytesPerUnitMax);
  out.size += encoder.encodeInto(text, out.bytes.subarray(out.size)).written;
}

/** Adds a text that has only ASCII characters. */
export function addAscii(out: Output, text: string): void {
  const { length } = text;
  reserve(out, length);
  const { bytes, size } = out;
  for (let at = 0; at < length; at += 1) bytes[size + at] = text.charCodeAt(at);
  out.size = size + length;
}

/** Adds bytes as they are. */
export function addBytes(out: Output, piece: Uint8Array): void {
  const { length } = piece;
  reserve(out, length);
  const { bytes, size } = out;
  for (let at = 0; at < length; at += 1) bytes[size + at] = piece[at] ?? 0;
  out.size = size + length;
}

/** Adds one ASCII character. */
export function addCharacter(out: Output, code: number): void {
  reserve(out, 1);
  out.bytes[out.size++] = code;
}

const alphabet = asciiBytes("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");

/** From this size on, the runtime's encoder is faster, although it makes a string. Bytes. */
const longBytesMin = 128;

/** Adds the base64url text of bytes. */
export function addBase64url(out: Output, source: Uint8Array, start = 0, end = source.length): void {
  if (end - start >= longBytesMin) {
    addText(out, encodeBase64url(source.subarray(start, end)));
    return;
  }
  reserve(out, Math.ceil(((end - start) * 4) / 3));
  const { bytes } = out;
  let { size } = out;
  let at = start;
  for (; at + 2 < end; at += 3) {
    const word = ((source[at] ?? 0) << 16) | ((source[at + 1] ?? 0) << 8) | (source[at + 2] ?? 0);
    bytes[size] = alphabet[word >> 18] ?? 0;
    bytes[size + 1] = alphabet[(word >> 12) & 63] ?? 0;
    bytes[size + 2] = alphabet[(word >> 6) & 63] ?? 0;
    bytes[size + 3] = alphabet[word & 63] ?? 0;
    size += 4;
  }
  out.size = size;
  if (at < end) addLastCharacters(out, source[at] ?? 0, at + 1 < end ? source[at + 1] : undefined);
}

/** Adds the two or three characters of the last one or two bytes. */
function addLastCharacters(out: Output, first: number, second: number | undefined): void {
  const word = (first << 16) | ((second ?? 0) << 8);
  addCharacter(out, alphabet[word >> 18] ?? 0);
  addCharacter(out, alphabet[(word >> 12) & 63] ?? 0);
  if (second !== undefined) addCharacter(out, alphabet[(word >> 6) & 63] ?? 0);
}

const hexDigits = asciiBytes("0123456789abcdef");

/** Adds bytes as hexadecimal digits. */
export function addHex(out: Output, source: Uint8Array, start: number, end: number): void {
  reserve(out, (end - start) * 2);
  const { bytes } = out;
  let { size } = out;
  for (let at = start; at < end; at += 1) {
    const byte = source[at] ?? 0;
    bytes[size++] = hexDigits[byte >> 4] ?? 0;
    bytes[size++] = hexDigits[byte & 15] ?? 0;
  }
  out.size = size;
}

const quote = 0x22;
const backslash = 0x5c;
/** Characters below are controls. */
const space = 0x20;
/** An escape is `\u` and four digits at most. */
const escapedBytesMax = 6;

/** Adds UTF-8 as the inside of a JSON string, escaped as `JSON.stringify` does. */
export function addJsonUtf8(out: Output, source: Uint8Array, start: number, end: number): void {
  reserve(out, (end - start) * escapedBytesMax);
  const { bytes } = out;
  let { size } = out;
  for (let at = start; at < end; at += 1) {
    const byte = source[at] ?? 0;
    if (byte >= space && byte !== quote && byte !== backslash) {
      bytes[size++] = byte;
      continue;
    }
    const escaped = escapes[byte] ?? noBytes;
    for (let digit = 0; digit < escaped.length; digit += 1) bytes[size++] = escaped[digit] ?? 0;
  }
  out.size = size;
}

const noBytes = new Uint8Array(0);

/** The escapes of all ASCII characters that need one. */
const escapes: readonly Uint8Array[] = Array.from({ length: backslash + 1 }, (_, code) =>
  asciiBytes(JSON.stringify(String.fromCharCode(code)).slice(1, -1)),
);

/** The bytes of an ASCII text. */
export function asciiBytes(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

/** The UTF-8 bytes of a text that is written often. */
export function textBytes(text: string): Uint8Array {
  return encoder.encode(text);
}

/** A field without fields of its own. */
export function leaf<Source>(write: Write<Source>): (field: WrittenField) => Write<Source> {
  return () => write;
}

/** A field that is bytes in base64url; `pick` finds them. */
export function base64urlLeaf<Source>(pick: (source: Source) => Uint8Array): (field: WrittenField) => Write<Source> {
  return leaf((source, out) => {
    addCharacter(out, quote);
    addBase64url(out, pick(source));
    addCharacter(out, quote);
  });
}

/** A field whose JSON is short and ASCII: numbers, also those in quotes. */
export function asciiLeaf<Source>(json: (source: Source) => string): (field: WrittenField) => Write<Source> {
  return leaf((source, out) => addAscii(out, json(source)));
}

/** A field that is an object; `pick` finds it, undefined is written as null. */
export function object<Source, Inner>(
  shape: Shape<Inner>,
  pick: (source: Source) => Inner | undefined,
): (field: WrittenField) => Write<Source> {
  return ({ inner }) => {
    const write = compileNullable(shape, inner);
    return (source, out) => write(pick(source), out);
  };
}

/**
 * As `object`, for objects that rows of a page share, such as a block: the bytes of each are made once a response, and
 * copied for other rows.
 */
export function sharedObject<Source, Inner extends object>(
  shape: Shape<Inner>,
  pick: (source: Source) => Inner | undefined,
): (field: WrittenField) => Write<Source> {
  return ({ inner }) => {
    const write = compileShape(shape, inner);
    return (source, out) => {
      const value = pick(source);
      if (value === undefined) addBytes(out, nullBytes);
      else writeShared(value, write, out);
    };
  };
}

function writeShared<Value extends object>(value: Value, write: Write<Value>, out: Output): void {
  const spans = out.shared.get(write) ?? new Map<object, Span>();
  const known = spans.get(value);
  if (known !== undefined) {
    reserve(out, known.end - known.start);
    out.bytes.copyWithin(out.size, known.start, known.end);
    out.size += known.end - known.start;
    return;
  }
  const start = out.size;
  write(value, out);
  spans.set(value, { start, end: out.size });
  out.shared.set(write, spans);
}

/** The JSON of null. */
export const nullBytes = asciiBytes("null");

const closing = 0x7d;

/** Makes the writer of one object from the fields that are selected of it. */
export function compileShape<Source>(shape: Shape<Source>, fields: readonly WrittenField[]): Write<Source> {
  const parts = fields.map((field, index) => ({
    prefix: textBytes(`${index === 0 ? "{" : ","}${JSON.stringify(field.key)}:`),
    write: writerOf(shape, field),
  }));
  if (parts.length === 0) return (_source, out) => addAscii(out, "{}");
  return (source, out) => {
    for (const { prefix, write } of parts) {
      addBytes(out, prefix);
      write(source, out);
    }
    addCharacter(out, closing);
  };
}

/** As `compileShape`; an absent object is written as null. */
export function compileNullable<Source>(
  shape: Shape<Source>,
  fields: readonly WrittenField[],
): Write<Source | undefined> {
  const write = compileShape(shape, fields);
  return (source, out) => {
    if (source === undefined) addBytes(out, nullBytes);
    else write(source, out);
  };
}

/** Makes the writer of a result that has one root field. @param begin - Begins its bytes: `createOutputs`. */
export function compileResult<Source>(
  begin: () => Output,
  key: string,
  write: Write<Source>,
): (source: Source) => Uint8Array<ArrayBuffer> {
  const prefix = textBytes(`{"data":{${JSON.stringify(key)}:`);
  return (source) => {
    const out = begin();
    addBytes(out, prefix);
    write(source, out);
    addAscii(out, "}}");
    return finished(out);
  };
}

/** Makes the writer of one field. */
export function writerOf<Source>(shape: Shape<Source>, field: WrittenField): Write<Source> {
  if (field.name === "__typename") {
    const name = asciiBytes(`"${shape.name}"`);
    return (_source, out) => addBytes(out, name);
  }
  const make = shape.fields[field.name];
  assert(make !== undefined, `the shape of ${shape.name} has every field of the schema`);
  return make(field);
}
