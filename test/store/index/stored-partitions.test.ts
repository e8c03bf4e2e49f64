/**
 * Partitions of the columnar store as the index records them, and items that were pruned because the store has them.
 * @module
 */
import { describe, expect, test } from "bun:test";
import type { Id } from "../../../src/arweave/id.ts";
import { blockHashBytes } from "../../../src/arweave/id.ts";
import { allColumns, type ItemRow } from "../../../src/store/index/index-types.ts";
import { type Place, placeHigh, placeLow } from "../../../src/store/index/place.ts";
import { createRandom } from "../../support/random.ts";
import { growingChain } from "./growing-chain.ts";
import { type IndexFile, indexFile } from "./index-file.ts";
import { bundleOf, hashOf, idOf, itemOf, ownerOf, pendingOf } from "./rows-of.ts";

const random = createRandom(11);
const owner = ownerOf(random);
const bundle = { dataSize: 1_000_000 };
const columns = allColumns;
const queueAll = (height: number, rows: readonly Readonly<{ txIndex: number; id: Id; dataSize: number }>[]) =>
  rows.map(({ txIndex, id, dataSize }) => bundleOf({ height, txIndex, offset: -1 }, id, dataSize));
const item = (height: number, offset: number, given: Partial<ItemRow> = {}): ItemRow =>
  itemOf(random, owner, { ...given, place: { height, txIndex: 0, offset } });

/** A chain of ten blocks from height 10, each with one bundle of two items. */
function filled(file: IndexFile) {
  const chain = growingChain(file.writer, random, owner);
  const rows: ItemRow[] = [];
  for (let height = 10; height < 20; height += 1) {
    chain.add({ transactions: [bundle], bundles: queueAll });
    const own = [item(height, 1_000), item(height, 2_000)];
    file.writer.addItems({
      bundle: { height, txIndex: 0, offset: -1 },
      rows: own,
      firstEntry: 0,
      nextEntry: 2,
      bundles: [],
    });
    rows.push(...own);
  }
  return { chain, rows };
}

const halvesOf = (places: readonly Place[]) =>
  Uint32Array.from(places.flatMap((place) => [placeHigh(place), placeLow(place)]));
const lastBlockOf = (file: IndexFile, height: number): Uint8Array => {
  const block = file.reader.block(height);
  if (block === undefined) throw new Error("the chain has the block");
  return blockHashBytes(block.hash);
};
const addPartition = (file: IndexFile, first: number, last: number, lastBlock = lastBlockOf(file, last)): boolean =>
  file.writer.addStoredPartition({ first, last, lastBlock, foreignItems: 0 });
const listed = (file: IndexFile, id: Id): Place | undefined =>
  file.reader.page({ ids: [id], order: "asc", limit: 1, columns }).rows[0]?.place;

describe("a partition", () => {
  test("is recorded when its heights are free and its last block is on the chain", () => {
    using file = indexFile();
    filled(file);
    const { storedPartitions } = file.reader;
    expect([storedPartitions.heights(), storedPartitions.nextHeight()]).toEqual([[], 0]);
    expect(addPartition(file, 0, 12)).toBe(true);
    expect(addPartition(file, 13, 15)).toBe(true);
    expect(storedPartitions.heights()).toEqual([
      { first: 0, last: 12 },
      { first: 13, last: 15 },
    ]);
    expect(storedPartitions.nextHeight()).toBe(16);
    for (const [first, last] of [
      [12, 12],
      [15, 18],
      [0, 18],
      [14, 14],
      [18, 17],
    ] as const)
      expect(addPartition(file, first, last)).toBe(false);
    expect(addPartition(file, 16, 18, blockHashBytes(hashOf(random)))).toBe(false);
    // Heights that the chain does not have yet: another gateway's export.
    expect(addPartition(file, 16, 30, blockHashBytes(hashOf(random)))).toBe(true);
  });

  test("ends below a rollback, and its later heights are not written again", () => {
    using file = indexFile();
    const { chain } = filled(file);
    addPartition(file, 0, 12);
    addPartition(file, 13, 18);
    chain.rollback(15);
    expect(file.reader.storedPartitions.heights()).toEqual([
      { first: 0, last: 12 },
      { first: 13, last: 14 },
    ]);
    expect(file.reader.storedPartitions.nextHeight()).toBe(19);
    chain.rollback(11);
    expect(file.reader.storedPartitions.heights()).toEqual([{ first: 0, last: 10 }]);
  });

  test("that ends with another block than the chain is no longer read", () => {
    using file = indexFile();
    const { chain } = filled(file);
    file.writer.addStoredPartition({ first: 0, last: 20, lastBlock: blockHashBytes(hashOf(random)), foreignItems: 7 });
    expect(file.reader.counts().storedItems).toBe(7);
    chain.add();
    expect([file.reader.storedPartitions.heights(), file.reader.counts().storedItems]).toEqual([[], 0]);
  });

  test("is settled when no bundle of it waits and no transaction is missing", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    chain.add({ transactions: [bundle], bundles: queueAll });
    chain.add({ missing: [{ txIndex: 0, id: idOf(random) }] });
    chain.add();
    const { isSettled } = file.reader.storedPartitions;
    expect([10, 11, 12].map((height) => isSettled({ first: height, last: height }))).toEqual([false, false, true]);
    const taken = file.writer.takeBundle();
    if (taken === undefined) throw new Error("the bundle is due");
    expect(isSettled({ first: 0, last: 10 })).toBe(false);
    file.writer.finishBundle(taken.place, { unbundleFilter: "{}", indexFilter: "{}", itemCount: 0 });
    expect(isSettled({ first: 0, last: 10 })).toBe(true);
  });
});

