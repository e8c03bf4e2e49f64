/**
 * Compact places of pruned items: their contents, their removal, and their size.
 * @module
 */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { blockHashBytes, type Id } from "../../../src/arweave/id.ts";
import type { ItemRow } from "../../../src/store/index/index-types.ts";
import { placeHigh, placeLow } from "../../../src/store/index/place.ts";
import { createRandom } from "../../support/random.ts";
import { newSeed } from "../../support/seed.ts";
import { growingChain } from "./growing-chain.ts";
import { type IndexFile, indexFile } from "./index-file.ts";
import { bundleOf, hashOf, idOf, itemOf, ownerOf, pendingOf, tagOf } from "./rows-of.ts";

const random = createRandom(7);
const owner = ownerOf(random);
const bundle = { dataSize: 1_000_000, tags: [tagOf("Bundle-Format", "binary")] };
const queueAll = (height: number, rows: readonly Readonly<{ txIndex: number; id: Id; dataSize: number }>[]) =>
  rows.map(({ txIndex, id, dataSize }) => bundleOf({ height, txIndex, offset: -1 }, id, dataSize));
const item = (height: number, offset: number, given: Partial<ItemRow> = {}): ItemRow =>
  itemOf(random, owner, { ...given, place: { height, txIndex: 0, offset } });
/** Adds items. The bundle does not progress, so that they can be added again. */
const add = (file: IndexFile, rows: readonly ItemRow[], height: number) =>
  file.writer.addItems({
    bundle: { height, txIndex: 0, offset: -1 },
    rows,
    firstEntry: 0,
    nextEntry: 0,
    bundles: [],
  });
const prune = (file: IndexFile, startHeight = 0, endHeight = 1_000) =>
  file.writer.pruneItems({ ingestedBeforeSeconds: file.nowMs / 1_000 + 1, startHeight, endHeight });
const compactPlaces = (file: IndexFile): number => {
  const db = new Database(file.path, { readonly: true });
  const [row] = db.query<{ count: number }, []>("SELECT count(*) AS count FROM pruned_items").all();
  db.close();
  return row?.count ?? -1;
};

test("each commit of the writer changes the version of the index, and a read does not", () => {
  using file = indexFile();
  const chain = growingChain(file.writer, random, owner);
  const versions = [file.reader.version()];
  chain.add({ transactions: [bundle], bundles: queueAll });
  versions.push(file.reader.version());
  add(file, [item(10, 1_000)], 10);
  versions.push(file.reader.version());
  prune(file);
  versions.push(file.reader.version());
  file.reader.counts();
  expect([file.reader.version(), new Set(versions).size]).toEqual([versions.at(-1) ?? 0, 4]);
});

describe("an item that was pruned", () => {
  test("is located as before, but found by no query", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    chain.add({ transactions: [bundle], bundles: queueAll });
    const tags = [tagOf("content-TYPE", "text/css"), tagOf("Content-Encoding", "gzip"), tagOf("a", "b")];
    const rows = [item(10, 1_000, { tags }), item(10, 2_000, { tags: [tagOf("Content-Type", "")] }), item(10, 3_000)];
    add(file, rows, 10);
    const located = () => rows.map(({ id }) => file.reader.locate(id));
    const before = located();
    expect(before[0]).toMatchObject({ contentType: "text/css", contentEncoding: "gzip", verified: true });
    expect(before[1]).toMatchObject({ contentType: "" });
    expect(prune(file)).toBe(3);
    expect(located()).toEqual(before);
    expect(rows.map(({ id }) => file.reader.placeOf(id))).toEqual([undefined, undefined, undefined]);
    expect(file.reader.locate(idOf(random))).toBeUndefined();
    expect(file.reader.counts().items).toBe(0);
    const spans = file.reader.itemsWithin({ height: 10, txIndex: 0, offset: -1 }, 0, 10_000, 10);
    expect(spans.map(({ id, digest }) => [id, digest])).toEqual(rows.map(({ id, digest }) => [id, digest]));
    expect(file.faults()).toEqual([]);
  });

  test("is one row when it is indexed again, and another row at another place", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    chain.add({ transactions: [bundle], bundles: queueAll });
    chain.add({ transactions: [bundle], bundles: queueAll });
    const low = item(10, 1_000);
    const high = item(11, 500, { id: low.id });
    add(file, [low], 10);
    add(file, [high], 11);
    prune(file);
    expect(compactPlaces(file)).toBe(2);
    expect(file.reader.locate(low.id)?.place).toEqual(low.place);
    add(file, [high], 11);
    expect(file.reader.placesOf(low.id)).toEqual([high.place]);
    expect(compactPlaces(file)).toBe(1);
    add(file, [low], 10);
    expect(file.reader.placesOf(low.id)).toEqual([low.place, high.place]);
    expect(compactPlaces(file)).toBe(0);
    expect(file.faults()).toEqual([]);
    // Only the lower one is removed: the other one replaces it.
    prune(file, 10, 10);
    expect(file.reader.locate(low.id)?.place).toEqual(high.place);
    expect(file.faults()).toEqual([]);
  });

  test.each<[string, (file: IndexFile, row: ItemRow) => number]>([
    ["by its time", (file) => prune(file, 10, 10)],
    [
      "because the columnar store has it",
      (file, { place }) => file.writer.pruneStoredItems(Uint32Array.of(placeHigh(place), placeLow(place))),
    ],
  ])("%s is not in the journal, nor is its place in a higher block", (_, pruneRow) => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    for (let count = 0; count < 2; count += 1) chain.add({ transactions: [bundle], bundles: queueAll });
    const low = item(10, 1_000);
    const high = item(11, 500, { id: low.id });
    add(file, [low], 10);
    add(file, [high], 11);
    const lastBlock = blockHashBytes(file.reader.block(10)?.hash ?? hashOf(random));
    file.writer.addStoredPartition({ first: 10, last: 10, lastBlock, foreignItems: 0 });
    const before = file.reader.journal.newest();
    expect(pruneRow(file, low)).toBe(1);
    expect(file.reader.placeOf(low.id)).toEqual(high.place);
    expect(file.reader.journal.after(before)).toEqual([]);
    chain.rollback(11);
    const changes = (file.reader.journal.after(before) ?? []).map(({ change }) => change);
    const forked = changes.find((change) => "id" in change && change.id === low.id);
    expect(forked).toMatchObject({ kind: "forked", place: { height: 11 } });
    expect(file.faults()).toEqual([]);
  });

  test("is removed with its block", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    for (const height of [10, 11, 12]) {
      chain.add({ transactions: [bundle], bundles: queueAll });
      add(file, [item(height, 1_000), item(height, 2_000)], height);
    }
    const stored = item(10, 5_000);
    const gone = item(11, 5_000);
    add(file, [stored], 10);
    add(file, [gone], 11);
    prune(file);
    expect(compactPlaces(file)).toBe(8);
    chain.rollback(11);
    expect([file.reader.locate(gone.id), file.reader.locate(stored.id)?.place]).toEqual([undefined, stored.place]);
    expect(compactPlaces(file)).toBe(3);
    expect(file.faults()).toEqual([]);
  });

  test("is located in its block although it was announced or uploaded again", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    chain.add({ transactions: [bundle], bundles: queueAll });
    const row = item(10, 1_000);
    add(file, [row], 10);
    prune(file);
    for (const verified of [false, true]) {
      file.writer.addPending([pendingOf(random, owner, { id: row.id, verified })]);
      expect(file.reader.locate(row.id)).toMatchObject({ place: row.place, pending: false });
    }
  });
});

