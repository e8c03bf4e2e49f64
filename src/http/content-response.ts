/**
 * Content as a response: whole, in parts, not modified, or not satisfiable, for GET and HEAD.
 * Source: RFC 9110 §13, §14, §15.3.7; docs/reference/gateway.md#ranges.
 * @module
 */
import { Failure, failures } from "../failures.ts";
import type { Composing } from "../lib/event-loop.ts";
import { type ByteSpan, contentRange, type RangeMeaning, readRange } from "../lib/range.ts";
import { withHeldMemory } from "./body-size.ts";
import { frameSpans } from "./byteranges.ts";
import { allowsTag, namesTag, rangeThatCounts } from "./conditional.ts";
import { type BodyReading, type ContentBody, type ReadableContent, spanBody, spansBody } from "./content-body.ts";
import { notModifiedHeaders, partHeaders } from "./content-headers.ts";
import { composingOf, type RequestContext } from "./context.ts";
import { unknownType } from "./header-values.ts";
import { jsonResponse } from "./responses.ts";

export type ContentRequest = Readonly<{
  headOnly: boolean;
  /** The Range header; null also when it is ignored. */
  range: string | null;
  /** The Range header that the runtime sees. */
  arrivedRange: string | null;
  ifRange: string | null;
  ifMatch: string | null;
  ifNoneMatch: string | null;
  composing: Composing;
}>;

export function readContentRequest(request: Request, { headOnly }: RequestContext): ContentRequest {
  const { headers } = request;
  return {
    headOnly,
    composing: composingOf(request),
    range: headers.get("range"),
    arrivedRange: headers.get("range"),
    ifRange: headers.get("if-range"),
    ifMatch: headers.get("if-match"),
    ifNoneMatch: headers.get("if-none-match"),
  };
}

/**
 * Responds with content.
 *
 * @param whole - Headers of the whole response (content-headers.ts).
 * @param bufferBytesMax - As in content-body.ts.
 * @param wholeStatus - Status of a response with all of the content.
 * @throws What reading throws before the first byte.
 */
export async function contentResponse(
  content: ReadableContent,
  whole: Headers,
  request: ContentRequest,
  bufferBytesMax: number,
  wholeStatus = 200,
): Promise<Response> {
  const tag = whole.get("ETag") ?? "";
  const { size } = content;
  const reading = { bufferBytesMax, ...request.composing };
  const meaning = readRange(rangeThatCounts(request.range, request.ifRange, tag), size);
  const spans = spansOf(meaning, size);
  // Read before the check, which may fetch the bytes.
  const isCached = spans.every(content.cached);
  // HEAD and each requested range pass the same block-list check as a full GET.
  for (const span of spans) await content.check(span, reading.signal);
  if (!allowsTag(request.ifMatch, tag)) throw new Failure("precondition_failed", { tag });
  if (namesTag(request.ifNoneMatch, tag))
    return new Response(null, { status: 304, headers: notModifiedHeaders(whole) });
  if (meaning.kind === "unsatisfiable") return unsatisfiable(size, whole);
  if (meaning.kind === "whole") {
    const headers = new Headers(whole);
    const sent = wholeStatus === 200 ? rangeIgnored(content, request) : content;
    const read = () => spanBody(sent, { start: 0, end: size }, reading);
    return await send(sent, wholeStatus, headers, size, request.headOnly, read);
  }
  const headers = partHeaders(whole);
  headers.set("X-Cache", isCached ? "HIT" : "MISS");
  const [only, ...others] = meaning.spans;
  if (only !== undefined && others.length === 0) {
    headers.set("Content-Range", contentRange(only, size));
    const read = () => spanBody(content, only, reading);
    return await send(content, 206, headers, only.end - only.start, request.headOnly, read);
  }
  return await sendSpans(content, headers, tag, meaning.spans, request.headOnly, reading);
}

function spansOf(meaning: RangeMeaning, size: number): readonly ByteSpan[] {
  if (meaning.kind === "spans") return meaning.spans;
  return meaning.kind === "whole" ? [{ start: 0, end: size }] : [];
}

/** What Bun takes for a range of bytes begins so; also what is none, such as "bytes = 0-9". */
const rangeToRuntime = /^\s*bytes/i;

/**
 * Content whose Range is ignored must not leave as a file when Bun would heed that Range: it does so by itself for a
 * 200 that is a whole file.
 */
function rangeIgnored(content: ReadableContent, { arrivedRange }: ContentRequest): ReadableContent {
  const isHeeded = arrivedRange !== null && rangeToRuntime.test(arrivedRange);
  return isHeeded ? { ...content, file: async () => undefined } : content;
}

async function sendSpans(
  content: ReadableContent,
  headers: Headers,
  tag: string,
  spans: readonly ByteSpan[],
  headOnly: boolean,
  reading: BodyReading,
): Promise<Response> {
  const frame = frameSpans(tag, headers.get("Content-Type") ?? unknownType, spans, content.size);
  headers.set("Content-Type", frame.contentType);
  headers.delete("Content-Disposition");
  const read = () => spansBody(content, spans, frame, reading);
  return await send(content, 206, headers, frame.size, headOnly, read);
}

async function send(
  content: ReadableContent,
  status: number,
  headers: Headers,
  size: number,
  headOnly: boolean,
  read: () => Promise<ContentBody>,
): Promise<Response> {
  if (headOnly) {
    headers.set("Content-Length", String(size));
    return new Response(null, { status, headers });
  }
  const { body, held } = await read();
  // What was on the disk may have been damaged, or evicted a moment ago.
  if (content.fetched()) headers.set("X-Cache", "MISS");
  return withHeldMemory(new Response(body, { status, headers }), size, held);
}

/** 416 includes the size and the type of the body, so that a player can retry. */
function unsatisfiable(size: number, whole: Headers): Response {
  const { status, message } = failures.range_not_satisfiable;
  const stored = [
    "ETag",
    "Accept-Ranges",
    "X-AR-IO-Data-Id",
    "Access-Control-Allow-Origin",
    "Access-Control-Expose-Headers",
  ];
  const headers = Object.fromEntries(stored.map((name) => [name, whole.get(name) ?? ""]));
  return jsonResponse(message, status, { ...headers, "Content-Range": `bytes */${size}` });
}
