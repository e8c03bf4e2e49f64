/**
 * Reading a span of a root: what is on this disk from there, the rest as it is fetched; made as it is taken.
 * @module
 */
import { assert } from "../lib/assert.ts";
import type { ByteSpan } from "../lib/range.ts";
import { ignoreRejection, linkedController } from "../lib/stop.ts";
import { extentCallBytesMax } from "../store/extents/extent-reads.ts";
import type { Extents } from "../store/extents/extents.ts";
import type { RootSpec } from "../store/root-spec.ts";
import { type Fill, type FilledPiece, likelyChunk } from "./fill.ts";

/** Bytes of a piece. A reader that has stopped taking holds one, and thousands of readers may have stopped. */
const pieceBytes = 64 * 1024;

/** Chunks that are fetched ahead of a reader that takes what comes. */
const chunksAhead = 4;

/** What reading needs. */
export type ReadParts = Readonly<{ extents: Extents; fill: Fill }>;

/**
 * Gives the bytes of a span in pieces of at most 64 KiB, in order.
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
  const { extents, fill } = parts;
  const own = linkedController(signal);
  let unkept: FilledPiece | undefined; // bytes that could not be stored, and are here only
  try {
    for (let at = span.start; at < span.end; ) {
      signal.throwIfAborted();
      const part = { start: at, end: Math.min(span.end, at - (at % pieceBytes) + pieceBytes) };
      let piece = cut(unkept, part) ?? (await extents.read(root, part));
      if (piece === undefined) {
        if (unkept === undefined) fetchAhead(parts, root, { start: at, end: span.end }, own.controller.signal);
        const filled = await fill.at(root, at, own.controller.signal);
        unkept = filled.isStored ? undefined : filled;
        piece = cut(filled, part);
      }
      assert(piece !== undefined && piece.length > 0, "the filled range covers the requested one");
      at += piece.length;
      yield piece;
    }
  } finally {
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

/** A copy of a part, as far as the piece has it: a view would keep all of the piece while a slow reader reads. */
function cut(filled: FilledPiece | undefined, part: ByteSpan): Uint8Array | undefined {
  if (filled === undefined || part.start < filled.start) return undefined;
  const copy = filled.bytes.slice(part.start - filled.start, part.end - filled.start);
  return copy.length === 0 ? undefined : copy;
}

/** Starts fetching the chunks that come after the one that is needed now. */
function fetchAhead({ extents, fill }: ReadParts, root: RootSpec, span: ByteSpan, signal: AbortSignal): void {
  if (root.dataRoot === "" || !extents.hasSpace()) return; // one body, or nothing would be left of it
  let { end: next } = likelyChunk(root.size, span.start);
  for (let count = 0; count < chunksAhead && next < span.end; count++) {
    const chunk = likelyChunk(root.size, next);
    if (!extents.present(root, { start: next, end: Math.min(chunk.end, span.end) })) {
      ignoreRejection(fill.at(root, next, signal)); // its failure shows when the reader comes to it
    }
    next = chunk.end;
  }
}
