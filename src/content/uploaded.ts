/**
 * Content that was uploaded here and is not in a block yet: a slice of a file whose item was verified on upload.
 *
 * Content is compared with its SHA-256 once, and again when its file may have changed. Of small content, which shares
 * its file with items that are still being added, checksums of each 64 KiB are remembered, and every byte is compared
 * with them when it is read. Of larger content the file's inode, size and change time are compared. Content that is too
 * large to be compared after a restart is served as not verified.
 * Source: docs/reference/gateway.md#verification; docs/decisions/020-content-checksums.md.
 * @module
 */
import { type FileHandle, open, stat } from "node:fs/promises";
import { LRUCache } from "lru-cache";
import { type Id, ownId } from "../arweave/id.ts";
import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import { equalBytes } from "../lib/bytes.ts";
import { entryLimit } from "../lib/entry-limit.ts";
import { sha256 } from "../lib/hash.ts";
import type { ByteSpan } from "../lib/range.ts";
import { createSemaphore } from "../lib/semaphore.ts";
import { createSingleFlight } from "../lib/single-flight.ts";
import type { BlockGuard } from "./block-guard.ts";
import { contentBufferBytesMax } from "./open-place.ts";
import type { OpenContent } from "./opened-content.ts";

/** Finds payloads by id; undefined for what was not uploaded, or is no longer stored. */
export type FindUploaded = (id: Id) => Promise<UploadedPayload | undefined>;

/** Opens what was uploaded. */
export type UploadedContent = Readonly<{ open: (id: Id) => Promise<OpenContent | undefined> }>;

/** Compared within a tenth of a second; larger content is not compared before it is read. */
const comparedBytesMax = 64 * 2 ** 20;

/** Large contents that are compared at once, and that wait for it. */
const comparingMax = 2;
const waitingMax = 1_024;

/** Files that were compared, about 24 MiB. */
const comparedMax = 100_000;

const never = new AbortController().signal;

/** Creates the source. */
export function createUploadedContent(find: FindUploaded, guard: BlockGuard): UploadedContent {
  const sums = createSumReader();
  const isVerified = createComparison();
  return {
    open: async (id) => {
      const payload = await find(id);
      if (payload === undefined) return undefined;
      guard.checkId(id, id, payload.digest);
      if (payload.size > summedBytesMax) return opened(payload, await isVerified(payload), guard, undefined);
      await sums.learn(payload);
      return opened(payload, true, guard, sums);
    },
  };
}

/** Tells of large content whether its file is what was verified; compares it where only that can tell. */
function createComparison(): (payload: UploadedPayload) => Promise<boolean> {
  /** Stamps of the files whose content was compared, by id. */
  const compared = new LRUCache<Id, string>(entryLimit(comparedMax));
  const comparing = createSingleFlight<void>();
  const semaphore = createSemaphore(comparingMax, waitingMax);

  async function compareInOrder(payload: UploadedPayload, stamp: string, signal: AbortSignal): Promise<void> {
    const permit = semaphore.take(signal);
    if (permit === undefined) throw new Failure("busy", { waiting: semaphore.waiting() });
    const release = await permit;
    try {
      await compare(payload, signal);
      compared.set(ownId(payload.id), stamp);
    } finally {
      release();
    }
  }

  return async (payload) => {
    const { id, size } = payload;
    const { text, isAsVerified } = await stampOf(payload);
    if (isAsVerified || compared.get(id) === text) return true;
    if (size > comparedBytesMax) return false;
    await comparing.run(`${id} ${text}`, never, (signal) => compareInOrder(payload, text, signal));
    return true;
  };
}

/** Identity of a file's state; another stamp means another file, or one that was changed. */
async function stampOf({ path, verifiedAt }: UploadedPayload) {
  const { ino, size, ctimeMs } = await missingIsBusy(path, stat(path));
  const isAsVerified = verifiedAt !== undefined && Math.floor(ctimeMs) <= verifiedAt;
  return { text: `${ino} ${size} ${ctimeMs}`, isAsVerified };
}

