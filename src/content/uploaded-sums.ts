/**
 * Checksums of small uploaded items: learnt when an item's SHA-256 was compared, compared with every byte that is read
 * from then on. Their files grow while they are read, so that no change time can tell whether an item is what it was.
 * Source: docs/decisions/020-content-checksums.md.
 * @module
 */
import { LRUCache } from "lru-cache";
import type { Id } from "../arweave/id.ts";
import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import { equalBytes } from "../lib/bytes.ts";
import { sha256 } from "../lib/hash.ts";
import type { ByteSpan } from "../lib/range.ts";
import { createSemaphore } from "../lib/semaphore.ts";
import { createSingleFlight } from "../lib/single-flight.ts";
import { bytesOf, type UploadedPayload } from "./uploaded-bytes.ts";

/** Reads small items, compared. Calls reject with Failure `source_failed` when an item is not what it was, `busy`. */
export type SumReader = Readonly<{
  /** Compares an item with its SHA-256, unless that was done. */
  learn: (payload: UploadedPayload) => Promise<void>;
  /** Gives a span whole. */
  bytes: (payload: UploadedPayload, span: ByteSpan) => Promise<Uint8Array>;
  /** Gives a span step by step. */
  pieces: (payload: UploadedPayload, span: ByteSpan) => AsyncGenerator<Uint8Array>;
}>;

/** Larger items have a file of their own, which never changes once written. Source: src/upload/intake/item-store.ts. */
export const summedBytesMax = 2 ** 20;

/** What a checksum covers; a range reads at most this much more at either end. */
const stepBytes = 64 * 2 ** 10;

/** Checksums that are remembered: a few megabytes, of 6 GiB in items. */
const sumsMax = 100_000;

/** Items that are hashed at once, each in memory meanwhile, and that wait for it. */
const learningMax = 4;
const waitingMax = 8_192;

const never = new AbortController().signal;

/** Creates a reader. */
export function createSumReader(): SumReader {
  const sums = new LRUCache<string, BigUint64Array>({
    maxSize: sumsMax,
    sizeCalculation: ({ length }) => length + 1,
  });
  const learning = createSingleFlight<BigUint64Array>();
  const semaphore = createSemaphore(learningMax, waitingMax);

  async function hash(payload: UploadedPayload, signal: AbortSignal): Promise<BigUint64Array> {
    const turn = semaphore.take(signal);
    if (turn === undefined) throw new Failure("busy", { waiting: semaphore.waiting() });
    const release = await turn;
    try {
      const bytes = await bytesOf(payload, { start: 0, end: payload.size });
      if (!equalBytes(sha256(bytes), payload.digest)) throw damage(payload);
      const learnt = sumsOf(bytes);
      sums.set(nameOf(payload), learnt);
      return learnt;
    } finally {
      release();
    }
  }

  const sumsFor = async (payload: UploadedPayload): Promise<BigUint64Array> => {
    const name = nameOf(payload);
    return sums.get(name) ?? (await learning.run(name, never, (signal) => hash(payload, signal)));
  };

  async function bytes(payload: UploadedPayload, span: ByteSpan): Promise<Uint8Array> {
    assert(payload.size <= summedBytesMax, "what has checksums is small");
    const known = await sumsFor(payload);
    const start = span.start - (span.start % stepBytes);
    const end = Math.min(payload.size, Math.ceil(span.end / stepBytes) * stepBytes);
    const read = await bytesOf(payload, { start, end });
    const first = start / stepBytes;
    for (const [at, sum] of sumsOf(read).entries())
      if (sum !== known[first + at]) {
        sums.delete(nameOf(payload));
        throw damage(payload);
      }
    return read.subarray(span.start - start, span.end - start);
  }

  return {
    learn: async (payload) => {
      await sumsFor(payload);
    },
    bytes,
    async *pieces(payload, span) {
      for (let at = span.start; at < span.end; ) {
        const end = Math.min(span.end, at - (at % stepBytes) + stepBytes);
        yield await bytes(payload, { start: at, end });
        at = end;
      }
    },
  };
}

/** An item that lies elsewhere, sent again after its first bytes were lost, is compared anew. */
function nameOf({ id, path, start }: UploadedPayload): string {
  return `${id} ${start} ${path}`;
}

function sumsOf(bytes: Uint8Array): BigUint64Array {
  return BigUint64Array.from({ length: Math.ceil(bytes.length / stepBytes) }, (_, step) =>
    Bun.hash.xxHash3(bytes.subarray(step * stepBytes, (step + 1) * stepBytes)),
  );
}

function damage({ id, path }: Pick<UploadedPayload, "path"> & Readonly<{ id: Id }>): Failure {
  return new Failure("source_failed", { id, path, reason: "the file of an upload was damaged" });
}
