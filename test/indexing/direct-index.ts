/**
 * The real index in the test's own thread, behind the calls that indexing makes.
 * @module
 */
import type { Clock } from "../../src/lib/clock.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import { openIndexWriter } from "../../src/store/index/index-writer.ts";
import { createIndexWriterCalls } from "../../src/store/index/index-writer-calls.ts";

/** Opens an index file for writing and reading. */
export function openDirectIndex(path: string, clock: Clock) {
  const writer = openIndexWriter(path, { clock });
  const reader = openIndexReader(path);
  const calls = createIndexWriterCalls(path, async ({ call, parts }) => {
    const perform = writer[call] as (...given: readonly unknown[]) => never;
    return perform(...parts);
  });
  return {
    calls,
    writer,
    reader,
    close: () => {
      reader.close();
      writer.close();
    },
  };
}
