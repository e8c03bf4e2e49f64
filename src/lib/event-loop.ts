/**
 * Long work that does not block the event loop. Bodies are composed in memory one slice per turn of the loop, and
 * large copies run in a thread.
 * Source: docs/decisions/091-body-memory.md.
 * @module
 */
import { assert } from "./assert.ts";
import { blobOf } from "./bytes.ts";
import { createSemaphore, type Release } from "./semaphore.ts";

/** Resolves in the next turn of the event loop, after the requests that have arrived. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Yields values in order, at most `countEach` in each turn of the event loop. */
export async function* inOrder<Value>(values: readonly Value[], countEach: number): AsyncGenerator<Value> {
  for (const [index, value] of values.entries()) {
    if (index > 0 && index % countEach === 0) await yieldToEventLoop();
    yield value;
  }
}

/** How the body of one response is composed. */
export type Composing = Compositions &
  Readonly<{
    signal: AbortSignal;
    /** Takes memory for a body of that size before it is composed. @throws Failure `busy`. */
    hold: (bytes: number) => Promise<void>;
  }>;

/** The shared state of all compositions. */
export type Compositions = Readonly<{
  /**
   * Waits until a body of that size may be composed: {@link largeAtOnce} large ones at once. Its memory is
   * reserved first.
   * @returns Ends the composition.
   * @throws The signal's reason.
   */
  begin: (bytes: number, signal: AbortSignal) => Promise<Release>;
  /**
   * Waits until bytes may be worked on: {@link sliceBytesMax} in each turn of the event loop, over all bodies.
   * @param bytes - At most {@link sliceBytesMax}; more are worked on alone.
   */
  slice: (bytes: number) => Promise<void>;
  /** Bytes as a Blob; the bytes are gone afterwards, and must have a buffer of their own. */
  blobOf: (bytes: Uint8Array<ArrayBuffer>) => Promise<Blob>;
}>;

/** Makes a Blob in a thread; the bytes move there. */
export type BlobThread = (bytes: Uint8Array<ArrayBuffer>) => Promise<Blob>;

/** Bytes that are worked on in one go: 0.1 ms. */
export const sliceBytesMax = 256 * 2 ** 10;

/** A Blob of this size takes 0.4 ms on the calling thread, one of 16 MB takes 10 ms; a thread is asked in 0.1 ms. */
const largeBytesMin = 2 ** 20;

/** Large bodies that are composed at once. Until it is a Blob, a body is in the memory of the process. */
const largeAtOnce = 4;

/** Memory of bodies that wait, where no limit is given. Bytes. */
const heldBytesDefault = 2 ** 30;

/**
 * Creates the shared state of compositions.
 *
 * @param heldBytesMax - Memory that all bodies may hold.
 * @param inThread - Absent, Blobs of any size are made at once.
 */
export function createCompositions(heldBytesMax = heldBytesDefault, inThread?: BlobThread): Compositions {
  const semaphore = createSemaphore(largeAtOnce, Math.ceil(heldBytesMax / largeBytesMin) + 1);
  let last: Promise<void> = Promise.resolve();
  let left = sliceBytesMax;
  return {
    begin: async (bytes, signal) => {
      if (bytes < largeBytesMin) return () => undefined;
      const permit = semaphore.take(signal);
      assert(permit !== undefined, "a body that waits holds its memory, which bounds how many wait");
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
