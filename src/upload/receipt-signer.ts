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

type Waiter = Readonly<{
  terms: ReceiptTerms;
  resolve: (signature: string) => void;
  reject: (error: unknown) => void;
}>;

/** Creates a signer. */
export function createReceiptSigner({ signAll, threads }: ReceiptSignerOptions): SignReceipt {
  const waiting: Waiter[] = [];
  let atWork = 0;
  let isWoken = false;

  async function signBatch(batch: readonly Waiter[]): Promise<void> {
    try {
      const signatures = await signAll(batch.map(({ terms }) => terms));
      for (const [index, { resolve, reject }] of batch.entries()) {
        const signature = signatures[index];
        if (signature === undefined) reject(new Failure("busy", { reason: "a receipt was not signed" }));
        else resolve(signature);
      }
    } catch (error) {
      // The item is durable: who asks again gets its receipt.
      for (const { reject } of batch) reject(new Failure("busy", { reason: "receipts were not signed" }, error));
    }
  }

  function serve(): void {
    isWoken = false;
    while (atWork < threads && waiting.length > 0) {
      const share = Math.ceil(waiting.length / (threads - atWork));
      atWork += 1;
      void signBatch(waiting.splice(0, Math.min(batchMax, share))).finally(() => {
        atWork -= 1;
        serve();
      });
    }
  }

  return (terms, signal) => {
    if (waiting.length >= waitingMax) return Promise.reject(new Failure("busy", { waiting: waiting.length }));
    const signed = new Promise<string>((resolve, reject) => {
      waiting.push({ terms, resolve, reject });
    });
    // Those of one turn of the event loop go together.
    if (!isWoken && atWork < threads) setImmediate(serve);
    isWoken = true;
    return untilStopped(signed, signal);
  };
}
