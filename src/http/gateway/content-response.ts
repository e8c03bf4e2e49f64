/**
 * Content as a response: full, in ranges, not modified, or not satisfiable, for GET and HEAD.
 *
 * A body has the cheapest form for its size and location. Bun drops Content-Length from streams made in JavaScript
 * (oven-sh/bun#10507), so only a large body that is not on this disk is a stream. A large body on disk is a slice of
 * its file, which the kernel sends.
 * Source: RFC 9110 §13, §14, §15.3.7; RFC 2046 §5.1; docs/reference/gateway.md#ranges;
 *   docs/reference/gateway.md#content-responses; measurements: docs/evidence.md.
 * @module
 */
import { beginComposing, bringToDisk, type HotContent, type OpenContent } from "../../content/opened-content.ts";
import { Failure, failures } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import { unshared } from "../../lib/bytes.ts";
import type { Composing } from "../../lib/event-loop.ts";
import { type ByteSpan, contentRange, type RangeMeaning, readRange } from "../../lib/range.ts";
import type { Release } from "../../lib/semaphore.ts";
import { allowsTag, effectiveRange, matchesTag } from "../conditional-requests.ts";
import { unknownType } from "../header-values.ts";
import { composingOf, type RequestContext } from "../request-context.ts";
import { type HeldMemory, jsonResponse, withBodySize, withHeldMemory } from "../responses.ts";
import { notModifiedHeaders, partHeaders, unsatisfiableHeaders } from "./content-headers.ts";
import type { DiskHit } from "./response-cache.ts";

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
 * @param bufferBytesMax - A span up to this size that is not on disk is sent when complete; a larger one is streamed.
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
  const meaning = readRange(effectiveRange(request.range, request.ifRange, tag), size);
  const spans = spansOf(meaning, size);
  // Read before the check, which may fetch the bytes.
  const isCached = spans.every(content.cached);
  // HEAD and each requested range pass the same block-list check as a full GET.
  for (const span of spans) await content.check(span, reading.signal);
  if (!allowsTag(request.ifMatch, tag)) throw new Failure("precondition_failed", { tag });
  if (matchesTag(request.ifNoneMatch, tag))
    return new Response(null, { status: 304, headers: notModifiedHeaders(whole) });
  if (meaning.kind === "unsatisfiable") return unsatisfiable(size, whole);
  if (meaning.kind === "whole") {
    const headers = new Headers(whole);
    const sent = wholeStatus === 200 ? rangeIgnored(content, request) : content;
    const read = () => spanBody(sent, { start: 0, end: size }, reading);
    return await send(sent, { status: wholeStatus, headers, size, read }, request);
  }
  const headers = partHeaders(whole);
  headers.set("X-Cache", isCached ? "HIT" : "MISS");
  const [only, ...others] = meaning.spans;
  if (only !== undefined && others.length === 0) {
    headers.set("Content-Range", contentRange(only, size));
    const read = () => spanBody(content, only, reading);
    return await send(content, { status: 206, headers, size: only.end - only.start, read }, request);
  }
  return await send(content, spansResponse(content, { headers, tag, spans: meaning.spans }, reading), request);
}

/**
 * The response to a GET for content in the disk cache, at once, if its bytes are in memory or in an open file, or in
 * one that was verified and has not changed since; otherwise undefined: {@link contentResponse} reads them.
 *
 * @param range - The Range header, which no If-Range accompanies.
 */
export function responseFromDisk({ size, headers, hot }: DiskHit, range: string | null): Response | undefined {
  if (range === null)
    return size < fileBytesMin ? undefined : fileResponse(hot, { start: 0, end: size }, 200, headers.whole);
  const meaning = readRange(range, size);
  const [span, ...others] = meaning.kind === "spans" ? meaning.spans : [];
  if (span === undefined || others.length > 0) return undefined;
  const length = span.end - span.start;
  if (length >= fileBytesMin) return withRange(fileResponse(hot, span, 206, headers.part), span, size);
  const bytes = hot.bytes(span);
  if (bytes === undefined) return undefined;
  const response = new Response(bytes, { status: 206, headers: headers.part });
  return withRange(withBodySize(response, length), span, size);
}

