/**
 * Bodies that are composed: in slices between which the event loop goes on, a few large ones at once, and their Blobs
 * made in a thread.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { openBlobThread } from "../../src/app/threads.ts";
import { createClosers } from "../../src/lib/closers.ts";
import { createCompositions, sliceBytesMax } from "../../src/lib/event-loop.ts";

const mebibyte = 2 ** 20;
const never = new AbortController().signal;
const closers = createClosers((name) => {
  throw new Error(`could not be closed: ${name}`);
});
const blobThread = openBlobThread(closers);
afterAll(closers.closeAll);

describe("N6: compositions", () => {
  test.each([1, 4])(
    "that run together get a slice of each iteration of the event loop, as %d pieces",
    async (pieces) => {
      const { slice } = createCompositions();
      let iteration = 0;
      let isOver = false;
      const countIterations = () => {
        iteration += 1;
        if (!isOver) setImmediate(countIterations);
      };
      setImmediate(countIterations);
      const semaphore: number[] = [];
      const compose = async () => {
        for (let index = 0; index < 20; index++) {
          await slice(sliceBytesMax / pieces);
          semaphore.push(iteration);
        }
      };
      await Promise.all(Array.from({ length: 10 }, compose));
      isOver = true;
      expect(semaphore).toHaveLength(200);
      expect(new Set(semaphore).size).toBeWithin(190 / pieces, 200 / pieces + 2); // before and after the counter's callback
    },
  );

  test("of large bodies wait for each other, those of small bodies do not", async () => {
    const { begin } = createCompositions(16 * mebibyte);
    const ends = await Promise.all([1, 2, 3, 4].map(() => begin(mebibyte, never)));
    let isBegun = false;
    const fifth = begin(mebibyte, never).then((end) => {
      isBegun = true;
      return end;
    });
    const left = new AbortController();
    const sixth = begin(mebibyte, left.signal);
    (await begin(mebibyte - 1, never))();
    expect(isBegun).toBe(false);
    left.abort(new Error("left"));
    await expect(sixth).rejects.toThrow("left");
    ends[0]?.();
    (await fifth)();
    for (const end of ends) end();
  });

  test.each([1_000, mebibyte, 9_000_000, 16_000_000])(
    "bodies of %d bytes become Blobs of the same bytes, also many at once",
    async (size) => {
      const { blobOf } = createCompositions(16 * mebibyte, blobThread);
      const composed = await Promise.all(
        Array.from({ length: 6 }, async (_, index) => {
          const bytes = Buffer.allocUnsafeSlow(size).fill(index);
          bytes[size - 1] = 255;
          const blob = await blobOf(bytes);
          expect(bytes.byteLength).toBe(0); // no second copy stays
          return blob;
        }),
      );
      for (const [index, blob] of composed.entries()) {
        const expected = Buffer.alloc(size, index);
        expected[size - 1] = 255;
        expect(Buffer.compare(await blob.bytes(), expected)).toBe(0);
      }
    },
    60_000,
  );
});
