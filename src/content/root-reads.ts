/**
 * Reading a span of a root: what is on this disk from there, the rest as it is fetched; made as it is taken.
 * @module
 */
import { chunkSize } from "../arweave/merkle.ts";
import { assert } from "../lib/assert.ts";
import type { ByteSpan } from "../lib/range.ts";
import { ignoreRejection, linkedController } from "../lib/stop.ts";
import { extentCallBytesMax } from "../store/extents/extent-reads.ts";
import type { Extents } from "../store/extents/extents.ts";
import type { RootSpec } from "../store/root-spec.ts";
import { type CacheFetcher, type FetchedPiece, likelyChunk } from "./fetch-to-cache.ts";

/** Bytes of a piece. A reader that has stopped taking holds one, and thousands of readers may have stopped. */
const pieceBytes = 64 * 1024;

/** Chunks that are fetched ahead of a reader that takes what comes. */
export const chunksAhead = 7;

export type ReadParts = Readonly<{ extents: Extents; fetcher: CacheFetcher }>;

/**
 * Gives the bytes of a span in order, in pieces of at most 64 KiB or of a fetched chunk.
 *
 * @throws Failure `source_failed`, `source_timeout`, `busy` in the place of the piece that could not be had; it never
 * ends early. The signal's reason.
 */
export async function* readSpan(
  parts: ReadParts,
  root: RootSpec,
  span: ByteSpan,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const { extents, fetcher } = parts;
  const own = linkedController(signal);
  const fetchAhead = createFetchAhead(parts, root, span, own.controller.signal);
  const endViews = fetcher.beginViews();
  const cut = (fetched: FetchedPiece | undefined, part: ByteSpan) =>
    cutPiece(fetched, part, span.end, endViews !== undefined);
  let unstored: FetchedPiece | undefined; // bytes that could not be stored, and are here only
  try {
    for (let at = span.start; at < span.end; ) {
      signal.throwIfAborted();
      const part = { start: at, end: Math.min(span.end, at - (at % pieceBytes) + pieceBytes) };
      let from = unstored ?? fetcher.recent(root, at);
      let piece = cut(from, part) ?? (await extents.read(root, part));
      // At the beginning of each fetched chunk, so that as many are always under way.
      if (unstored === undefined && (piece === undefined || at === from?.start)) fetchAhead(at);
      if (piece === undefined) {
        from = await fetcher.fetchAt(root, at, own.controller.signal);
        unstored = from.isStored ? undefined : from;
        piece = cut(from, part);
      }
      assert(piece !== undefined && piece.length > 0, "the fetched range covers the requested one");
      at += piece.length;
      fetcher.forgetRecent(root, from, at);
      yield piece;
    }
  } finally {
    endViews?.();
    own.unlink();
    own.controller.abort(new DOMException("the reader left", "AbortError"));
  }
}

/**
 * Gives a span whole.
 *
 * @throws As `readSpan`.
 */
export async function readWhole(
  parts: ReadParts,
  root: RootSpec,
  span: ByteSpan,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const size = span.end - span.start;
  if (size > 0 && size <= extentCallBytesMax) {
    const stored = await parts.extents.read(root, span);
    if (stored !== undefined) return stored;
  }
  const bytes = Buffer.allocUnsafeSlow(size); // overwritten below, or discarded
  let at = span.start;
  while (at < span.end) {
    const part = { start: at, end: Math.min(span.end, at + extentCallBytesMax) };
    const stored = await parts.extents.read(root, part);
    if (stored === undefined) break;
    bytes.set(stored, at - span.start);
    at = part.end;
  }
  for await (const piece of readSpan(parts, root, { start: at, end: span.end }, signal)) {
    bytes.set(piece, at - span.start);
    at += piece.length;
  }
  return bytes;
}

/**
 * Cuts a piece from the beginning of a part: the rest of the piece as a view where views are allowed, otherwise a copy
 * of the part. A view keeps all of the piece in memory while a slow reader reads.
 */
function cutPiece(fetched: FetchedPiece | undefined, part: ByteSpan, spanEnd: number, allowsViews: boolean) {
  if (fetched === undefined || part.start < fetched.start) return undefined;
  const isView = allowsViews && fetched.bytes.length <= chunkSize;
  const view = fetched.bytes.subarray(part.start - fetched.start, (isView ? spanEnd : part.end) - fetched.start);
  if (view.length === 0) return undefined;
  return isView ? view : view.slice();
}

/** Creates a function that starts fetching the chunks of a span after the one of a position, each once. */
function createFetchAhead(
  { extents, fetcher }: ReadParts,
  root: RootSpec,
  span: ByteSpan,
  signal: AbortSignal,
): (at: number) => void {
  let next = span.start;
  return (at) => {
    if (root.dataRoot === "" || !extents.hasSpace()) return; // one body, or nothing would be left of it
    next = Math.max(next, likelyChunk(root.size, at).end);
    const end = Math.min(span.end, at + (chunksAhead + 1) * chunkSize);
    while (next < end) {
      const chunk = likelyChunk(root.size, next);
      if (!extents.present(root, { start: next, end: Math.min(chunk.end, span.end) })) {
        ignoreRejection(fetcher.fetchAt(root, next, signal)); // its failure shows when the reader comes to it
      }
      next = chunk.end;
    }
  };
}
