/**
 * Content that was uploaded here and is not in a block yet: a slice of a file whose item was verified when it came.
 *
 * What this process did not see arrive is compared with its digest once, before any of it leaves as verified; content
 * too large for that leaves as not verified.
 * Source: contract.md §2 "Verified: true" (b).
 * @module
 */
import { type FileHandle, open } from "node:fs/promises";
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
  size: number;
  contentType: string | undefined;
  contentEncoding: string | undefined;
  /** SHA-256 of the payload. */
  digest: Uint8Array;
  /** Whether this process verified the item itself. */
  isFresh: boolean;
}>;

/** Finds payloads by id; undefined for what was not uploaded, or is no longer kept. */
export type FindUploaded = (id: Id) => Promise<UploadedPayload | undefined>;

/** Opens what was uploaded. */
export type UploadedContent = Readonly<{ open: (id: Id) => Promise<OpenContent | undefined> }>;

/** Compared within a tenth of a second; more than that is for those who read it all. */
const comparedBytesMax = 64 * 2 ** 20;
const pieceBytes = 256 * 2 ** 10;

/** Ids whose bytes were compared, about 10 MiB. */
const comparedMax = 100_000;

/** Creates the source. */
export function createUploadedContent(find: FindUploaded, gate: Gate): UploadedContent {
  const compared = new LRUCache<Id, true>({ max: comparedMax });

  async function isVerified(payload: UploadedPayload): Promise<boolean> {
    if (payload.isFresh || compared.has(payload.id)) return true;
    if (payload.size > comparedBytesMax) return false;
    const hasher = new Bun.CryptoHasher("sha256");
    for await (const piece of piecesOf(payload, { start: 0, end: payload.size })) hasher.update(piece);
    if (!equalBytes(new Uint8Array(hasher.digest()), payload.digest))
      throw new Failure("source_failed", { id: payload.id, reason: "the file of an upload was damaged" });
    compared.set(payload.id, true);
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

function opened(payload: UploadedPayload, verified: boolean, gate: Gate): OpenContent {
  const { id, size, digest, contentType, contentEncoding, path, start } = payload;
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
      assert(span.end - span.start <= contentBufferBytesMax, "a buffer is bounded");
      await check();
      const bytes = new Uint8Array(span.end - span.start);
      let at = 0;
      for await (const piece of piecesOf(payload, span)) {
        bytes.set(piece, at);
        at += piece.length;
      }
      return bytes;
    },
    file: async (span) => {
      await check();
      return { path, start: start + span.start };
    },
  };
}

/** The bytes of a span of a payload; throws Failure `busy` when the file has gone: it is found elsewhere next time. */
async function* piecesOf({ path, start }: UploadedPayload, span: ByteSpan): AsyncGenerator<Uint8Array> {
  const file = await opening(path);
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

async function opening(path: string): Promise<FileHandle> {
  try {
    return await open(path, "r");
  } catch (error) {
    throw new Failure("busy", { path }, error);
  }
}
