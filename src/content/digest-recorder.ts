/**
 * Records the SHA-256 of content that is read completely. For an item that was found outside of the index, its
 * signature is checked at the end of the read.
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

/** The hash of content that is being read. */
export type ContentHash = Readonly<{
  update: (piece: Uint8Array) => void;
  /**
   * Ends the hash after the last piece.
   * @returns SHA-256, 32 bytes.
   * @throws Failure `source_failed` when the content is not what its id says.
   */
  finish: () => Promise<Uint8Array>;
}>;

/** Begins a hash before the first piece. */
export type BeginHash = (signal: AbortSignal) => Promise<ContentHash>;

/** Checks the signature in an item's header in a thread. Resolves with the reason when it does not sign the message. */
export type CheckItemMessage = (job: CheckItemMessageJob, signal: AbortSignal) => Promise<string | undefined>;

/** Where the outcome for an item is recorded, and how its signature is checked. */
export type ItemHashParts = ReadParts &
  Readonly<{ lookup: Pick<UnindexedLookup, "recordDigest" | "markWrong">; checkItemMessage: CheckItemMessage }>;

/** Bytes that are hashed at once on the calling thread. */
const hashedAtOnceMax = 2 ** 20;

/** The digest of one content, SHA-256 of 32 bytes. */
export type DigestRecorder = Readonly<{
  /** Undefined while the digest is unknown. */
  digest: () => Uint8Array | undefined;
  /** Begins to hash a complete read; undefined when the digest is known, or is not recorded from reads. */
  begin: (signal: AbortSignal) => Promise<ContentHash | undefined>;
  /** Hashes complete content in memory, in slices between which other work can run. */
  hashBytes: (bytes: Uint8Array, signal: AbortSignal) => Promise<void>;
  /** Reads all of the content to hash it. */
  readAll: (signal: AbortSignal) => Promise<Uint8Array>;
}>;

/**
 * Creates the recorder of one content.
 *
 * @param beginHash - Begins the hash of a complete read; undefined: only `readAll` hashes.
 * @param known - The digest where it is known from another source.
 * @param all - Reads all of the content.
 */
export function createDigestRecorder(
  beginHash: BeginHash | undefined,
  known: () => Uint8Array | undefined,
  all: (signal: AbortSignal) => AsyncIterable<Uint8Array>,
): DigestRecorder {
  let recorded: Uint8Array | undefined;
  const digest = () => recorded ?? known();

  async function beginRecorded(beginOne: BeginHash, signal: AbortSignal): Promise<ContentHash> {
    const hash = await beginOne(signal);
    const finish = async () => {
      recorded = await hash.finish();
      return recorded;
    };
    return { update: hash.update, finish };
  }

  const begin: DigestRecorder["begin"] = async (signal) =>
    beginHash === undefined || digest() !== undefined ? undefined : await beginRecorded(beginHash, signal);

  return {
    digest,
    begin,
    async hashBytes(bytes, signal) {
      const hash = await begin(signal);
      if (hash === undefined) return;
      for (let at = 0; at < bytes.length; at += hashedAtOnceMax) {
        if (at > 0) await new Promise<void>((resolve) => setImmediate(resolve));
        hash.update(bytes.subarray(at, at + hashedAtOnceMax));
      }
      await hash.finish();
    },
    async readAll(signal) {
      const hash = await beginRecorded(beginHash ?? beginDigest, signal);
      for await (const piece of all(signal)) hash.update(piece);
      return await hash.finish();
    },
  };
}

/** Hashes content without any other check. */
const beginDigest: BeginHash = async () => {
  const hasher = new Bun.CryptoHasher("sha256");
  return { update: (piece) => hasher.update(piece), finish: async () => new Uint8Array(hasher.digest()) };
};

/** Hashes a root's data; the digest is stored in the cache. */
export function beginRootHash(extents: Pick<Extents, "setDigest">, root: RootSpec): BeginHash {
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

/** Hashes an item's payload and checks its signature; the outcome is recorded in the lookup. */
export function beginItemHash(parts: ItemHashParts, id: Id, item: FoundItem): BeginHash {
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
        parts.lookup.recordDigest(id, item, digest);
        return digest;
      }
      parts.lookup.markWrong(id, item);
      throw new Failure("source_failed", { id, reason: fault });
    };
    return { update: hash.update, finish };
  };
}
