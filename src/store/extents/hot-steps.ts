/**
 * Steps of roots in memory: those that small ranges were read from, after they were verified.
 *
 * A step in memory is right for as long as its root has it; `Roots.drop` removes it from the root. A root finds a step
 * by its number, and the cache knows it by its record: a key of text for each step took three times as long (measured).
 * @module
 */
import { LRUCache } from "lru-cache";
import type { ByteSpan } from "../../lib/range.ts";
import { stepBytes } from "./extent-steps.ts";

/** The steps of one root in memory, by their numbers. */
export type RootHotSteps = Map<number, HotStep>;

type HotStep = Readonly<{ bytes: Uint8Array<ArrayBuffer>; number: number; ofRoot: RootHotSteps }>;

/** Memory of all steps, and of each beside its bytes. */
const hotBytesMax = 32 * 2 ** 20;
const hotEntryBytes = 256;

/** Limit of a span whose steps are put into memory: the bytes of a larger span are its reader's alone. */
export const hotSpanMax = 16 * 2 ** 10;

type HotSteps = Readonly<{
  /** Puts a verified step into memory. @param bytes - Of the step alone: a view would hold the memory of all. */
  put: (ofRoot: RootHotSteps, number: number, bytes: Uint8Array<ArrayBuffer>) => void;
  /** Returns a span of at most {@link hotSpanMax} whose steps are in memory. */
  slice: (ofRoot: RootHotSteps, span: ByteSpan) => Uint8Array<ArrayBuffer> | undefined;
}>;

export function createHotSteps(): HotSteps {
  const order = new LRUCache<HotStep, HotStep>({
    maxSize: hotBytesMax,
    sizeCalculation: ({ bytes }) => bytes.length + hotEntryBytes,
    dispose: (step) => {
      const { ofRoot, number } = step;
      if (ofRoot.get(number) === step) ofRoot.delete(number);
    },
  });

  const sliceOf = (ofRoot: RootHotSteps, number: number, span: ByteSpan): Uint8Array<ArrayBuffer> | undefined => {
    const step = ofRoot.get(number);
    if (step === undefined) return undefined;
    order.get(step);
    const from = number * stepBytes;
    return step.bytes.subarray(Math.max(0, span.start - from), Math.min(stepBytes, span.end - from));
  };

  return {
    put: (ofRoot, number, bytes) => {
      const before = ofRoot.get(number); // of another range, which was read meanwhile
      if (before !== undefined) order.delete(before);
      const step = { bytes, number, ofRoot };
      ofRoot.set(number, step);
      order.set(step, step);
    },
    slice: (ofRoot, span) => {
      const first = Math.floor(span.start / stepBytes);
      const last = Math.floor((span.end - 1) / stepBytes); // the same, or the next one
      const head = sliceOf(ofRoot, first, span);
      if (head === undefined || last === first) return head;
      const tail = sliceOf(ofRoot, last, span);
      return tail && Buffer.concat([head, tail]);
    },
  };
}