/** @throws Failure `source_failed` when a payload is not what it was, `busy` when its file is gone. */
async function compare(payload: UploadedPayload, signal: AbortSignal): Promise<void> {
  const { id, path, size, digest } = payload;
  const hasher = new Bun.CryptoHasher("sha256");
  for await (const piece of piecesOf(payload, { start: 0, end: size })) {
    signal.throwIfAborted();
    hasher.update(piece);
  }
  if (!equalBytes(new Uint8Array(hasher.digest()), digest))
    throw new Failure("source_failed", { id, path, reason: "the file of an upload was damaged" });
}

/** @param sums - Reads small content. */
function opened(
  payload: UploadedPayload,
  verified: boolean,
  guard: BlockGuard,
  sums: SumReader | undefined,
): OpenContent {
  const { id, size, digest, contentType, contentEncoding, path, start, headerSize } = payload;
  const check = async () => guard.checkId(id, id, digest);

  const pieces = (span: ByteSpan) => sums?.pieces(payload, span) ?? piecesOf(payload, span);

  async function* read(span: ByteSpan, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    await check();
    for await (const piece of pieces(span)) {
      signal.throwIfAborted();
      yield piece;
    }
  }

  return {
    id,
    size,
    digest,
    contentType,
    contentEncoding,
    verified,
    root: undefined,
    dataOffset: 0,
    stable: false,
    trusted: true,
    check,
    cached: () => true,
    fetched: () => false,
    read,
    inspect: pieces,
    bytes: async (span) => {
      await check();
      assert(span.end - span.start <= contentBufferBytesMax, "a buffer is bounded");
      return await (sums?.bytes(payload, span) ?? bytesOf(payload, span));
    },
    header: async () => {
      await check();
      return await bytesOf({ path, start: start - headerSize }, { start: 0, end: headerSize });
    },
    file: async (span) => {
      await check();
      // What shares its file with others is compared as it is read.
      return sums === undefined ? { path, start: start + span.start } : undefined;
    },
  };
}

/** Reads small items, compared. Calls reject with Failure `source_failed` when an item is not what it was, `busy`. */
export type SumReader = Readonly<{
  /** Compares an item with its SHA-256, unless that was done. */
  learn: (payload: UploadedPayload) => Promise<void>;
  /** Gives a span whole. */
  bytes: (payload: UploadedPayload, span: ByteSpan) => Promise<Uint8Array>;
  /** Gives a span step by step. */
  pieces: (payload: UploadedPayload, span: ByteSpan) => AsyncGenerator<Uint8Array>;
}>;

/** Larger items have a file of their own, which never changes once written. Source: src/upload/intake/item-store.ts. */
export const summedBytesMax = 2 ** 20;

/** Bytes that one checksum covers. A range reads at most this much more at either end. */
const stepBytes = 64 * 2 ** 10;

/** Memory of remembered checksums, and of an item's beside them: 16,000 items, or 11 GiB in items of 1 MiB. */
const sumsBytesMax = 4 * 2 ** 20;
const sumsEntryBytes = 256;

/** Items that are hashed at once, each in memory meanwhile, and that wait for it. */
const learningMax = 4;
const learningWaitingMax = 8_192;

/** Creates a reader. */
export function createSumReader(): SumReader {
  const sums = new LRUCache<string, BigUint64Array>({
    maxSize: sumsBytesMax,
    sizeCalculation: ({ byteLength }) => byteLength + sumsEntryBytes,
  });
  const learning = createSingleFlight<BigUint64Array>();
  const semaphore = createSemaphore(learningMax, learningWaitingMax);

  async function hash(payload: UploadedPayload, signal: AbortSignal): Promise<BigUint64Array> {
    const permit = semaphore.take(signal);
    if (permit === undefined) throw new Failure("busy", { waiting: semaphore.waiting() });
    const release = await permit;
    try {
      const bytes = await bytesOf(payload, { start: 0, end: payload.size });
      if (!equalBytes(sha256(bytes), payload.digest)) throw damage(payload);
      const learnt = sumsOf(bytes);
      sums.set(nameOf(payload), learnt);
      return learnt;
    } finally {
      release();
    }
  }

  const sumsFor = async (payload: UploadedPayload): Promise<BigUint64Array> => {
    const name = nameOf(payload);
    return sums.get(name) ?? (await learning.run(name, never, (signal) => hash(payload, signal)));
  };

  async function bytes(payload: UploadedPayload, span: ByteSpan): Promise<Uint8Array> {
    assert(payload.size <= summedBytesMax, "what has checksums is small");
    const known = await sumsFor(payload);
    const start = span.start - (span.start % stepBytes);
    const end = Math.min(payload.size, Math.ceil(span.end / stepBytes) * stepBytes);
    const read = await bytesOf(payload, { start, end });
    const first = start / stepBytes;
    for (const [at, sum] of sumsOf(read).entries())
      if (sum !== known[first + at]) {
        sums.delete(nameOf(payload));
        throw damage(payload);
      }
    return read.subarray(span.start - start, span.end - start);
  }

  return {
    learn: async (payload) => {
      await sumsFor(payload);
    },
    bytes,
    async *pieces(payload, span) {
      for (let at = span.start; at < span.end; ) {
        const end = Math.min(span.end, at - (at % stepBytes) + stepBytes);
        yield await bytes(payload, { start: at, end });
        at = end;
      }
    },
  };
}

