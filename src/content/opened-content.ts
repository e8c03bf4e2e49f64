/**
 * Opened content: its description and verification status, the functions that read it, and two steps of its readers.
 * Source: docs/reference/gateway.md#verification.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import type { Composing } from "../lib/event-loop.ts";
import type { ByteSpan } from "../lib/range.ts";
import type { Release } from "../lib/semaphore.ts";
import type { RootSpec } from "../store/root-spec.ts";

/** A file, and the byte in it at which a span of content begins. */
type ContentFile = Readonly<{ path: string; start: number }>;

/** Verified content without a wait. Undefined if it is not on this disk, or if the block list needs a longer check. */
export type HotContent = Readonly<{
  /** Whether the block list, at this moment, allows all of the content without a longer check. */
  isClear: () => boolean;
  /** A span of at most 16 KiB that is in memory, or of at most 256 KiB whose file is open; verified. */
  bytes: (span: ByteSpan) => Uint8Array<ArrayBuffer> | undefined;
  /** The file that has a span from byte `start` on, as {@link OpenContent.file}. */
  file: (span: ByteSpan) => ContentFile | undefined;
}>;

/** An id's content, found but not yet read. */
export type OpenContent = ContentDescription & ContentReads;

/** Place, type and status of content. */
export type ContentDescription = Readonly<{
  id: Id;
  /** The root transaction whose data contains the content; undefined when only a trusted gateway has it. */
  root: RootSpec | undefined;
  /** Byte of the root's data at which the content begins. */
  dataOffset: number;
  /** Bytes. */
  size: number;
  /** The value of the tag, which is not validated; to be checked before it becomes a header. */
  contentType: string | undefined;
  contentEncoding: string | undefined;
  /** SHA-256, 32 bytes, where known: of an item from the index, of a transaction once it was read whole. */
  digest: Uint8Array | undefined;
  /**
   * Whether every byte is checked before `read`, `bytes` or `file` returns it.
   * Source: docs/reference/gateway.md#verification.
   */
  verified: boolean;
  /** Too deep to be forked away. */
  stable: boolean;
  /** From a source that the operator trusts, or verified. */
  trusted: boolean;
  /** Position of an item: bytes of the root's data. */
  item?: Readonly<{
    itemOffset: number; // of its header
    headerSize: number;
    parentStart: number; // of the payload of the bundle around it
  }>;
}>;

/** Functions that read content. Spans are bytes of the content, half-open, and within it. */
export type ContentReads = Readonly<{
  /**
   * Rejects with Failure `blocked` unless a span may be served. `read`, `bytes` and `file` call it themselves. Routes
   * call it for responses without a body, and for all spans of a response before the first one is sent.
   */
  check: (span: ByteSpan, signal: AbortSignal) => Promise<void>;
  /** Whether a span can be served from this disk. */
  cached: (span: ByteSpan) => boolean;
  /** Whether any byte was fetched from another machine through this object: also one that was damaged on the disk. */
  fetched: () => boolean;
  /**
   * Streams a span in small pieces, made as they are taken; ends after its last byte or throws, never early.
   * Throws Failure `blocked`, `source_failed`, `source_timeout`, `busy`; the signal's reason.
   */
  read: (span: ByteSpan, signal: AbortSignal) => AsyncIterable<Uint8Array>;
  /** As `read`, also for blocked content: for hashes and proofs, which contain no byte of it. */
  inspect: (span: ByteSpan, signal: AbortSignal) => AsyncIterable<Uint8Array>;
  /** Reads a complete span of at most `contentBufferBytesMax`. Rejects as `read` throws. */
  bytes: (span: ByteSpan, signal: AbortSignal) => Promise<Uint8Array>;
  /** Absent for content that is not in the disk cache. */
  hot?: HotContent;
  /** Reads the item's header, of content that was uploaded and is in no block. Rejects as `read` throws. */
  header?: () => Promise<Uint8Array>;
  /**
   * Returns the file of a span, when all of the span is on this disk and was checked. The caller opens the file within
   * 5 s. Undefined: use `read` or `bytes`.
   * Rejects with Failure `blocked`.
   */
  file: (span: ByteSpan, signal: AbortSignal) => Promise<ContentFile | undefined>;
}>;

/** Fetches a span to this disk where it can be stored, so that reading it afterwards waits for no source. */
export async function bringToDisk(
  content: Pick<OpenContent, "root" | "cached" | "read">,
  span: ByteSpan,
  signal: AbortSignal,
): Promise<void> {
  if (content.root === undefined || content.cached(span)) return;
  const pieces = content.read(span, signal)[Symbol.asyncIterator]();
  while (!(await pieces.next()).done);
}

/**
 * Begins to compose spans into one body. Spans on this disk wait for a slot. Spans from other machines take no slot:
 * otherwise a few slow sources would hold all slots.
 */
export async function beginComposing(
  content: Pick<OpenContent, "cached">,
  spans: readonly ByteSpan[],
  bytes: number,
  { begin, signal }: Pick<Composing, "begin" | "signal">,
): Promise<Release> {
  const isHere = spans.every((span) => content.cached(span));
  return isHere ? await begin(bytes, signal) : () => undefined;
}