test("every item of the chain is located exactly once after any order of indexing, pruning and rollbacks", () => {
  const seed = newSeed();
  const chance = createRandom(seed);
  using file = indexFile();
  const chain = growingChain(file.writer, chance, owner);
  const blocks: ItemRow[][] = [];
  const indexed = new Set<ItemRow>();
  const addBlock = () => {
    chain.add({ transactions: [bundle], bundles: queueAll });
    const height = 10 + blocks.length;
    const known = blocks.flat();
    blocks.push(
      Array.from({ length: 1 + chance.below(6) }, (_, at) =>
        itemOf(chance, owner, {
          place: { height, txIndex: 0, offset: 500 + 300 * at },
          ...(known.length > 0 && chance.chance(0.3) ? { id: chance.pick(known).id } : {}),
          tags: chance.chance(0.5) ? [tagOf("Content-Type", `text/${chance.below(5)}`)] : [],
        }),
      ),
    );
  };
  for (let step = 0; step < 400; step += 1) {
    const dice = chance.below(10);
    const at = chance.below(blocks.length);
    if (dice < 3 || blocks.length === 0) addBlock();
    else if (dice < 7) {
      const rows = (blocks[at] ?? []).filter(() => chance.chance(0.7));
      add(file, rows, 10 + at);
      for (const row of rows) indexed.add(row);
    } else if (dice < 9) prune(file, 10 + at, 10 + at + chance.below(4));
    else {
      const from = Math.max(1, blocks.length - chance.below(3));
      chain.rollback(10 + from);
      for (const row of blocks.splice(from).flat()) indexed.delete(row);
    }
  }
  const ids = new Map<Id, ItemRow[]>();
  for (const row of indexed) ids.set(row.id, [...(ids.get(row.id) ?? []), row]);
  for (const [id, rows] of ids) {
    const located = file.reader.locate(id);
    expect([seed, rows.map(({ place }) => place)]).toEqual([seed, expect.arrayContaining([located?.place])]);
    const row = rows.find(({ place }) => JSON.stringify(place) === JSON.stringify(located?.place));
    expect(located?.contentType).toBe(row?.tags[0]?.value);
  }
  prune(file);
  const distinct = new Set([...indexed].map(({ place }) => `${place.height}/${place.offset}`));
  expect([seed, compactPlaces(file)]).toEqual([seed, distinct.size]);
  expect([seed, file.faults()]).toEqual([seed, []]);
});

test("a compact place takes at most 125 bytes of the file", () => {
  const count = Number(process.env["COUNT"] ?? 5_000);
  using file = indexFile();
  const chain = growingChain(file.writer, random, owner);
  chain.add({ transactions: [{ ...bundle, dataSize: count * 1_000 }], bundles: queueAll });
  for (let at = 0; at < 20; at += 1) chain.add();
  for (let start = 0; start < count; start += 5_000) {
    const rows = Array.from({ length: Math.min(5_000, count - start) }, (_, at) =>
      item(10, 200 * (count + start + at), { tags: [tagOf("Content-Type", `image/${at % 10}`)] }),
    );
    add(file, rows, 10);
  }
  expect(prune(file)).toBe(count);
  const db = new Database(file.path);
  const sizes = db.query<{ bytes: number }, []>(
    "SELECT sum(pgsize) AS bytes FROM dbstat WHERE name IN ('pruned_items', 'pruned_items_by_id', 'content_types')",
  );
  const bytes = (sizes.get()?.bytes ?? 0) / count;
  db.close();
  console.log(`${bytes} bytes a compact place of ${count}`);
  expect(bytes).toBeLessThan(125);
});