/** Sets `Content-Range` on the response's own copy of its headers: another copy before it would cost 1 µs. */
function withRange(response: Response | undefined, span: ByteSpan, size: number): Response | undefined {
  response?.headers.set("Content-Range", contentRange(span, size));
  return response;
}

function fileResponse(hot: HotContent, span: ByteSpan, status: number, headers: Headers): Response | undefined {
  const file = hot.file(span);
  if (file === undefined) return undefined;
  const size = span.end - span.start;
  const body = Bun.file(file.path).slice(file.start, file.start + size);
  return withHeldMemory(new Response(body, { status, headers }), size, { kind: "file", bytes: size });
}

function spansOf(meaning: RangeMeaning, size: number): readonly ByteSpan[] {
  if (meaning.kind === "spans") return meaning.spans;
  return meaning.kind === "whole" ? [{ start: 0, end: size }] : [];
}

/** Bun parses a Range header with this start as a byte range, also an invalid one such as "bytes = 0-9". */
const rangeToRuntime = /^\s*bytes/i;

/**
 * Content without its file if Bun would apply a Range header that this module ignores: Bun applies the header by itself
 * to a 200 response that is a complete file.
 */
function rangeIgnored(content: ReadableContent, { arrivedRange }: ContentRequest): ReadableContent {
  const isHeeded = arrivedRange !== null && rangeToRuntime.test(arrivedRange);
  return isHeeded ? { ...content, file: async () => undefined } : content;
}

/** A response whose body is not read yet. */
type UnreadResponse = Readonly<{
  status: number;
  headers: Headers;
  /** Bytes of the body. */
  size: number;
  read: () => Promise<ContentBody>;
}>;

/** The response with several spans. Completes the headers. */
function spansResponse(
  content: ReadableContent,
  { headers, tag, spans }: Readonly<{ headers: Headers; tag: string; spans: readonly ByteSpan[] }>,
  reading: BodyReading,
): UnreadResponse {
  const frame = frameSpans(tag, headers.get("Content-Type") ?? unknownType, spans, content.size);
  headers.set("Content-Type", frame.contentType);
  headers.delete("Content-Disposition");
  return { status: 206, headers, size: frame.size, read: () => spansBody(content, spans, frame, reading) };
}

async function send(
  content: ReadableContent,
  { status, headers, size, read }: UnreadResponse,
  { headOnly }: ContentRequest,
): Promise<Response> {
  if (headOnly) {
    headers.set("Content-Length", String(size));
    return new Response(null, { status, headers });
  }
  const { body, held } = await read();
  // Cached bytes may have been damaged or evicted since the check, and fetched again.
  if (content.fetched()) headers.set("X-Cache", "MISS");
  return withHeldMemory(new Response(body, { status, headers }), size, held);
}

/** The 416 response has the size of the content, so that a player can retry. */
function unsatisfiable(size: number, whole: Headers): Response {
  const { status, message } = failures.range_not_satisfiable;
  return jsonResponse(message, status, { ...unsatisfiableHeaders(whole), "Content-Range": `bytes */${size}` });
}

/** The parts of content that a response reads. */
export type ReadableContent = Pick<
  OpenContent,
  "root" | "size" | "check" | "cached" | "fetched" | "bytes" | "read" | "file"
> &
  Readonly<{
    /** All of the content, where it is in memory: responses share it. */
    inMemory?: Blob;
  }>;

/** The body of a response, and the memory that it holds until it is sent; only a stream is sent without its length. */
type ContentBody = Readonly<{
  body: Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array>;
  held: HeldMemory;
}>;

