/**
 * Rows with as many tags as an item can have: they are indexed, removed and pruned in steps of bounded memory.
 * @module
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { openIndexReader } from "../../../src/store/index/index-reader.ts";
import { type ItemRow, noColumns } from "../../../src/store/index/index-types.ts";
import { openIndexWriter } from "../../../src/store/index/index-writer.ts";
import { partSizesDefault } from "../../../src/store/index/parts/parts.ts";
import { inspectIndex } from "../../support/inspect-index.ts";
import { createRandom } from "../../support/random.ts";
import { temporaryFolder } from "../folder.ts";
import { growingChain } from "./growing-chain.ts";
import { bundleOf, itemOf, ownerOf, tagOf } from "./rows-of.ts";

const random = createRandom(47);
const owner = ownerOf(random);
const count = 100;
const tagsOf = (number: number) =>
  Array.from({ length: 2_048 }, (_, index) => tagOf(`n${index}`, `${number} of ${index}`));

/** An index whose first block has a bundle of such items. */
function openHostile() {
  const folder = temporaryFolder();
  const path = `${folder.path}/index.sqlite`;
  const writer = openIndexWriter(path, {
    clock: () => 1_700_000_000_000,
    partSizes: { ...partSizesDefault, sealRows: count },
  });
  const reader = openIndexReader(path);
  const chain = growingChain(writer, random, owner);
  const { transactions, block } = chain.add({
    transactions: [{ dataSize: 50_000_000 }],
    bundles: (height, rows) => rows.map(({ id }) => bundleOf({ height, txIndex: 0, offset: -1 }, id, 50_000_000)),
  });
  const root = { height: block.height, txIndex: 0, offset: -1 };
  const items: ItemRow[] = Array.from({ length: count }, (_, number) =>
    itemOf(random, owner, { place: { ...root, offset: 6_400 + number * 64_000 }, tags: tagsOf(number) }),
  );
  writer.addItems({
    bundle: { ...root, id: transactions[0]!.id },
    rows: items,
    firstEntry: 0,
    nextEntry: count,
    bundles: [],
  });
  return {
    path,
    writer,
    reader,
    chain,
    items,
    height: block.height,
    found: () => {
      const last = [{ name: "n2047", values: [`${count - 1} of 2047`], op: "EQ" }] as const;
      return reader.page({ order: "asc", limit: 10, tags: last, columns: noColumns }).rows.map(({ id }) => id);
    },
    close: () => {
      reader.close();
      writer.close();
      folder[Symbol.dispose]();
    },
  };
}

/** How many rows each part has. */
function partsAt(path: string): readonly number[] {
  const db = new Database(path, { readonly: true });
  const parts = db.query<{ rows: number }, []>("SELECT count AS rows FROM parts ORDER BY part").all();
  db.close();
  return parts.map(({ rows }) => rows);
}

test("are sealed in several steps, as many as were added", () => {
  const index = openHostile();
  let parts = partsAt(index.path);
  for (let block = 0; block < 40 && parts.length === 0; block += 1) {
    index.chain.add({ transactions: [{}, {}, {}] });
    parts = partsAt(index.path);
  }
  expect(Math.max(...parts)).toBeLessThan(count / 2);
  expect(parts.reduce((sum, rows) => sum + rows, 0)).toBeGreaterThanOrEqual(count);
  expect(index.found()).toEqual([index.items.at(-1)!.id]);
  expect(inspectIndex(index.path).faults).toEqual([]);
  index.close();
});

test("are removed by a rollback, and pruned, all of them", () => {
  const index = openHostile();
  index.writer.pruneItems({ ingestedBeforeSeconds: 2_000_000_000, startHeight: 0, endHeight: 1_000 });
  expect([index.found(), index.reader.counts().items]).toEqual([[], 0]);
  expect(inspectIndex(index.path).faults).toEqual([]);
  index.close();

  const other = openHostile();
  expect(other.found()).toEqual([other.items.at(-1)!.id]);
  expect(other.writer.rollback(other.height)).toMatchObject({ blocks: 1, rows: count + 1 });
  expect([other.found(), other.reader.counts().items]).toEqual([[], 0]);
  expect(inspectIndex(other.path).faults).toEqual([]);
  other.close();
});
