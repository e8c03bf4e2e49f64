/**
 * The bytes of an id, from wherever they are.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import type { ByteSpan } from "../lib/range.ts";
import type { RootSpec } from "../store/extents.ts";

/** An id's content, found but not yet read. */
export type OpenContent = Readonly<{
  id: Id;
  root: RootSpec | undefined; // the root transaction's data in which the content lies; undefined when only a trusted gateway knows it
  dataOffset: number; // byte of the root's data at which the content begins
  size: number; // bytes
  contentType: string | undefined; // a valid media type, or undefined
  contentEncoding: string | undefined; // valid tokens, or undefined
  digest: Uint8Array | undefined; // SHA-256, 32 bytes, where known
  verified: boolean; // every byte that `read`, `bytes` and `file` give was or will be checked (contract.md §2)
  stable: boolean; // too deep to be forked away
  trusted: boolean; // from a source that the operator trusts, or verified
  /** Whether a span can be answered from this disk. */
  cached: (span: ByteSpan) => boolean;
  /** Streams a span in pieces of at most 256 KiB, made as they are taken. Throws Failure `source_failed`, `source_timeout`, `busy`, `blocked`. */
  read: (span: ByteSpan, signal: AbortSignal) => AsyncIterable<Uint8Array>;
  /** Gives a span of at most `contentBufferBytesMax` whole. Rejects as `read` throws. */
  bytes: (span: ByteSpan, signal: AbortSignal) => Promise<Uint8Array>;
  /** The file and the byte in it at which a span begins, when the span lies wholly and checked on this disk. */
  file: (span: ByteSpan, signal: AbortSignal) => Promise<Readonly<{ path: string; start: number }> | undefined>;
}>;

/** Finds and reads content. */
export type Content = Readonly<{
  /** Finds an id; transfers nothing when the index knows it. Rejects with Failure `not_found`, `blocked`, `source_failed`, `source_timeout`. */
  open: (id: Id, signal: AbortSignal) => Promise<OpenContent>;
  /** Brings a span of a root's data onto this disk, checked, and keeps it until `release`. Rejects with Failure `source_*`, `busy` when there is no room. */
  ensure: (root: RootSpec, span: ByteSpan, signal: AbortSignal) => Promise<Readonly<{ path: string; release: () => void }>>;
  /** Stores the whole data of a root that the caller has verified otherwise (format 1). Answers false when it could not be kept. */
  keep: (root: RootSpec, bytes: Uint8Array) => Promise<boolean>;
  /** Forgets that an id was unknown, and what is remembered of it: to be called when it is announced, indexed or uploaded. */
  forget: (id: Id) => void;
  close: () => Promise<void>;
}>;
