/**
 * Checks of content that is read completely: its hash, and for an item found elsewhere whether its
 * signature holds.
 * @module
 */

import type { CheckItemMessageJob } from "../../workers/verify.ts";
import { createItemHash, readItemHeader } from "../arweave/data-item.ts";
import type { Id } from "../arweave/id.ts";
import { Failure } from "../failures.ts";
import type { Extents } from "../store/extents/extents.ts";
import type { RootSpec } from "../store/root-spec.ts";
import { type ReadParts, readWhole } from "./root-reads.ts";
import type { UnindexedLookup } from "./unindexed-lookup.ts";
import type { FoundItem } from "./verify-hint.ts";

/** Content going by. */
export type WholeHash = Readonly<{
  update: (piece: Uint8Array) => void;
  /**
   * Ends it after the last piece.
   * @returns SHA-256, 32 bytes.
   * @throws Failure `source_failed` when the content is not what its id says.
   */
  finish: () => Promise<Uint8Array>;
}>;

/** Begins before the first piece. */
export type BeginWhole = (signal: AbortSignal) => Promise<WholeHash>;

/** Says why the signature in an item's header does not sign a message; a thread's work. */
export type CheckItemMessage = (job: CheckItemMessageJob, signal: AbortSignal) => Promise<string | undefined>;

/** The inputs for items. */
export type ItemWholeParts = ReadParts &
  Readonly<{ lookup: Pick<UnindexedLookup, "learnt" | "markWrong">; checkItemMessage: CheckItemMessage }>;

/** Hashed in one go on the calling thread. */
const hashedAtOnceMax = 2 ** 20;

/** Learning the hash of one content. */
export type Learning = Readonly<{
  /** The results so far. */
  digest: () => Uint8Array | undefined;
  /** Begins to learn from a reading of all of it; undefined when nothing is to be learnt. */
  begin: BeginLearning;
  /** Learns from all of it in memory, in slices that leave the thread to others in between. */
  take: (bytes: Uint8Array, signal: AbortSignal) => Promise<void>;
  /** Reads all of it to learn the hash. */
  readAll: (signal: AbortSignal) => Promise<Uint8Array>;
}>;

type BeginLearning = (signal: AbortSignal) => Promise<WholeHash | undefined>;

/**
 * Makes the learning of one content.
 *
 * @param beginWhole - Begins the hash of a complete read; undefined: only `readAll` hashes.
 * @param known - What others know of its hash.
 * @param all - Reads all of it.
 */
export function createLearning(
  beginWhole: BeginWhole | undefined,
  known: () => Uint8Array | undefined,
  all: (signal: AbortSignal) => AsyncIterable<Uint8Array>,
): Learning {
  let learnt: Uint8Array | undefined;
  const digest = () => learnt ?? known();

  async function noting(begin: BeginWhole, signal: AbortSignal): Promise<WholeHash> {
    const hash = await begin(signal);
    const finish = async () => {
      learnt = await hash.finish();
      return learnt;
    };
    return { update: hash.update, finish };
  }

  const begin: BeginLearning = async (signal) =>
    beginWhole === undefined || digest() !== undefined ? undefined : await noting(beginWhole, signal);

  return {
    digest,
    begin,
    async take(bytes, signal) {
      const hash = await begin(signal);
      if (hash === undefined) return;
      for (let at = 0; at < bytes.length; at += hashedAtOnceMax) {
        if (at > 0) await new Promise<void>((resolve) => setImmediate(resolve));
        hash.update(bytes.subarray(at, at + hashedAtOnceMax));
      }
      await hash.finish();
    },
    async readAll(signal) {
      const hash = await noting(beginWhole ?? beginDigest, signal);
      for await (const piece of all(signal)) hash.update(piece);
      return await hash.finish();
    },
  };
}

/** Hashes content of which nothing else is known. */
const beginDigest: BeginWhole = async () => {
  const hasher = new Bun.CryptoHasher("sha256");
  return { update: (piece) => hasher.update(piece), finish: async () => new Uint8Array(hasher.digest()) };
};

/** Hashes a root's data; the cache keeps the hash with it. */
export function beginRoot(extents: Pick<Extents, "setDigest">, root: RootSpec): BeginWhole {
  return async (signal) => {
    const hash = await beginDigest(signal);
    const finish = async () => {
      const digest = await hash.finish();
      extents.setDigest(root, digest);
      return digest;
    };
    return { update: hash.update, finish };
  };
}

/** Hashes an item's payload and checks its signature; the outcome is remembered. */
export function beginItem(parts: ItemWholeParts, id: Id, item: FoundItem): BeginWhole {
  const { itemOffset, headerSize, itemSize } = item;
  return async (signal) => {
    const span = { start: itemOffset, end: itemOffset + headerSize };
    const header = await readWhole(parts, item.root.spec, span, signal);
    const read = readItemHeader(header, "lenient");
    if (read.kind !== "header") throw new Failure("source_failed", { id, reason: "the header is another one" });
    const hash = createItemHash(read.header, itemSize - headerSize);
    const finish = async () => {
      const { message, digest } = hash.finish();
      const fault = await parts.checkItemMessage({ header, message }, signal);
      if (fault === undefined) {
        parts.lookup.learnt(id, item, digest);
        return digest;
      }
      parts.lookup.markWrong(id, item);
      throw new Failure("source_failed", { id, reason: fault });
    };
    return { update: hash.update, finish };
  };
}
