/**
 * Collects the garbage of threads that read or make large buffers.
 *
 * The runtime collects when a heap has doubled, and counts the files that a thread has mapped: with the filters of a
 * hundred million rows (250 MB) it would leave as much garbage in each thread.
 * Source: docs/decisions/113-collections.md.
 * @module
 */
import { gcAndSweep } from "bun:jsc";

/** A collection takes 20 to 30 ms, and these bytes 100 ms or more. */
const bytesMax = 32 * 2 ** 20;

/** Returns a function that counts bytes of buffers. After 32 MiB, garbage is collected once the job has ended. */
export function createCollections(): (bytes: number) => void {
  let bytes = 0;
  return (more) => {
    bytes += more;
    if (bytes < bytesMax) return;
    bytes = 0;
    setImmediate(gcAndSweep);
  };
}
