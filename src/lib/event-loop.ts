/**
 * Long work that does not block the event loop. Bodies are composed in memory one slice per iteration of the loop, and
 * large copies run in a thread.
 * Source: docs/decisions/091-body-memory.md.
 * @module
 */
import { assert } from "./assert.ts";
import { blobOf } from "./bytes.ts";
import { createSemaphore, type Release } from "./semaphore.ts";

/** Resolves in the next iteration of the event loop, after the requests that have arrived. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Yields values in order, at most `countEach` in each iteration of the event loop. */
export async function* inOrder<Value>(values: readonly Value[], countEach: number): AsyncGenerator<Value> {
  for (const [index, value] of values.entries()) {
    if (index > 0 && index % countEach === 0) await yieldToEventLoop();
    yield value;
  }
}

/** The composition of one response body. */
export type Composing = Compositions &
  Readonly<{
    signal: AbortSignal;
    /** Reserves memory for a body before it is composed. @throws Failure `busy`. */
    hold: (bytes: number) => Promise<void>;
  }>;

export type Compositions = Readonly<{
  /**
   * Waits until a body may be composed: at most {@link largeAtOnce} large bodies at once. The caller reserves the
   * memory first.
   * @returns Ends the composition.
   * @throws The signal's reason.
   */
  begin: (bytes: number, signal: AbortSignal) => Promise<Release>;
  /**
   * Waits for the permission to process bytes: {@link sliceBytesMax} in each iteration of the event loop, for all
   * bodies together. @param bytes - More than {@link sliceBytesMax} get an iteration of their own.
   */
  slice: (bytes: number) => Promise<void>;
  /** Moves bytes into a Blob; the bytes must have their own buffer, which is detached. */
  blobOf: (bytes: Uint8Array<ArrayBuffer>) => Promise<Blob>;
}>;

/** Makes a Blob in a thread, to which the bytes are transferred. */
export type BlobThread = (bytes: Uint8Array<ArrayBuffer>) => Promise<Blob>;

/** Bytes that are processed without a pause: 0.1 ms. */
export const sliceBytesMax = 256 * 2 ** 10;

/** A Blob of this size takes 0.4 ms on the calling thread, and 16 MB take 10 ms; a thread call costs 0.1 ms. */
const largeBytesMin = 2 ** 20;

/** Concurrent compositions of large bodies. Until it is a Blob, a body is on the heap of the process. */
const largeAtOnce = 4;

/** Default memory of all waiting bodies. Bytes. */
const heldBytesDefault = 2 ** 30;

/**
 * Creates the shared state of compositions.
 *
 * @param heldBytesMax - Maximum memory of all bodies together.
 * @param inThread - Makes large Blobs; without it, the calling thread makes all Blobs.
 */
export function createCompositions(heldBytesMax = heldBytesDefault, inThread?: BlobThread): Compositions {
  const semaphore = createSemaphore(largeAtOnce, Math.ceil(heldBytesMax / largeBytesMin) + 1);
  let last: Promise<void> = Promise.resolve();
  let left = sliceBytesMax;
  return {
    begin: async (bytes, signal) => {
      if (bytes < largeBytesMin) return () => undefined;
      const permit = semaphore.take(signal);
      assert(permit !== undefined, "the memory of waiting bodies bounds their number");
      return await permit;
    },
    slice: (bytes) => {
      last = last.then(async () => {
        if (left < bytes) {
          await yieldToEventLoop();
          left = sliceBytesMax;
        }
        left -= bytes;
      });
      return last;
    },
    blobOf: async (bytes) =>
      inThread === undefined || bytes.byteLength < largeBytesMin ? blobOf(bytes) : await inThread(bytes),
  };
}
