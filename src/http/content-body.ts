/**
 * The bytes of content as bodies of answers, by the way that costs least for their size and place.
 *
 * Bun drops Content-Length from streams made in JavaScript (oven-sh/bun#10507), so a stream is the last resort: a large
 * body that is not on this disk. A large body on disk is a slice of its file, which the kernel sends.
 * Source: design.md §5; measured figures: docs/evidence.md.
 * @module
 */
import type { OpenContent } from "../content/content.ts";
import type { ByteSpan } from "../lib/range.ts";
import type { MultipartFrame } from "./multipart.ts";

/** As much of content as an answer reads. */
export type ReadableContent = Pick<OpenContent, "size" | "check" | "bytes" | "read" | "file"> &
  Readonly<{
    /** A span that is in memory, without copying it. */
    blob?: (span: ByteSpan) => Blob;
  }>;

/** A body, and whether it leaves with its length. */
export type ContentBody = Readonly<{
  body: Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array>;
  sized: boolean;
}>;

/** From here on a file's slice costs less than its bytes do: sendfile is used from 1 MiB. */
export const fileBytesMin = 2 ** 20;

/**
 * Gives one span of content.
 *
 * @param bufferBytesMax - A span up to this size that is not on disk is answered when it is complete, a larger one
 * while it arrives.
 * @throws Failure `source_failed`, `source_timeout`, `busy`, `blocked` before the first byte; later trouble errors the
 * stream, which cuts the connection.
 */
export async function spanBody(
  content: ReadableContent,
  span: ByteSpan,
  bufferBytesMax: number,
  signal: AbortSignal,
): Promise<ContentBody> {
  const size = span.end - span.start;
  if (content.blob !== undefined) return { body: content.blob(span), sized: true };
  if (size >= fileBytesMin) {
    const file = await content.file(span, signal);
    if (file !== undefined)
      return { body: Bun.file(file.path).slice(file.start, file.start + size), sized: true };
  }
  if (size <= bufferBytesMax) return { body: owned(await content.bytes(span, signal)), sized: true };
  return { body: await streamOf(content.read(span, signal)), sized: false };
}

/** Gives several spans in their frame, whole when they fit in the buffer. Throws as {@link spanBody}. */
export async function spansBody(
  content: ReadableContent,
  spans: readonly ByteSpan[],
  frame: MultipartFrame,
  bufferBytesMax: number,
  signal: AbortSignal,
): Promise<ContentBody> {
  if (frame.size > bufferBytesMax)
    return { body: await streamOf(framedPieces(content, spans, frame, signal)), sized: false };
  const body = new Uint8Array(frame.size);
  let at = 0;
  for await (const piece of framedPieces(content, spans, frame, signal)) {
    body.set(piece, at);
    at += piece.byteLength;
  }
  return { body, sized: true };
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

/**
 * A stream that takes a piece when its reader wants one.
 *
 * The first piece is taken before the stream is given: while nothing was sent, trouble can still be an answer.
 */
async function streamOf(pieces: AsyncIterable<Uint8Array>): Promise<ReadableStream<Uint8Array>> {
  const iterator = pieces[Symbol.asyncIterator]();
  let first: IteratorResult<Uint8Array> | undefined = await iterator.next();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = first ?? (await iterator.next());
        first = undefined;
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}

/** A view of a larger buffer keeps all of it alive while a slow reader reads; such a piece is copied. */
function owned(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = bytes.buffer instanceof ArrayBuffer && bytes.byteLength * 2 >= bytes.buffer.byteLength;
  return whole
    ? new Uint8Array(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.byteLength)
    : new Uint8Array(bytes);
}