describe("an item that was pruned because the store has it", () => {
  test("is counted as a stored item, listed from the store only, and located as before", () => {
    using file = indexFile();
    const { rows } = filled(file);
    addPartition(file, 0, 14);
    const [first, second] = rows;
    if (first === undefined || second === undefined) throw new Error("there are items");
    const located = file.reader.locate(first.id);
    const unknown = { height: 10, txIndex: 0, offset: 77_000 };
    expect(file.writer.pruneStoredItems(halvesOf([first.place, unknown]))).toBe(1);
    expect(file.reader.locate(first.id)).toEqual(located);
    expect(file.reader.counts()).toMatchObject({ items: rows.length - 1, storedItems: 1 });
    expect(listed(file, first.id)).toBeUndefined();
    const { isListed } = file.reader.storedPartitions;
    expect(isListed(first.id, first.place)).toBe(true);
    expect(isListed(first.id, second.place)).toBe(false);
    expect(isListed(second.id, second.place)).toBe(false);
    expect(isListed(idOf(random), second.place)).toBe(true);
    expect(file.faults()).toEqual([]);
  });

  test("hides a higher place of its id, and is replaced by a lower place", () => {
    using file = indexFile();
    const { rows } = filled(file);
    addPartition(file, 0, 14);
    const pruned = rows[4];
    if (pruned === undefined) throw new Error("there are items");
    file.writer.pruneStoredItems(halvesOf([pruned.place]));
    file.writer.addPending([pendingOf(random, owner, { id: pruned.id })]);
    const higher = item(18, 5_000, { id: pruned.id });
    file.writer.addItems({
      bundle: { height: 18, txIndex: 0, offset: -1 },
      rows: [higher],
      firstEntry: 2,
      nextEntry: 3,
      bundles: [],
    });
    const { isListed } = file.reader.storedPartitions;
    expect([listed(file, pruned.id), isListed(pruned.id, pruned.place)]).toEqual([undefined, true]);
    expect(file.reader.count({ owners: [owner.address], order: "asc", limit: 1, columns }, 1_000)).toBe(
      rows.length - 1 + 10,
    );
    const lower = item(10, 5_000, { id: pruned.id });
    file.writer.addItems({
      bundle: { height: 10, txIndex: 0, offset: -1 },
      rows: [lower],
      firstEntry: 2,
      nextEntry: 3,
      bundles: [],
    });
    expect([listed(file, pruned.id), isListed(pruned.id, pruned.place)]).toEqual([lower.place, false]);
    expect(file.faults()).toEqual([]);
  });

  test("is no longer counted when it is indexed again or its block is rolled back", () => {
    using file = indexFile();
    const { chain, rows } = filled(file);
    addPartition(file, 0, 18);
    file.writer.pruneStoredItems(halvesOf(rows.slice(0, 18).map(({ place }) => place)));
    expect(file.reader.counts()).toMatchObject({ items: 2, storedItems: 18 });
    const [again] = rows;
    if (again === undefined) throw new Error("there are items");
    file.writer.addItems({
      bundle: { ...again.place, offset: -1 },
      rows: [again],
      firstEntry: 2,
      nextEntry: 3,
      bundles: [],
    });
    expect(file.reader.counts()).toMatchObject({ items: 3, storedItems: 17 });
    expect(file.reader.storedPartitions.isListed(again.id, again.place)).toBe(false);
    chain.rollback(15);
    expect(file.reader.counts()).toMatchObject({ items: 1, storedItems: 9 });
    expect(file.faults()).toEqual([]);
  });
});
