/**
 * Signs in threads: receipts in batches, and items for clients that upload without a key.
 *
 * The signature is the largest cost of an upload. While all threads are at work, receipts gather into larger batches.
 * Later work for these uploads is then batched too (measured: 7.7 ms of CPU per item become 6.2,
 * bench/uploads/uploads.ts).
 * @module
 */
import type { LeaveSigningJob, SignItemJob } from "../../workers/sign.ts";
import { signedHeaderSize } from "../arweave/data-item.ts";
import type { ReceiptTerms } from "../arweave/receipt.ts";
import type { Signer } from "../arweave/signers/scheme.ts";
import type { Tag } from "../arweave/tags.ts";
import { Failure } from "../failures.ts";
import { createBatcher } from "../lib/batcher.ts";
import { ignoreRejection, untilStopped } from "../lib/stop.ts";
import type { Pool, Workers } from "../threads/pool.ts";

/** Signs a receipt, always with the same bytes. Rejects with Failure `busy` or the signal's reason. */
export type SignReceipt = (terms: ReceiptTerms, signal: AbortSignal) => Promise<string>;

export type ReceiptSignerOptions = Readonly<{
  /** Signs receipts in a thread, in order. */
  signAll: (receipts: readonly ReceiptTerms[]) => Promise<readonly string[]>;
  /** Number of threads. */
  threads: number;
}>;

/** Receipts of one batch; a signature takes four milliseconds. */
const batchMax = 16;

/** Limit of the queue, equal to that of uploads. */
const waitingMax = 4_096;

export function createReceiptSigner({ signAll, threads }: ReceiptSignerOptions): SignReceipt {
  const batcher = createBatcher<ReceiptTerms, string, number>({
    name: "upload.receipt",
    workers: Array.from({ length: threads }, (_, thread) => thread),
    waitingMax,
    batchSize: (waiting, idle) => Math.min(batchMax, Math.ceil(waiting.length / idle)),
    run: async (batch) => {
      try {
        const signatures = await signAll(batch.map(({ input }) => input));
        for (const [index, { resolve, reject }] of batch.entries()) {
          const signature = signatures[index];
          if (signature === undefined) reject(new Failure("busy", { reason: "a receipt was not signed" }));
          else resolve(signature);
        }
      } catch (error) {
        // The item is durable: a client that retries gets its receipt.
        for (const { reject } of batch) reject(new Failure("busy", { reason: "receipts were not signed" }, error));
      }
    },
  });
  return (terms, signal) => {
    const signed = batcher.add(terms);
    if (signed === undefined) return Promise.reject(new Failure("busy", { waiting: batcher.waiting() }));
    return untilStopped(signed, signal);
  };
}

/** A payload and its tags. */
export type UnsignedPayload = Readonly<{
  /** Path within the folder of uploads. */
  file: string;
  /** Offset of the payload in the file. Bytes. */
  start: number;
  size: number;
  tags: readonly Tag[];
}>;

export type ItemSigner = Readonly<{
  /**
   * Size of the header of an item with these tags.
   * @throws Failure `malformed_input` {reason} for invalid tags.
   */
  headerSize: (tags: readonly Tag[]) => number;
  /**
   * Signs an item. The same payload with the same tags gives the same item.
   *
   * @returns The header of the item.
   * @throws Failure `disk_failed` {reason} when the payload cannot be read; `worker_failed`, `busy`; the signal's
   *   reason.
   */
  sign: (payload: UnsignedPayload, signal: AbortSignal) => Promise<Uint8Array<ArrayBuffer>>;
}>;

export type ItemSignerParts = Readonly<{
  /** The folder of uploads, as an absolute path. */
  folder: string;
  /** Pool of one thread, entry `sign`. */
  pool: Pool<Workers["sign"]>;
  /** File of the RSA key (JWK, 4096 bits), and its public part. */
  keyFile: string;
  key: Pick<Signer, "scheme" | "owner">;
}>;

export function createItemSigner({ folder, pool, keyFile, key }: ItemSignerParts): ItemSigner {
  return {
    headerSize: (tags) => signedHeaderSize({ tags }, key),
    sign: async (payload, signal) => {
      const session = crypto.randomUUID();
      try {
        for (let isFirst = true; ; isFirst = false) {
          const job: SignItemJob = { ...payload, folder, session, keyFile, isFirst };
          const response = await pool.run("signItem", job, { signal });
          if (response.kind === "signed") return response.header;
          if (response.kind === "unread") throw new Failure("disk_failed", { reason: response.reason });
          if (response.kind === "lost")
            throw new Failure("worker_failed", { reason: "the thread that signed the item has ended" });
        }
      } catch (error) {
        // The session of an aborted wait is still open in the thread. A dead thread has released it.
        const job: LeaveSigningJob = { session };
        ignoreRejection(pool.run("leaveSigning", job));
        throw error;
      }
    },
  };
}
