/**
 * Ids are looked for in the parts of an index by a thread that does not write it (page-property.test.ts has what the
 * writer makes of it).
 * @module
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { idBytes } from "../../../../src/arweave/id.ts";
import { createFilterKeys, createFilterSecret } from "../../../../src/store/index/filter-key.ts";
import { openIndexReader } from "../../../../src/store/index/index-reader.ts";
import { openIndexWriter } from "../../../../src/store/index/index-writer.ts";
import { openIdTester } from "../../../../src/store/index/parts/id-tester.ts";
import { filterFolderOf } from "../../../../src/store/index/parts/part-filter.ts";
import type { TestedIds } from "../../../../src/store/index/parts/part-reads.ts";
import {
  encodeItems,
  readBatch,
  serializeBatch,
  sortedIdKeys,
  withTestedIds,
} from "../../../../src/store/index/rows/row-batch.ts";
import { createRandom } from "../../../support/random.ts";
import { newSeed } from "../../../support/seed.ts";
import { temporaryFolder } from "../../folder.ts";
import { createFixture } from "../index-fixture.ts";
import { itemOf, ownerOf } from "../rows-of.ts";
import { createMergeSteps } from "./merge-steps.ts";

/** Parts of few rows, which have filters in files (merge-steps.ts). */
const partSizes = {
  ...{ rowsMin: 3, sealRows: 30, levelRows: 20, fanIn: 3 },
  ...{ inlineRowsMax: 8, mergedRowsMin: 1_000, mergedRowsMax: 1_000 },
};

/** An index of some blocks, whose merges are done. */
function filledIndex() {
  const folder = temporaryFolder();
  const path = `${folder.path}/index.sqlite`;
  const random = createRandom(newSeed());
  const writer = openIndexWriter(path, { clock: () => 1_700_000_000_000, partSizes });
  const merges = createMergeSteps(writer, path, random);
  const reader = openIndexReader(path);
  const fixture = createFixture(random, () => ({ writer, reader }));
  for (let block = 0; block < 200; block += 1) fixture.addBlock(4);
  merges.finish();
  const close = () => {
    reader.close();
    merges.close();
    writer.close();
    folder[Symbol.dispose]();
  };
  return { path, random, fixture, reader, merges, [Symbol.dispose]: close };
}

/** The indices of the keys that some part has, in ascending order. */
const indicesOf = ({ present }: TestedIds): number[] =>
  [...new Set(present.filter((_, at) => at % 2 === 1))].sort((a, b) => a - b);

describe("a tester of ids", () => {
  test("finds every id that a part with a filter has, and none that passes a filter by chance", () => {
    using index = filledIndex();
    const { path, reader, random } = index;
    const keys = createFilterKeys(reader.filterSecret);
    const tester = openIdTester(path, reader.filterSecret);
    // The oldest hundred rows are stable and in merged parts.
    const known = index.fixture.rows().slice(0, 100);
    const sought = known.map(({ id }) => keys.id(idBytes(id))).sort((a, b) => a - b);
    expect(indicesOf(tester.test(sought))).toEqual([...sought.keys()]);
    const absent = Array.from({ length: 100_000 }, () => keys.id(random.bytes(32))).sort((a, b) => a - b);
    const { version, present } = tester.test(absent);
    expect(version).toBeGreaterThan(0);
    expect(indicesOf({ version, present })).toEqual([]);
    tester.close();
  });

  test("gives a batch what the parts have of its ids, in their order", () => {
    using index = filledIndex();
    const { path, reader, random } = index;
    const keys = createFilterKeys(reader.filterSecret);
    const tester = openIdTester(path, reader.filterSecret);
    const owner = ownerOf(random);
    const items = index.fixture.rows().slice(0, 20);
    const batch = encodeItems(
      items.map(({ id }, offset) =>
        itemOf(random, owner, { id, place: { height: 1_000, txIndex: 0, offset: 1_000 * (1 + offset) } }),
      ),
      keys,
    );
    const { tested } = readBatch(serializeBatch(withTestedIds(batch, tester.test)), keys);
    expect(tested).toEqual(tester.test(sortedIdKeys(batch)));
    expect(tested && indicesOf(tested)).toHaveLength(20);
    tester.close();
  });

  test.skipIf(!existsSync("/proc/self/maps"))("releases the filters of parts that were merged", () => {
    using index = filledIndex();
    const { path, reader, fixture } = index;
    const tester = openIdTester(path, reader.filterSecret);
    const names = new Set<string>();
    for (let round = 0; round < 20; round += 1) {
      for (let block = 0; block < 20; block += 1) fixture.addBlock(4);
      index.merges.finish();
      tester.test([1]);
      for (const name of readdirSync(filterFolderOf(path))) names.add(name);
    }
    const removed = names.size - readdirSync(filterFolderOf(path)).length;
    expect(removed).toBeGreaterThan(10);
    // A removed file takes space until it is no longer mapped, by the writer either.
    Bun.gc(true);
    const mapped = readFileSync("/proc/self/maps", "utf8").split("\n");
    const gone = mapped.filter((line) => line.includes(filterFolderOf(path)) && line.endsWith("(deleted)"));
    expect(gone.length).toBeLessThan(removed / 4);
    tester.close();
  });

  test("is not opened for another index", () => {
    using index = filledIndex();
    expect(() => openIdTester(index.path, createFilterSecret())).toThrow("ids are tested in the index");
  });
});
