/**
 * Byte ranges of HTTP: parses a Range header for a body of known size.
 *
 * A `ByteSpan` is half-open (`end` is one past the last byte), as in `Uint8Array.subarray`. Ranges of HTTP are
 * inclusive; only this file converts between them.
 * Source: RFC 9110 §14.1.2 (range syntax), §14.2 (an invalid Range is ignored), §15.3.7.2 (overlaps may be merged).
 * @module
 */
import { assert } from "./assert.ts";

/** Bytes `[start, end)` of a body. */
export type ByteSpan = Readonly<{ start: number; end: number }>;

/** The meaning of a Range header for a body: all bytes, some spans, or no byte of the body. */
export type RangeMeaning =
  | Readonly<{ kind: "whole" }>
  | Readonly<{ kind: "spans"; spans: readonly ByteSpan[] }>
  | Readonly<{ kind: "unsatisfiable" }>;

// The unit's name is case-insensitive (RFC 9110 §14.1); white space is allowed around commas (§5.6.1).
const rangeHeaderPattern = /^bytes=[ \t]*(\d*-\d*(?:[ \t]*,[ \t]*\d*-\d*)*)[ \t]*$/i;

/** Maximum number of ranges of a request; a media player needs few. */
export const rangesPerRequestMax = 16;

/**
 * Parses a Range header for a body of known size.
 *
 * @param header - The header's value; `null` when absent.
 * @param size - Body size, in bytes, 0 to 2^53 - 1.
 * @returns Spans are clamped to the body, and keep the order of the header. Overlapping spans are merged, so their sum
 * never exceeds the body. More than {@link rangesPerRequestMax} ranges are unsatisfiable; an invalid header means the
 * whole body.
 */
export function readRange(header: string | null, size: number): RangeMeaning {
  assert(Number.isSafeInteger(size) && size >= 0, "a body size is a whole number of bytes");
  if (header === null) return whole;
  const plain = readPlainRange(header, size);
  if (plain !== undefined) return plain;
  const list = rangeHeaderPattern.exec(header)?.[1];
  if (list === undefined) return whole;

  const parts = list.split(",").map(readOffsets);
  // "-" and "5-2" are syntax errors: the header is ignored (RFC 9110 §14.1.1).
  if (parts.some(isInvalid)) return whole;
  if (parts.length > rangesPerRequestMax) return unsatisfiable;

  const spans = parts.map((part) => spanOf(part, size)).filter((span) => span !== undefined);
  if (spans.length === 0) return unsatisfiable;
  return { kind: "spans", spans: spans.length === 1 ? spans : mergeOverlaps(spans) };
}

const whole: RangeMeaning = { kind: "whole" };
const unsatisfiable: RangeMeaning = { kind: "unsatisfiable" };

const plainStart = "bytes=";

/**
 * One range with both numbers, as almost every range that is requested; undefined for any other header. Lists, texts
 * and a pattern, as the others need them, took 1 to 2 µs of a small response (measured).
 */
function readPlainRange(header: string, size: number): RangeMeaning | undefined {
  if (!header.startsWith(plainStart)) return undefined;
  const dash = header.indexOf("-", plainStart.length);
  const first = readDigits(header, plainStart.length, dash);
  const last = readDigits(header, dash + 1, header.length);
  if (first === undefined || last === undefined) return undefined;
  if (last < first) return whole;
  if (first >= size) return unsatisfiable;
  return { kind: "spans", spans: [{ start: first, end: Math.min(size, last + 1) }] };
}

const digitZero = "0".charCodeAt(0);

/** The number that the characters from `start` to `end` are; undefined unless they are 1 to 15 digits. */
function readDigits(text: string, start: number, end: number): number | undefined {
  if (end <= start || end - start > exactDigitsMax) return undefined;
  let value = 0;
  for (let at = start; at < end; at += 1) {
    const digit = text.charCodeAt(at) - digitZero;
    if (digit < 0 || digit > 9) return undefined;
    value = value * 10 + digit;
  }
  return value;
}

/** Writes one span as the value of `Content-Range`. */
export function contentRange(span: ByteSpan, size: number): string {
  assert(span.start < span.end && span.end <= size, "a span is within its body");
  return `bytes ${span.start}-${span.end - 1}/${size}`;
}

/**
 * Merges overlapping spans. Adjacent spans stay separate: the client requested two parts.
 *
 * @param spans - Non-empty spans in the order of the request.
 * @returns Disjoint spans, each at the position of its first source.
 */
export function mergeOverlaps(spans: readonly ByteSpan[]): ByteSpan[] {
  const merged: ByteSpan[] = [];
  for (const span of spans) {
    let { start, end } = span;
    let place = merged.length;
    for (let index = merged.length - 1; index >= 0; index--) {
      const other = merged[index];
      if (other === undefined || other.start >= end || start >= other.end) continue;
      start = Math.min(start, other.start);
      end = Math.max(end, other.end);
      merged.splice(index, 1);
      place = index;
    }
    merged.splice(place, 0, { start, end });
  }
  return merged;
}

/** The digits before and after the dash of a range. */
type Offsets = Readonly<{ first: string; last: string }>;

function readOffsets(part: string): Offsets {
  const dash = part.indexOf("-");
  return { first: part.slice(0, dash).trim(), last: part.slice(dash + 1).trim() };
}

/** Numbers of so many digits are exact. */
const exactDigitsMax = 15;

function isInvalid({ first, last }: Offsets): boolean {
  if (first === "" || last === "") return first === last;
  const isExact = first.length <= exactDigitsMax && last.length <= exactDigitsMax;
  return isExact ? Number(last) < Number(first) : BigInt(last) < BigInt(first);
}

function spanOf({ first, last }: Offsets, size: number): ByteSpan | undefined {
  // "-500" counts from the end; a suffix longer than the body means the whole body.
  const start = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size : Math.min(size, Number(last) + 1);
  return start < end ? { start, end } : undefined;
}
