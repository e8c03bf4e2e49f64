/**
 * The content cache on this disk: the data of root transactions as sparse files, and which steps of them are present.
 * It never learns where bytes come from; it stores only what its caller has checked.
 * @module
 */
import type { ByteSpan } from "../lib/range.ts";
import type { Id } from "../arweave/id.ts";

/** Data of one root transaction, by which its file is named and its bytes are checked. */
export type RootSpec = Readonly<{
  id: Id; // the root transaction
  dataRoot: string; // base64url, or "" where none exists (format 1): the file is then named by id
  size: number; // bytes of data
  weaveStart?: bigint; // absolute offset of the data's first byte; absent where it is not known
}>;

/** The cache of root data on this disk. All spans are bytes of the root's data, half-open. */
export type Extents = Readonly<{
  /** Which parts of a span are not present: disjoint, ascending, widened to whole steps. Empty when all is present. */
  missing: (root: RootSpec, span: ByteSpan) => ByteSpan[];
  /** Whether a span is wholly present. */
  present: (root: RootSpec, span: ByteSpan) => boolean;
  /** Stores checked bytes that begin at `start`. Answers false when they could not be kept (no room, disk trouble). */
  write: (root: RootSpec, start: number, bytes: Uint8Array) => Promise<boolean>;
  /** Reads a span and compares it with its checksums; undefined when it is not present or was damaged (and is now dropped). */
  read: (root: RootSpec, span: ByteSpan, signal: AbortSignal) => Promise<Uint8Array | undefined>;
  /** The file that holds a span, once every step of the span was compared with its checksum; undefined when it cannot be given. */
  file: (root: RootSpec, span: ByteSpan, signal: AbortSignal) => Promise<string | undefined>;
  /** Keeps a root from being evicted until the returned function is called. */
  hold: (root: RootSpec) => () => void;
  pin: (root: RootSpec) => void;
  unpin: (root: RootSpec) => void;
  remove: (root: RootSpec) => Promise<void>;
  flush: () => Promise<void>;
  close: () => Promise<void>;
}>;
