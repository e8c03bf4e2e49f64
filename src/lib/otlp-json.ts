/**
 * Spans as OTLP in JSON: names in camelCase, ids in hexadecimal, 64-bit integers as decimal text.
 *
 * A span is encoded soon after its end, and its bytes are written directly: texts that were composed, joined and
 * converted, and spans that waited as objects, took three times the CPU (measured; bench/http/observability.ts).
 * Source: OTLP 1.5, "JSON Protobuf Encoding", messages of trace.v1.
 * @module
 */
import {
  type InstantSpan,
  requestIdAttribute,
  type SharedValues,
  type Span,
  type SpanAttributes,
  spanKinds,
} from "./spans.ts";
import { writeSpanId } from "./trace-context.ts";

/** Ended spans in the encoding of the collector. */
export type SpanBatch = Readonly<{ body: Uint8Array<ArrayBuffer>; count: number }>;

/** Collects ended spans. */
export type SpanWriter = Readonly<{
  add: (span: Span | InstantSpan) => void;
  /** Spans since the last `take`. */
  count: () => number;
  /** The spans since the last `take`; `undefined` without any. */
  take: () => SpanBatch | undefined;
  /** Returns the memory of a batch, which is overwritten. */
  reuse: (batch: SpanBatch) => void;
}>;

/**
 * Spans that are encoded together, while the code and its tables are in the processor's cache. Few, because objects
 * that outlive a collection of garbage cost more than their encoding (measured with 512; bench/http/observability.ts).
 */
const heldMax = 16;

/** Longest text of a value or a name; the rest is cut off. Characters. */
const textMax = 256;

/** First size of a buffer, which grows by doubling. Bytes. */
const bufferBytesFirst = 64 * 2 ** 10;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Status code of a failed span. */
const statusError = 2;

/** The fields of each span that have one length; the zeros are overwritten. The flag is that of a sampled trace. */
const head =
  `{"traceId":"${"0".repeat(32)}","spanId":"${"0".repeat(16)}","startTimeUnixNano":"${"0".repeat(19)}",` +
  `"endTimeUnixNano":"${"0".repeat(19)}","flags":1,"kind":0,"name":"`;
const headBytes = encoder.encode(head);

const traceIdAt = head.indexOf(`Id":"`) + 5;
const spanIdAt = head.indexOf(`spanId":"`) + 9;
const startAt = head.indexOf(`startTimeUnixNano":"`) + 20;
const endAt = head.indexOf(`endTimeUnixNano":"`) + 18;
const kindAt = head.indexOf(`kind":`) + 6;

const attributesStart = encoder.encode(`","attributes":[`);
const comma = encoder.encode(",");
const digitZero = 0x30;
const valueEnd = encoder.encode(`"}}`);
const parentStart = encoder.encode(`],"parentSpanId":"`);
const parentEnd = encoder.encode(`","status":`);
const noParent = encoder.encode(`],"status":`);
const success = encoder.encode("{}}");
const failed = encoder.encode(`{"code":${statusError}}}`);
const plainEnd = encoder.encode(`],"status":{}}`);
const sizeStart = encoder.encode(`,{"key":"http.response.body.size","value":{"intValue":"`);
const pathStart = encoder.encode(`"}},{"key":"url.path","value":{"stringValue":"`);
const tail = encoder.encode("]}]}]}");

/** Encodes the spans of one program. */
export function createSpanWriter(
  resource: SpanAttributes,
  scope: Readonly<{ name: string; version: string }>,
): SpanWriter {
  const start = encoder.encode(
    `{"resourceSpans":[{"resource":{"attributes":[${attributesText(resource)}]},` +
      `"scopeSpans":[{"scope":{"name":${quoted(scope.name)},"version":${quoted(scope.version)}},"spans":[`,
  );
  let buffer: Buffer = { bytes: new Uint8Array(bufferBytesFirst), size: 0 };
  let spare: Uint8Array<ArrayBuffer> | undefined;
  const held: (Span | InstantSpan)[] = [];
  let count = 0;
  const write = (): void => {
    for (const span of held) {
      put(buffer, buffer.size === 0 ? start : comma);
      if ("place" in span) putInstant(buffer, span);
      else putSpan(buffer, span);
    }
    held.length = 0;
  };
  return {
    add: (span) => {
      held.push(span);
      count += 1;
      if (held.length === heldMax) write();
    },
    count: () => count,
    take: () => {
      if (count === 0) return undefined;
      write();
      put(buffer, tail);
      const batch = { body: buffer.bytes.subarray(0, buffer.size), count };
      buffer = { bytes: spare ?? new Uint8Array(buffer.bytes.length), size: 0 };
      spare = undefined;
      count = 0;
      return batch;
    },
    reuse: ({ body }) => {
      spare = new Uint8Array(body.buffer);
    },
  };
}

