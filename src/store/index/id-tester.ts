/**
 * Tests ids in the filters of parts, in a thread that verifies items: the only writer then tests only those that a part
 * may have, and all in parts that are newer than the test. A filter of many rows is in no cache of the processor, and
 * each added id is tested in each part.
 * Source: docs/reference/index-layout.md#inserting.
 * @module
 */
import { assert } from "../../lib/assert.ts";
import { closeDatabase, inSnapshot, openForReading } from "../sqlite.ts";
import { filterSecretOf } from "./filter-key.ts";
import { createPartReads, type TestedIds } from "./part-reads.ts";

/** Tests the keys of ids, in ascending order. */
export type TestIds = (keys: readonly number[]) => TestedIds;

export type IdTester = Readonly<{ test: TestIds; close: () => void }>;

/** Only the list of parts is read. */
const cacheBytes = 2 ** 18;

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
