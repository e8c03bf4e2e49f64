/**
 * The bytes of content as response bodies, in the cheapest form for their size and location.
 *
 * Bun drops Content-Length from streams made in JavaScript (oven-sh/bun#10507), so a stream is the last
 * resort: a large body that is not on this disk. A large body on disk is a slice of its file, which the
 * kernel sends.
 * Source: docs/reference/gateway.md#content-responses; measurements: docs/evidence.md.
 * @module
 */
import { beginComposing, bringToDisk, type OpenContent } from "../content/open-content.ts";
import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import type { Composing } from "../lib/event-loop.ts";
import type { ByteSpan } from "../lib/range.ts";
import type { Release } from "../lib/semaphore.ts";
import type { HeldMemory } from "./body-size.ts";
import type { MultipartFrame } from "./byteranges.ts";

/** The parts of content that a response reads. */
export type ReadableContent = Pick<
  OpenContent,
  "root" | "size" | "check" | "cached" | "fetched" | "bytes" | "read" | "file"
> &
  Readonly<{
    /** All of the content, where it is in memory: responses share it. */
    inMemory?: Blob;
  }>;

/** The body of a response, and what it holds in memory until it has left; only a stream leaves without its length. */
export type ContentBody = Readonly<{
  body: Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array>;
  held: HeldMemory;
}>;

/** How a body is read. */
export type BodyReading = Composing &
  Readonly<{
    /** A span up to this size that is not on disk is sent when complete; a larger one is streamed. */
    bufferBytesMax: number;
  }>;

/** From here on a file's slice costs less than its bytes do: sendfile is used from 1 MiB. */
export const fileBytesMin = 2 ** 20;

/**
 * Bytes on disk that were not read since the start are compared with its checksums before it leaves as a file. Up to
 * this size a reader waits for that, 0.7 s at most; a larger body is compared while it is streamed. Bytes.
 */
const comparedAheadMax = 2 ** 30;

/** Bytes that are compared in one call of `OpenContent.file`, which rejects much more than this. */
const comparedAtOnce = 32 * 2 ** 20;

/** What a stream holds of its content: one piece (content/read.ts), and the one after it on its way. Bytes. */
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
    // Brought onto this disk first, so that a slow reader holds a file open and not megabytes of memory.
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
  return { body: viewOf(await content.bytes(span, signal)), held: { kind: "bytes", bytes: size } };
}

/** Gives several spans in their frame, whole when they fit in the buffer. Throws as {@link spanBody}. */
export async function spansBody(
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

/** Joins pieces to one body. */
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

/** The file that holds a span, if all of the span is there and as it should be. */
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

/** A piece, which has up to 64 KiB, must be taken within this: a slower reader holds memory that others need. */
const pieceTakenWithinMs = 60_000;

/**
 * A stream that takes a piece when its reader wants one, and ends with an error, which cuts the connection, when its
 * reader takes too little.
 *
 * The first piece is read before the stream is returned: until then, a fault can still be a response.
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
          controller.error(new Failure("busy", { reason: "the reader takes too little" }));
          void iterator.return?.();
        }, pieceTakenWithinMs);
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

/** The same bytes with the type of a body; the runtime copies them into the response. */
function viewOf(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const { buffer, byteOffset, byteLength } = bytes;
  return buffer instanceof ArrayBuffer ? new Uint8Array(buffer, byteOffset, byteLength) : new Uint8Array(bytes);
}