/** How a body is read. */
export type BodyReading = Composing &
  Readonly<{
    /** A span up to this size that is not on disk is sent when complete; a larger one is streamed. */
    bufferBytesMax: number;
  }>;

/**
 * From this size on, the slice of a file that was verified and has not changed costs less than its bytes, which are
 * verified at each reading. Bytes.
 */
const fileBytesMin = 2 ** 18;

/**
 * Bytes on disk that were not read since the start are compared with their checksums before they are sent as a file. Up
 * to this size the client waits for that, 0.7 s at most; a larger body is compared while it is streamed. Bytes.
 */
const comparedAheadMax = 2 ** 30;

/** Bytes that are compared in one call of `OpenContent.file`, which rejects much more than this. */
const comparedAtOnce = 32 * 2 ** 20;

/** Memory of a stream: the piece that is being sent (src/content/root-reads.ts), and the next one. Bytes. */
const streamHoldsBytes = 128 * 2 ** 10;

/**
 * Returns one span of content.
 *
 * @throws Failure `source_failed`, `source_timeout`, `busy`, `blocked` before the first byte; later faults
 * abort the stream, which cuts the connection.
 */
export async function spanBody(content: ReadableContent, span: ByteSpan, reading: BodyReading): Promise<ContentBody> {
  const { bufferBytesMax, hold, signal } = reading;
  const size = span.end - span.start;
  const { inMemory } = content;
  if (inMemory !== undefined)
    return { body: inMemory.slice(span.start, span.end), held: { kind: "shared", blob: inMemory } };
  if (size >= fileBytesMin) {
    // Fetched to this disk first, so that a slow client holds an open file instead of megabytes of memory.
    if (size <= bufferBytesMax) await bringToDisk(content, span, signal);
    const file = await fileOf(content, span, signal);
    if (file !== undefined)
      return {
        body: Bun.file(file.path).slice(file.start, file.start + size),
        held: { kind: "file", bytes: size },
      };
  }
  if (size > bufferBytesMax) return await streamOf(content.read(span, signal));
  if (size >= fileBytesMin) {
    const begin = () => beginComposing(content, [span], size, reading);
    return await composed(content.read(span, signal), size, { ...reading, begin });
  }
  await hold(size);
  return { body: unshared(await content.bytes(span, signal)), held: { kind: "bytes", bytes: size } };
}

/** Returns several spans in their frame; as one buffer if they fit in it. Throws as {@link spanBody}. */
async function spansBody(
  content: ReadableContent,
  spans: readonly ByteSpan[],
  frame: MultipartFrame,
  reading: BodyReading,
): Promise<ContentBody> {
  const { bufferBytesMax, signal } = reading;
  const pieces = framedPieces(content, spans, frame, signal);
  if (frame.size > bufferBytesMax) return await streamOf(pieces);
  if (frame.size >= fileBytesMin) for (const span of spans) await bringToDisk(content, span, signal);
  const begin = () => beginComposing(content, spans, frame.size, reading);
  return await composed(pieces, frame.size, { ...reading, begin });
}

async function composed(
  pieces: AsyncIterable<Uint8Array>,
  size: number,
  { hold, begin, slice, blobOf }: Omit<BodyReading, "begin"> & Readonly<{ begin: () => Promise<Release> }>,
): Promise<ContentBody> {
  await hold(size);
  const end = await begin();
  try {
    const body = Buffer.allocUnsafeSlow(size); // every byte is written, or nothing of it is sent
    let at = 0;
    for await (const piece of pieces) {
      await slice(piece.byteLength);
      body.set(piece, at);
      at += piece.byteLength;
    }
    assert(at === size, "content has the size that it was opened with");
    return { body: await blobOf(body), held: { kind: "bytes", bytes: size } };
  } finally {
    end();
  }
}