function putInstant(buffer: Buffer, { place, atMs, shared, url, requestId, size }: InstantSpan): void {
  const start = buffer.size;
  shared.encoded ??= encodeShared(shared);
  put(buffer, shared.encoded);
  const { bytes } = buffer;
  writeDigits(bytes, place.traceId, start + traceIdAt);
  writeSpanId(bytes, start + spanIdAt);
  writeNanos(bytes, atMs, start + startAt);
  bytes.copyWithin(start + endAt, start + startAt, start + startAt + nanosDigits);
  bytes[start + kindAt] = digitZero + spanKinds.server;
  put(buffer, sizeStart);
  putText(buffer, String(size));
  put(buffer, pathStart);
  putPath(buffer, url);
  put(buffer, valueEnd);
  if (requestId !== undefined) {
    put(buffer, comma);
    putAttribute(buffer, requestIdAttribute, requestId);
  }
  putEnd(buffer, place.parentId, undefined);
}

function putSpan(buffer: Buffer, span: Span): void {
  const { shared, error } = span;
  const start = buffer.size;
  if (shared === undefined) {
    put(buffer, headBytes);
    putText(buffer, span.name);
    put(buffer, attributesStart);
  } else {
    shared.encoded ??= encodeShared(shared);
    put(buffer, shared.encoded);
  }
  writeHead(buffer.bytes, span, start);
  putAttributes(buffer, span);
  putEnd(buffer, span.parentId, error);
}

function putEnd(buffer: Buffer, parentId: string, error: string | undefined): void {
  if (parentId !== "") {
    put(buffer, parentStart);
    putText(buffer, parentId);
    put(buffer, parentEnd);
  } else if (error === undefined) {
    put(buffer, plainEnd);
    return;
  } else put(buffer, noParent);
  put(buffer, error === undefined ? success : failed);
}

/** Replaces the zeros of a span's beginning. */
function writeHead(target: Uint8Array, span: Span, start: number): void {
  const { trace, startMs, endMs } = span;
  writeDigits(target, trace.traceId, start + traceIdAt);
  writeDigits(target, span.spanId, start + spanIdAt);
  writeNanos(target, trace.epochMs + startMs, start + startAt);
  if (endMs === startMs) target.copyWithin(start + endAt, start + startAt, start + startAt + nanosDigits);
  else writeNanos(target, trace.epochMs + endMs, start + endAt);
  target[start + kindAt] = digitZero + span.kind;
}

function putAttributes(buffer: Buffer, { attributes, shared, error }: Span): void {
  let isFirst = shared === undefined;
  for (const name in attributes) {
    const value = attributes[name];
    if (value === undefined) continue;
    if (!isFirst) put(buffer, comma);
    isFirst = false;
    putAttribute(buffer, name, value);
  }
  if (error === undefined) return;
  if (!isFirst) put(buffer, comma);
  putAttribute(buffer, "error.type", error);
}

/** The span up to its own attributes; the shared ones are never without a value. */
function encodeShared({ name, attributes }: SharedValues): Uint8Array {
  return encoder.encode(
    `${head}${quoted(name).slice(1, -1)}${decoder.decode(attributesStart)}${attributesText(attributes)}`,
  );
}

/** The beginning of an attribute, up to a value of text and up to one of a whole number. */
type AttributeStart = Readonly<{ text: Uint8Array; whole: Uint8Array }>;

/** By the names of attributes, which are constants of the program. */
const attributeStarts = new Map<string, AttributeStart>();

function startOf(name: string): AttributeStart {
  const known = attributeStarts.get(name);
  if (known !== undefined) return known;
  const start = {
    text: encoder.encode(`{"key":"${name}","value":{"stringValue":"`),
    whole: encoder.encode(`{"key":"${name}","value":{"intValue":"`),
  };
  attributeStarts.set(name, start);
  return start;
}

