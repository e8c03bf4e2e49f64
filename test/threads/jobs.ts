/**
 * Jobs for the pool's test: one that answers, one that dies, one that hangs, one that throws.
 * @module
 */

export function add(job: { a: number; b: number }): number {
  return job.a + job.b;
}

export function die(): never {
  process.exit(3);
}

export function hang(): never {
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
}

export function refuse(job: { reason: string }): never {
  throw new Error(job.reason);
}

export function size(job: { bytes: Uint8Array }): number {
  return job.bytes.length;
}

let count = 0;

/** How many times this thread was asked. */
export function next(): number {
  count += 1;
  return count;
}
