/**
 * Signs receipts in threads, in batches.
 *
 * The signature is the largest cost of an upload. While all threads are at work, receipts gather into larger batches.
 * Later work for these uploads is then batched too (measured: 7.7 ms of CPU per item become 6.2, bench/uploads.ts).
 * @module
 */
import type { ReceiptTerms } from "../arweave/receipt.ts";
import { Failure } from "../failures.ts";
import { createBatcher } from "../lib/batcher.ts";
import { untilStopped } from "../lib/stop.ts";

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
