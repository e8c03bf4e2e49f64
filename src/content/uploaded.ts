/**
 * Content that was uploaded here and is not in a block yet: a slice of a file whose item was verified when it came.
 *
 * Content is compared with its SHA-256 once, and again when its file may have changed. Of small content, which shares
 * its file with items that are still being added, checksums of each 64 KiB are kept from then on, and every byte is
 * compared with them when it is read (uploaded-sums.ts). Of larger content the file's inode, size and change time tell;
 * what is too large to be compared after a restart leaves as not verified.
 * Source: docs/reference/gateway.md#verification; docs/decisions/020-content-checksums.md.
 * @module
 */
import { stat } from "node:fs/promises";
import { LRUCache } from "lru-cache";
import type { Id } from "../arweave/id.ts";
import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import { equalBytes } from "../lib/bytes.ts";
import type { ByteSpan } from "../lib/range.ts";
import { createSemaphore } from "../lib/semaphore.ts";
import { createSingleFlight } from "../lib/single-flight.ts";
import type { BlockGuard } from "./block-guard.ts";
import type { OpenContent } from "./open-content.ts";
import { contentBufferBytesMax } from "./open-place.ts";
import { bytesOf, missingIsBusy, piecesOf, type UploadedPayload } from "./uploaded-bytes.ts";
import { createSumReader, type SumReader, summedBytesMax } from "./uploaded-sums.ts";

/** Finds payloads by id; undefined for what was not uploaded, or is no longer kept. */
export type FindUploaded = (id: Id) => Promise<UploadedPayload | undefined>;

/** Opens what was uploaded. */
export type UploadedContent = Readonly<{ open: (id: Id) => Promise<OpenContent | undefined> }>;

/** Compared within a tenth of a second; more than that is for those who read it all. */
const comparedBytesMax = 64 * 2 ** 20;

/** Large contents that are compared at once, and that wait for it. */
const comparingMax = 2;
const waitingMax = 1_024;

/** Files that were compared, about 15 MiB. */
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
  /** What the files were when their content was compared. */
  const compared = new LRUCache<Id, string>({ max: comparedMax });
  const comparing = createSingleFlight<void>();
  const semaphore = createSemaphore(comparingMax, waitingMax);

  async function compareInOrder(payload: UploadedPayload, sight: string, signal: AbortSignal): Promise<void> {
    const turn = semaphore.take(signal);
    if (turn === undefined) throw new Failure("busy", { waiting: semaphore.waiting() });
    const release = await turn;
    try {
      await compare(payload, signal);
      compared.set(payload.id, sight);
    } finally {
      release();
    }
  }

  return async (payload) => {
    const { id, size } = payload;
    const { text, isAsVerified } = await sightOf(payload);
    if (isAsVerified || compared.get(id) === text) return true;
    if (size > comparedBytesMax) return false;
    await comparing.run(`${id} ${text}`, never, (signal) => compareInOrder(payload, text, signal));
    return true;
  };
}

/** How a file is seen; another sight is another file, or one that was changed. */
async function sightOf({ path, verifiedAt }: UploadedPayload) {
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
