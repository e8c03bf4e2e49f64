/**
 * Memory of the runtime's heap that values take.
 * @module
 */
import { heapStats } from "bun:jsc";

/** Bytes that each of so many values takes, in the mean. @param make - Called for each number from 0 on. */
export function memoryOfEach(count: number, make: (number: number) => unknown): number {
  make(0);
  const before = settledHeapBytes();
  const made = Array.from({ length: count }, (_, number) => make(number));
  const taken = settledHeapBytes() - before;
  return taken / made.length; // `made` is in use until here
}

/** Collections until the heap has settled, at most. */
const collectionsMax = 10;

/** A collection that frees less is the last one. Bytes. */
const freedMin = 2 ** 16;

/** The size of the heap when a collection frees nothing more: the garbage of earlier tests may take several. */
function settledHeapBytes(): number {
  let bytes = Number.POSITIVE_INFINITY;
  for (let collections = 0; collections < collectionsMax; collections += 1) {
    Bun.gc(true);
    const left = heapStats().heapSize;
    if (left > bytes - freedMin) return left;
    bytes = left;
  }
  return bytes;
}
