/**
 * SHA-256 of transactions' data that was read completely. A thread hashes it from this disk afterwards, so that
 * neither the reader nor other requests wait for the hash.
 * Source: docs/decisions/104-cold-content.md.
 * @module
 */
import type { HashPieceJob } from "../../workers/content.ts";
import type { Id } from "../arweave/id.ts";
import { extentCallBytesMax } from "../store/extents/extent-reads.ts";
import type { Extents } from "../store/extents/extents.ts";
import { hotSpanMax } from "../store/extents/hot-steps.ts";
import type { RootSpec } from "../store/root-spec.ts";
import type { Pool, Workers } from "../threads/pool.ts";

/** Learns the hashes of complete data. */
export type RootDigests = Readonly<{
  /**
   * Hashes a root's data soon, if it is on this disk; `Extents.digest` has the hash then. Does nothing when many roots
   * wait: the next complete read tries again.
   */
  learn: (root: RootSpec) => void;
  /** Resolves when the present piece is done, after `life` was aborted. */
  ended: () => Promise<void>;
}>;

/** Smaller data is hashed while it is read: that costs less than reading it again. Bytes. */
export const hashedLaterMin = 2 ** 20;

/** Roots that may wait; one is hashed at a time. */
const rootsWaitingMax = 64;

/** @param life - Ends the work when it is aborted. */
export function createRootDigests(
  extents: Pick<Extents, "digest" | "hold" | "read" | "setDigest">,
  hashPiece: HashPiece,
  life: AbortSignal,
): RootDigests {
  const waiting = new Map<Id, RootSpec>();
  let working: Promise<void> = Promise.resolve();

  async function hashRoot(root: RootSpec): Promise<void> {
    const { id, size } = root;
    const release = extents.hold(root);
    try {
      for (let at = 0; at < size; at += extentCallBytesMax) {
        if (life.aborted || extents.digest(root) !== undefined) return;
        const bytes = await extents.read(root, { start: at, end: Math.min(size, at + extentCallBytesMax) });
        if (bytes === undefined) return; // not stored, or damaged
        const digest = await hashPiece({ id, at, size, bytes }, life);
        if (digest !== undefined) extents.setDigest(root, digest);
      }
    } finally {
      release();
    }
  }

  async function work(): Promise<void> {
    for (const [id, root] of waiting) {
      try {
        await hashRoot(root);
      } catch {
        // The thread ended, or is full of work: the next complete read tries again.
      }
      waiting.delete(id);
    }
  }

  return {
    learn(root) {
      if (life.aborted || waiting.size >= rootsWaitingMax) return;
      const isIdle = waiting.size === 0;
      waiting.set(root.id, root);
      if (isIdle) working = work();
    },
    ended: () => working,
  };
}

/** Adds the next piece of data to its hash. The buffer of the piece may be empty afterwards. */
export type HashPiece = (job: HashPieceJob, signal: AbortSignal) => Promise<Uint8Array | undefined>;

/** Hashes pieces that were read from the content cache, in the thread, which has the hash of the earlier pieces. */
export function createPieceHash(thread: Pick<Pool<Workers["content"]>, "run">): HashPiece {
  return (job, signal) => {
    const { buffer, length } = job.bytes;
    // The cache may hold the buffer of a small span.
    const isOwn = length > hotSpanMax && buffer instanceof ArrayBuffer;
    return thread.run("hashPiece", job, { signal, transfer: isOwn ? [buffer] : [] });
  };
}
