/**
 * Spans as OTLP in JSON: names in camelCase, ids in hexadecimal, 64-bit integers as decimal text.
 *
 * Text is composed directly, without an object tree for `JSON.stringify`.
 * Source: OTLP 1.5, "JSON Protobuf Encoding", messages of trace.v1.
 * @module
 */
import type { Span, SpanAttributes } from "./spans.ts";

/** Longest text of a value or a name; the rest is cut off. Characters. */
const textMax = 256;

/** Status code of a failed span. */
const statusError = 2;

/** The flags of a `traceparent`: sampled. */
const spanFlags = 1;

/** Encodes the spans of one program. */
export function createSpanEncoder(resource: SpanAttributes, scope: Readonly<{ name: string; version: string }>) {
  const head =
    `{"resourceSpans":[{"resource":{"attributes":[${attributesText(resource)}]},` +
    `"scopeSpans":[{"scope":{"name":${quoted(scope.name)},"version":${quoted(scope.version)}},"spans":[`;
  return (spans: readonly Span[]): Uint8Array<ArrayBuffer> =>
    new TextEncoder().encode(`${head}${spans.map(spanText).join(",")}]}]}]}`);
}

function spanText(span: Span): string {
  const { trace, spanId, parentId, name, kind, startMs, endMs, attributes, shared, error } = span;
  const parent = parentId === "" ? "" : `"parentSpanId":"${parentId}",`;
  const status = error === undefined ? "{}" : `{"code":${statusError}}`;
  if (error !== undefined) attributes["error.type"] = error;
  const start = nanosText(trace.epochMs + startMs);
  const end = endMs === startMs ? start : nanosText(trace.epochMs + endMs);
  return (
    `{"traceId":"${trace.traceId}","spanId":"${spanId}",${parent}"flags":${spanFlags},"name":${quoted(name)},` +
    `"kind":${kind},"startTimeUnixNano":"${start}","endTimeUnixNano":"${end}",` +
    `"attributes":[${joined(sharedText(shared), attributesText(attributes))}],"status":${status}}`
  );
}

const sharedTexts = new WeakMap<Readonly<SpanAttributes>, string>();

function sharedText(shared: Readonly<SpanAttributes>): string {
  return sharedTexts.getOrInsertComputed(shared, attributesText);
}

function joined(left: string, right: string): string {
  return left === "" || right === "" ? left + right : `${left},${right}`;
}

function attributesText(attributes: Readonly<SpanAttributes>): string {
  let text = "";
  for (const name in attributes) {
    const value = attributes[name];
    if (value === undefined) continue;
    text += `${text === "" ? "" : ","}{"key":"${name}","value":${valueText(value)}}`;
  }
  return text;
}

function valueText(value: string | number | boolean): string {
  if (typeof value === "string") return `{"stringValue":${quoted(value)}}`;
  if (typeof value === "boolean") return `{"boolValue":${value}}`;
  return Number.isSafeInteger(value) ? `{"intValue":"${value}"}` : `{"doubleValue":${value}}`;
}

/** Printable ASCII without a quote or a backslash. */
const plainPattern = /^[ !#-[\]-~]*$/;

/** JSON text of a client's text: unpaired surrogates, which other parsers reject, are replaced. */
function quoted(text: string): string {
  if (text.length <= textMax && plainPattern.test(text)) return `"${text}"`;
  return JSON.stringify((text.length > textMax ? text.slice(0, textMax) : text).toWellFormed());
}

/** Unix nanoseconds, to the microsecond. They exceed 2^53, so they stay text. @param ms - Unix milliseconds. */
function nanosText(ms: number): string {
  const micros = Math.round(ms * 1_000); // exact: below 2^53 until the year 2255
  return `${micros}000`;
}
