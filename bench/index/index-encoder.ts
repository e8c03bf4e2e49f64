/**
 * Makes items and encodes them for the writer, as the threads that verify items do; for a process of its own
 * (module-process.ts), so that the memory of the writer's process is not that of items that are made.
 * @module
 */
import { assert } from "../../src/lib/assert.ts";
import { createFilterKeys, type FilterKeys } from "../../src/store/index/filter-key.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import type { SerializedRows } from "../../src/store/index/index-types.ts";
import { type IdTester, openIdTester } from "../../src/store/index/parts/id-tester.ts";
import { encodeItems, serializeBatch, withTestedIds } from "../../src/store/index/rows/row-batch.ts";
import { createCollections } from "../../src/threads/collect.ts";
import { itemOf } from "./index-items.ts";

/** Items of numbers that follow each other. */
type EncodeJob = Readonly<{ first: number; count: number }>;

/**
 * @property seconds - Time in which the items were encoded, without that in which they were made.
 * @property testing - Of it, the time in which their ids were looked for.
 */
type Encoded = Readonly<{ rows: SerializedRows; seconds: number; testing: number }>;

let opened: Readonly<{ keys: FilterKeys; tester: IdTester }> | undefined;
const countBytes = createCollections();

/** Opens the index that the items are for. Call it once, before `encode`. */
export function open({ path }: Readonly<{ path: string }>): void {
  const reader = openIndexReader(path);
  const keys = createFilterKeys(reader.filterSecret);
  opened = { keys, tester: openIdTester(path, reader.filterSecret) };
  reader.close();
}

/** Makes and encodes items. */
export function encode({ first, count }: EncodeJob): Encoded {
  assert(opened !== undefined, "items are encoded for an index");
  const { keys, tester } = opened;
  const items = Array.from({ length: count }, (_, index) => itemOf(first + index));
  let testing = 0;
  const test: IdTester["test"] = (sought) => {
    const begin = Bun.nanoseconds();
    const tested = tester.test(sought);
    testing += (Bun.nanoseconds() - begin) / 1e9;
    return tested;
  };
  const start = Bun.nanoseconds();
  const rows = serializeBatch(withTestedIds(encodeItems(items, keys), test));
  const seconds = (Bun.nanoseconds() - start) / 1e9;
  countBytes(rows.byteLength);
  return { rows, seconds, testing };
}
