/**
 * Receipts on their way to the threads that sign them, those that wait together in one job.
 *
 * A signature is what an upload costs most. While all threads are at work the others gather, and go on together: so
 * that what comes after them, and the next items of those who wait for their receipts, come in batches too (measured:
 * 7.7 ms of CPU an item become 6.2, bench/uploads.ts).
 * @module
 */
import type { ReceiptTerms } from "../arweave/receipt.ts";
import { Failure } from "../failures.ts";
import { createBatcher } from "../lib/batcher.ts";
import { untilStopped } from "../lib/stop.ts";

/** Signs a receipt, the same to the byte whenever it is asked. Rejects with Failure `busy`; the signal's reason. */
export type SignReceipt = (terms: ReceiptTerms, signal: AbortSignal) => Promise<string>;

/** What a signer needs. */
export type ReceiptSignerOptions = Readonly<{
  /** Signs some in a thread, in their order. */
  signAll: (receipts: readonly ReceiptTerms[]) => Promise<readonly string[]>;
  /** Threads that sign. */
  threads: number;
}>;

/** A job takes no longer than so many signatures of four milliseconds. */
const batchMax = 16;

/** Receipts that wait; as many as uploads may. */
const waitingMax = 4_096;

/** Creates a signer. */
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
        // The item is durable: a client that asks again gets its receipt.
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
