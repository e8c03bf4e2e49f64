/**
 * Memory of the runtime's heap that values take.
 * @module
 */
import { heapStats } from "bun:jsc";

/** Bytes that each of so many values takes, in the mean. @param make - Called for each number from 0 on. */
export function memoryOfEach(count: number, make: (number: number) => unknown): number {
  make(0);
  Bun.gc(true);
  const before = heapStats().heapSize;
  const made = Array.from({ length: count }, (_, number) => make(number));
  Bun.gc(true);
  const taken = heapStats().heapSize - before;
  return taken / made.length; // `made` is in use until here
}
