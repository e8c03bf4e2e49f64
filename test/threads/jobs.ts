/**
 * Jobs for the pool's test: ones that response, die, hang, throw, or work until they are notified to end.
 * @module
 */
import { type MessagePort, threadId } from "node:worker_threads";
import { sendParcel } from "../../src/threads/parcel.ts";

export function add(job: { a: number; b: number }): number {
  return job.a + job.b;
}

export function die(): never {
  process.exit(3);
}

export function hang(): never {
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
}

export function reject(job: { reason: string }): never {
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

/** Which thread this is. */
export function threadNumber(): number {
  return threadId;
}

/** Says that it began, and works until it is notified to end. */
export function workUntilNotified({ began }: { began: Int32Array }): void {
  Atomics.store(began, 0, 1);
  while (Atomics.load(began, 1) === 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
}

/** Sends pieces beside its response, each filled with its number. */
export function parcels(job: { sizes: readonly number[]; port: MessagePort }): string {
  const pieces = job.sizes.map((bytes, index) => new Uint8Array(bytes).fill(index));
  sendParcel(job.port, pieces);
  return pieces.map(({ length }) => length).join(" ");
}

/** Marks the bytes after its result was returned. */
export function markLater({ shared }: Readonly<{ shared: SharedArrayBuffer }>): void {
  setTimeout(() => new Uint8Array(shared).fill(1), 1);
}
