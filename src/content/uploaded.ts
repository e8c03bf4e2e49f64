/**
 * Content that was uploaded here and is not in a block yet: a slice of a file whose item was verified when it came.
 *
 * Small content is compared with its digest whenever it is opened: that costs less than reading it. Of larger content
 * this is done when its file has changed since it was verified, or was verified by an earlier process; what is too
 * large for it leaves as not verified then.
 * Source: contract.md §2 "Verified: true" (b); docs/decisions/020-content-checksums.md.
 * @module
 */
import { type FileHandle, open, stat } from "node:fs/promises";
import { LRUCache } from "lru-cache";
import type { Id } from "../arweave/id.ts";
import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import { equalBytes } from "../lib/bytes.ts";
import type { ByteSpan } from "../lib/range.ts";
import type { Gate } from "./blocked.ts";
import { contentBufferBytesMax } from "./open.ts";
import type { OpenContent } from "./open-content.ts";

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

/** Finds payloads by id; undefined for what was not uploaded, or is no longer kept. */
export type FindUploaded = (id: Id) => Promise<UploadedPayload | undefined>;

/** Opens what was uploaded. */
export type UploadedContent = Readonly<{ open: (id: Id) => Promise<OpenContent | undefined> }>;

/** Larger content has a file of its own, which never changes once written. Source: upload/intake/item-store.ts. */
const sharedBytesMax = 2 ** 20;

/** Compared within a tenth of a second; more than that is for those who read it all. */
const comparedBytesMax = 64 * 2 ** 20;
const pieceBytes = 256 * 2 ** 10;

/** Files that were compared, about 15 MiB. */
const comparedMax = 100_000;

/** A file, and the byte in it from which spans count. */
type FilePlace = Pick<UploadedPayload, "path" | "start">;

/** Creates the source. */
export function createUploadedContent(find: FindUploaded, gate: Gate): UploadedContent {
  /** What the files were when their content was compared. */
  const compared = new LRUCache<Id, string>({ max: comparedMax });

  async function isVerified(payload: UploadedPayload): Promise<boolean> {
    const { id, size } = payload;
    const sight = size > sharedBytesMax ? await sightOf(payload) : undefined;
    if (sight !== undefined && (sight.isAsVerified || compared.get(id) === sight.text)) return true;
    if (size > comparedBytesMax) return false;
    await compare(payload);
    if (sight !== undefined) compared.set(id, sight.text);
    return true;
  }

  return {
    open: async (id) => {
      const payload = await find(id);
      if (payload === undefined) return undefined;
      gate.checkId(id, id, payload.digest);
      return opened(payload, await isVerified(payload), gate);
    },
  };
}

/** How a file is seen; another sight is another file, or one that was changed. */
async function sightOf({ path, verifiedAt }: UploadedPayload) {
  const { ino, size, ctimeMs } = await missingIsBusy(path, stat(path));
  const isAsVerified = verifiedAt !== undefined && Math.floor(ctimeMs) <= verifiedAt;
  return { text: `${ino} ${size} ${ctimeMs}`, isAsVerified };
}

/** @throws Failure `source_failed` when a payload is not what it was, `busy` when its file is gone. */
async function compare(payload: UploadedPayload): Promise<void> {
  const { id, path, size, digest } = payload;
  const hasher = new Bun.CryptoHasher("sha256");
  for await (const piece of piecesOf(payload, { start: 0, end: size })) hasher.update(piece);
  if (!equalBytes(new Uint8Array(hasher.digest()), digest))
    throw new Failure("source_failed", { id, path, reason: "the file of an upload was damaged" });
}

function opened(payload: UploadedPayload, verified: boolean, gate: Gate): OpenContent {
  const { id, size, digest, contentType, contentEncoding, path, start, headerSize } = payload;
  const check = async () => gate.checkId(id, id, digest);

  async function* read(span: ByteSpan, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    await check();
    for await (const piece of piecesOf(payload, span)) {
      signal.throwIfAborted();
      yield piece;
    }
  }

  return {
    ...{ id, size, digest, contentType, contentEncoding, verified },
    root: undefined,
    dataOffset: 0,
    stable: false,
    trusted: true,
    check,
    cached: () => true,
    read,
    inspect: (span) => piecesOf(payload, span),
    bytes: async (span) => {
      await check();
      return await bytesOf(payload, span);
    },
    header: async () => {
      await check();
      return await bytesOf({ path, start: start - headerSize }, { start: 0, end: headerSize });
    },
    file: async (span) => {
      await check();
      return { path, start: start + span.start };
    },
  };
}

async function bytesOf(place: FilePlace, span: ByteSpan): Promise<Uint8Array> {
  assert(span.end - span.start <= contentBufferBytesMax, "a buffer is bounded");
  const bytes = new Uint8Array(span.end - span.start);
  let at = 0;
  for await (const piece of piecesOf(place, span)) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/** The bytes of a span of a file from a place on. @throws Failure `busy`, `source_failed`. */
async function* piecesOf({ path, start }: FilePlace, span: ByteSpan): AsyncGenerator<Uint8Array> {
  const file: FileHandle = await missingIsBusy(path, open(path, "r"));
  try {
    for (let at = span.start; at < span.end; ) {
      const piece = new Uint8Array(Math.min(pieceBytes, span.end - at));
      const { bytesRead } = await file.read(piece, 0, piece.length, start + at);
      if (bytesRead === 0)
        throw new Failure("source_failed", { path, reason: "the file of an upload was cut short" });
      yield piece.subarray(0, bytesRead);
      at += bytesRead;
    }
  } finally {
    await file.close();
  }
}

/** A file that has gone went because its item is on the chain: it is found elsewhere next time. */
async function missingIsBusy<Answer>(path: string, work: Promise<Answer>): Promise<Answer> {
  try {
    return await work;
  } catch (error) {
    throw new Failure("busy", { path }, error);
  }
}
