/**
 * Block and transaction texts, stored exactly as the node wrote them.
 *
 * The data inside a transaction's text (format 1) is cut out, because the content cache stores those bytes; a read
 * inserts it again. Compression leaves 0.3 of a block's size and 0.8 of a transaction's (measured on mainnet samples;
 * 12 µs a transaction).
 * @module
 */
import { assert } from "../../../lib/assert.ts";
import { decodeBase64url } from "../../../lib/base64url.ts";
import { unshared } from "../../../lib/bytes.ts";

/** A transaction's text without its data. */
type CutText = Readonly<{
  text: string;
  /** Index in `text` at which the base64url of the data was; null when nothing was cut. */
  dataAt: number | null;
  /** The data that was cut out. */
  data: Uint8Array;
}>;

/** First byte of a stored text: the encoding of the rest. Numbers are part of the stored format. */
const forms = { plain: 0, zstd: 1 } as const;
const compressionLevel = 3;
/** Shorter texts are stored plain, because compression gains nothing. */
const compressedBytesMin = 256;

const noData = new Uint8Array(0);

/**
 * Cuts the value of the top-level `data` field out of a transaction's text.
 *
 * Nothing is cut when the field is absent, empty, or not canonical base64url.
 */
export function cutData(text: string): CutText {
  const span = findTopLevelString(text, "data");
  const whole = { text, dataAt: null, data: noData };
  if (span === undefined || span.start === span.end) return whole;
  const data = decodeBase64url(text.slice(span.start, span.end));
  if (data === undefined) return whole;
  return { text: text.slice(0, span.start) + text.slice(span.end), dataAt: span.start, data };
}

/** Serializes a text for storage. */
export function packText(text: string): Uint8Array {
  const bytes = Buffer.from(text);
  const packed = bytes.length < compressedBytesMin ? bytes : compress(bytes);
  const body = new Uint8Array(1 + packed.length);
  body[0] = packed === bytes ? forms.plain : forms.zstd;
  body.set(packed, 1);
  return body;
}

/** Reads the output of `packText`. */
export function unpackText(body: Uint8Array): string {
  return unpacked(body).toString();
}

/** As `unpackText`, as UTF-8. */
export function unpackBytes(body: Uint8Array): Uint8Array<ArrayBuffer> {
  return unshared(unpacked(body));
}

function unpacked(body: Uint8Array): Buffer {
  const rest = body.subarray(1);
  if (body[0] === forms.plain) return Buffer.from(rest);
  assert(body[0] === forms.zstd, "a stored text has a known form");
  return Bun.zstdDecompressSync(rest);
}

function compress(bytes: Buffer): Buffer {
  const smaller = Bun.zstdCompressSync(bytes, { level: compressionLevel });
  return smaller.length < bytes.length ? smaller : bytes;
}

type TextSpan = Readonly<{ start: number; end: number }>;

const depthSteps: Readonly<Record<string, number>> = { "{": 1, "[": 1, "}": -1, "]": -1 };

/**
 * Finds the contents of a string field of a JSON object without parsing the other values.
 *
 * @param text - A JSON object. Invalid JSON yields `undefined` or the span of a string, never an error.
 * @returns `undefined` also when the field occurs twice, because readers differ in which value they use.
 */
function findTopLevelString(text: string, field: string): TextSpan | undefined {
  const found: TextSpan[] = [];
  let key = "";
  for (const { start, end, isValue } of topLevelStrings(text)) {
    if (!isValue) key = text.slice(start, end);
    else if (key === field) found.push({ start, end });
  }
  return found.length === 1 ? found[0] : undefined;
}

/** Keys and values that are strings of the outermost object, in order; ends early at an unterminated string. */
function* topLevelStrings(text: string): Generator<TextSpan & Readonly<{ isValue: boolean }>> {
  const marks = /[{}[\],:"]/g;
  let depth = 0;
  let isValue = false;
  for (let match = marks.exec(text); match !== null; match = marks.exec(text)) {
    const mark = match[0];
    if (mark === '"') {
      const start = match.index + 1;
      const end = endOfString(text, match.index);
      if (end === text.length) return;
      if (depth === 1) yield { start, end, isValue };
      marks.lastIndex = end + 1;
    }
    depth += depthSteps[mark] ?? 0;
    isValue = mark === ":";
  }
}

/** Index of the quote that ends the string at `start`; the text's length when the string is unterminated. */
function endOfString(text: string, start: number): number {
  let end = start;
  for (;;) {
    end = text.indexOf('"', end + 1);
    if (end === -1) return text.length;
    let backslashes = 0;
    while (text[end - 1 - backslashes] === "\\") backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
}