function putAttribute(buffer: Buffer, name: string, value: string | number | boolean): void {
  const { text, whole } = startOf(name);
  const isText = typeof value === "string";
  if (!isText && !Number.isSafeInteger(value)) {
    put(buffer, encoder.encode(attributeText(name, value)));
    return;
  }
  put(buffer, isText ? text : whole);
  putText(buffer, isText ? value : String(value));
  put(buffer, valueEnd);
}

function attributesText(attributes: Readonly<SpanAttributes>): string {
  return Object.entries(attributes)
    .map(([name, value]) => attributeText(name, value))
    .join(",");
}

function attributeText(name: string, value: string | number | boolean): string {
  return `{"key":"${name}","value":${valueText(value)}}`;
}

function valueText(value: string | number | boolean): string {
  if (typeof value === "string") return `{"stringValue":${quoted(value)}}`;
  if (typeof value === "boolean") return `{"boolValue":${value}}`;
  return Number.isSafeInteger(value) ? `{"intValue":"${value}"}` : `{"doubleValue":${value}}`;
}

/** JSON text of a client's text: unpaired surrogates, which other parsers reject, are replaced. */
function quoted(text: string): string {
  return JSON.stringify((text.length > textMax ? text.slice(0, textMax) : text).toWellFormed());
}

/** Digits of Unix nanoseconds, from the year 2001 to 2286. */
const nanosDigits = 19;

/** Bytes that are written one after another. */
type Buffer = { bytes: Uint8Array<ArrayBuffer>; size: number };

function reserve(buffer: Buffer, count: number): void {
  const { bytes, size } = buffer;
  if (size + count <= bytes.length) return;
  buffer.bytes = new Uint8Array(Math.max(2 * bytes.length, size + count));
  buffer.bytes.set(bytes.subarray(0, size));
}

function put(buffer: Buffer, bytes: Uint8Array): void {
  reserve(buffer, bytes.length);
  buffer.bytes.set(bytes, buffer.size);
  buffer.size += bytes.length;
}

/** Puts the content of a JSON text. */
function putText(buffer: Buffer, text: string): void {
  const { length } = text;
  reserve(buffer, length);
  if (length <= textMax && writePlain(buffer.bytes, text, 0, length, buffer.size)) buffer.size += length;
  else put(buffer, encoder.encode(quoted(text).slice(1, -1)));
}

/** Puts the path of a URL, without its query. */
function putPath(buffer: Buffer, url: string): void {
  const from = url.indexOf("/", url.indexOf("//") + 2);
  const query = url.indexOf("?", from);
  const to = query === -1 ? url.length : query;
  reserve(buffer, to - from);
  if (to - from <= textMax && writePlain(buffer.bytes, url, from, to, buffer.size)) buffer.size += to - from;
  else putText(buffer, url.slice(from, to));
}

function writeDigits(target: Uint8Array, text: string, at: number): void {
  for (let each = 0; each < text.length; each += 1) target[at + each] = text.charCodeAt(each);
}

/** Writes Unix nanoseconds, to the microsecond, which exceed 2^53. @param ms - Unix milliseconds. */
function writeNanos(target: Uint8Array, ms: number, at: number): void {
  const micros = Math.round(ms * 1_000); // exact: below 2^53 until the year 2255
  const upper = Math.floor(micros / 1e8);
  writeNumber(target, upper, at);
  writeNumber(target, micros - upper * 1e8, at + 8);
}

/** Writes a part of a text, which is printable ASCII without a quote or a backslash; of other text, false. */
function writePlain(target: Uint8Array, text: string, from: number, to: number, at: number): boolean {
  for (let each = from; each < to; each += 1) {
    const code = text.charCodeAt(each);
    if (code < 0x20 || code > 0x7e || code === 0x22 || code === 0x5c) return false;
    target[at + each - from] = code;
  }
  return true;
}

/** Writes eight digits. @param value - From 0 to 99,999,999. */
function writeNumber(target: Uint8Array, value: number, at: number): void {
  let rest = value | 0;
  for (let digit = 7; digit >= 0; digit -= 1) {
    const next = (rest / 10) | 0;
    target[at + digit] = digitZero + rest - next * 10;
    rest = next;
  }
}
