/**
 * Looks for ids in large parts, in a thread that verifies items: the only writer then reads only the rows of those that
 * a part has, and looks for all of them in parts that are newer than the test. A filter of many rows is in no cache of
 * the processor, and each added id is tested in each part; of a hundred million rows, one in a hundred passes a filter
 * by chance, and the page of its part that shows this is on the disk.
 * Source: docs/reference/index-layout.md#inserting.
 * @module
 */
import { assert } from "../../../lib/assert.ts";
import { closeDatabase, inSnapshot, openForReading } from "../../sqlite.ts";
import { filterSecretOf } from "../filter-key.ts";
import { createPartReads, type TestedIds } from "./part-reads.ts";

/** Tests the keys of ids, in ascending order. */
export type TestIds = (keys: readonly number[]) => TestedIds;

export type IdTester = Readonly<{ test: TestIds; close: () => void }>;

/** The inner pages of the tree of ids: a megabyte for a hundred million rows. */
const cacheBytes = 2 ** 20;

/**
 * Opens an index for tests.
 *
 * @param filterSecret - Of the index that the keys are for.
 * @throws Error when another index is at its path, or as `openForReading` does.
 */
export function openIdTester(path: string, filterSecret: Uint8Array): IdTester {
  const db = openForReading(path, cacheBytes);
  try {
    const isSame = Buffer.compare(filterSecretOf(db, path), filterSecret) === 0;
    assert(isSame, "ids are tested in the index that they are for");
  } catch (error) {
    closeDatabase(db);
    throw error;
  }
  const parts = createPartReads(db);
  return { test: (keys) => inSnapshot(db, () => parts.testIds(keys)), close: () => closeDatabase(db) };
}
