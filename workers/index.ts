/**
 * The index thread: the only thread that writes the index. Its pool has one thread, which keeps each file open.
 * @module
 */
import { assert } from "../src/lib/assert.ts";
import { systemClock } from "../src/lib/clock.ts";
import { type IndexWriter, openIndexWriter } from "../src/store/index/index-writer.ts";
import type { WriteJob } from "../src/store/index/index-writer-calls.ts";
import { createCollections } from "../src/threads/collect.ts";
import { ping } from "../src/threads/ping.ts";

export { ping };

const countBytes = createCollections();

const writers = new Map<string, IndexWriter>();

/** Opens an index; creates it when absent. Readers may open the file once the call returns. */
export function open({ path }: Readonly<{ path: string }>): void {
  writerOf(path);
}

/** Executes one call of the writer. */
export function write({ path, call, parts }: WriteJob): unknown {
  const writer = writerOf(path);
  assert(Object.hasOwn(writer, call), "a job names a method of the writer");
  const perform = writer[call] as (...given: readonly unknown[]) => unknown;
  for (const part of parts.flat()) countBytes(serializedBytes(part));
  return perform(...parts);
}

/** Bytes of the rows that another thread serialized, if an argument has any. */
function serializedBytes(argument: unknown): number {
  const rows = typeof argument === "object" && argument !== null && "rows" in argument ? argument.rows : argument;
  return rows instanceof ArrayBuffer || rows instanceof SharedArrayBuffer ? rows.byteLength : 0;
}

/** Closes an index; SQLite folds its log into the file. */
export function close({ path }: Readonly<{ path: string }>): void {
  writers.get(path)?.close();
  writers.delete(path);
}

function writerOf(path: string): IndexWriter {
  const before = writers.get(path);
  if (before !== undefined) return before;
  const writer = openIndexWriter(path, { clock: systemClock });
  writers.set(path, writer);
  return writer;
}