/** An item at another place, sent again after its first bytes were lost, is compared anew. */
function nameOf({ id, path, start }: UploadedPayload): string {
  return `${id} ${start} ${path}`;
}

function sumsOf(bytes: Uint8Array): BigUint64Array {
  return BigUint64Array.from({ length: Math.ceil(bytes.length / stepBytes) }, (_, step) =>
    Bun.hash.xxHash3(bytes.subarray(step * stepBytes, (step + 1) * stepBytes)),
  );
}

function damage({ id, path }: Pick<UploadedPayload, "path"> & Readonly<{ id: Id }>): Failure {
  return new Failure("source_failed", { id, path, reason: "the file of an upload was damaged" });
}

/** An item's payload on this disk. */
export type UploadedPayload = Readonly<{
  id: Id;
  path: string;
  /** Of the payload, in the file. */
  start: number;
  /** Of the item's header, which ends where the payload begins. Bytes. */
  headerSize: number;
  size: number;
  contentType: string | undefined;
  contentEncoding: string | undefined;
  /** SHA-256 of the payload. */
  digest: Uint8Array;
  /** A moment after this process verified and wrote the item, Unix milliseconds; `undefined`: another one did. */
  verifiedAt: number | undefined;
}>;

/** A file, and the byte in it from which spans count. */
type FilePlace = Pick<UploadedPayload, "path" | "start">;

const pieceBytes = 256 * 2 ** 10;

/** Gives a span whole; the caller bounds it. @throws Failure `busy`, `source_failed`. */
export async function bytesOf(place: FilePlace, span: ByteSpan): Promise<Uint8Array> {
  const bytes = Buffer.allocUnsafeSlow(span.end - span.start); // overwritten below, or discarded
  await withFile(place, async (file) => {
    for (let at = 0; at < bytes.length; ) at += await readSome(file, place, bytes.subarray(at), span.start + at);
  });
  return bytes;
}

/** Gives a span in pieces of 256 KiB, made as they are taken. @throws Failure `busy`, `source_failed`. */
export async function* piecesOf(place: FilePlace, span: ByteSpan): AsyncGenerator<Uint8Array> {
  const file = await openPlace(place);
  try {
    for (let at = span.start; at < span.end; ) {
      const piece = new Uint8Array(Math.min(pieceBytes, span.end - at));
      const bytesRead = await readSome(file, place, piece, at);
      yield piece.subarray(0, bytesRead);
      at += bytesRead;
    }
  } finally {
    await file.close();
  }
}

/** A file is removed when its item is on the chain: the next request finds the item there. */
export async function missingIsBusy<Result>(path: string, work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    throw new Failure("busy", { path }, error);
  }
}

function openPlace({ path }: FilePlace): Promise<FileHandle> {
  return missingIsBusy(path, open(path, "r"));
}

async function withFile(place: FilePlace, work: (file: FileHandle) => Promise<void>): Promise<void> {
  const file = await openPlace(place);
  try {
    await work(file);
  } finally {
    await file.close();
  }
}

/** @returns How many bytes came, 1 or more. */
async function readSome(file: FileHandle, { path, start }: FilePlace, into: Uint8Array, at: number): Promise<number> {
  const { bytesRead } = await file.read(into, 0, into.length, start + at);
  if (bytesRead === 0) throw new Failure("source_failed", { path, reason: "the file of an upload was cut short" });
  return bytesRead;
}