/** The file that holds a span, if the file has all of the span, undamaged. */
async function fileOf(content: ReadableContent, span: ByteSpan, signal: AbortSignal) {
  const file = await content.file(span, signal);
  if (file !== undefined || span.end - span.start > comparedAheadMax || !content.cached(span)) return file;
  for (let start = span.start; start < span.end; start += comparedAtOnce) {
    const part = { start, end: Math.min(span.end, start + comparedAtOnce) };
    if ((await content.file(part, signal)) === undefined) return undefined;
  }
  return await content.file(span, signal);
}

async function* framedPieces(
  content: ReadableContent,
  spans: readonly ByteSpan[],
  frame: MultipartFrame,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  for (const [index, span] of spans.entries()) {
    const head = frame.heads[index];
    if (head !== undefined) yield head;
    yield* content.read(span, signal);
  }
  yield frame.tail;
}

/** Time in which a client must read 64 KiB of a piece: a slower client holds memory that others need. */
const takenWithinMs = 60_000;

/** Time in which a client must read a piece. */
function takenWithin({ length }: Uint8Array): number {
  return takenWithinMs * Math.max(1, length / 2 ** 16);
}

/**
 * A stream that reads a piece when its client can receive one. The stream ends with an error, which cuts the
 * connection, when the client reads too slowly.
 *
 * The first piece is read before the stream is returned: until then, a fault can still become an error response.
 */
async function streamOf(pieces: AsyncIterable<Uint8Array>): Promise<ContentBody> {
  const iterator = pieces[Symbol.asyncIterator]();
  let first: IteratorResult<Uint8Array> | undefined = await iterator.next();
  let timer: Timer | undefined;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        clearTimeout(timer);
        const { done, value } = first ?? (await iterator.next());
        first = undefined;
        if (done) return controller.close();
        controller.enqueue(value);
        timer = setTimeout(() => {
          controller.error(new Failure("busy", { reason: "the client reads too slowly" }));
          void iterator.return?.();
        }, takenWithin(value));
        timer.unref();
      },
      async cancel() {
        clearTimeout(timer);
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
  return { body, held: { kind: "stream", bytes: streamHoldsBytes } };
}

/** The frame around the parts of one response. */
type MultipartFrame = Readonly<{
  contentType: string;
  /** The header before each part's bytes, in order. */
  heads: readonly Uint8Array<ArrayBuffer>[];
  tail: Uint8Array<ArrayBuffer>;
  /** Bytes of the whole body. */
  size: number;
}>;

/** Secret part of the boundary, so that no content can contain the boundary on purpose. */
const boundarySecret = crypto.getRandomValues(new Uint8Array(32));

const encoder = new TextEncoder();

/**
 * Frames disjoint spans of one body. HEAD and GET of the same request get the same frame.
 *
 * @param tag - The body's entity tag.
 * @param partType - The body's media type, which each part repeats.
 * @param spans - Non-empty, within `size` bytes.
 */
function frameSpans(tag: string, partType: string, spans: readonly ByteSpan[], size: number): MultipartFrame {
  const ranges = spans.map((span) => contentRange(span, size));
  const boundary = new Bun.CryptoHasher("sha256")
    .update(boundarySecret)
    .update(tag)
    .update(ranges.join())
    .digest("hex")
    .slice(0, 40);
  const heads = ranges.map((range, index) => {
    const gap = index === 0 ? "" : "\r\n";
    const fields = `Content-Type: ${partType}\r\nContent-Range: ${range}`;
    return encoder.encode(`${gap}--${boundary}\r\n${fields}\r\n\r\n`);
  });
  const tail = encoder.encode(`\r\n--${boundary}--\r\n`);
  const framing = heads.reduce((sum, head) => sum + head.byteLength, tail.byteLength);
  const bodies = spans.reduce((sum, span) => sum + span.end - span.start, 0);
  return {
    contentType: `multipart/byteranges; boundary=${boundary}`,
    heads,
    tail,
    size: framing + bodies,
  };
}
