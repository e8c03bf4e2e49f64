/**
 * Rows that another gateway gave: they give way to those that this process verifies.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { allColumns, type ImportedItemRow, type ItemRow } from "../../../src/store/index/index-types.ts";
import { createRandom } from "../../support/random.ts";
import { growingChain } from "./growing-chain.ts";
import { type IndexFile, indexFile } from "./index-file.ts";
import { bundleOf, idOf, itemOf, ownerOf, tagOf } from "./rows-of.ts";

const random = createRandom(43);
const owner = ownerOf(random);
const root = (height: number) => ({ height, txIndex: 0, offset: -1 });
const itemAt = (height: number, offset: number, given: Partial<ItemRow> = {}): ItemRow =>
  itemOf(random, owner, { ...given, place: { ...root(height), offset } });
/** The row as another gateway may have given it. */
const importedOf = ({ digest: _, ...row }: ItemRow, given: Partial<ImportedItemRow> = {}): ImportedItemRow => ({
  ...row,
  ...given,
});
const verify = (file: IndexFile, height: number, rows: readonly ItemRow[]) =>
  file.writer.addItems({ bundle: root(height), rows, firstEntry: 0, nextEntry: rows.length, bundles: [] });
const placesOf = (file: IndexFile, { id }: Pick<ItemRow, "id">) =>
  file.reader.placesOf(id).map(({ height, offset }) => [height, offset]);

/** An index with blocks from height 10 on, each with one bundle. */
function openChain(blocks: number): IndexFile {
  const file = indexFile();
  const chain = growingChain(file.writer, random, owner);
  for (let count = 0; count < blocks; count += 1)
    chain.add({
      transactions: [{ dataSize: 1_000_000 }],
      bundles: (height, rows) => rows.map(({ id, dataSize }) => bundleOf(root(height), id, dataSize)),
    });
  return file;
}

describe("imported rows", () => {
  test("are not verified until the bundle is unbundled here, which corrects them", () => {
    using file = openChain(1);
    const items = [1_000, 2_000, 3_000].map((offset) => itemAt(10, offset, { tags: [tagOf("App", "a")] }));
    const imported = items.map(({ digest: _, ...row }) => ({ ...row, tags: [tagOf("App", "wrong")] }));
    expect(file.writer.addImported([], imported)).toEqual({ added: 3, duplicated: 0, repeated: 0, occupied: 0 });
    expect(file.writer.addImported([], imported)).toEqual({ added: 0, duplicated: 0, repeated: 3, occupied: 0 });
    const [first = idOf(random)] = items.map(({ id }) => id);
    expect(file.reader.locate(first)).toMatchObject({ verified: false, size: 70 });
    expect(file.reader.locate(first)?.digest).toBeUndefined();
    file.writer.addItems({ bundle: root(10), rows: items, firstEntry: 0, nextEntry: 3, bundles: [] });
    expect(file.reader.locate(first)).toMatchObject({ verified: true, digest: items[0]?.digest });
    expect(file.writer.addImported([], imported)).toMatchObject({ added: 0, repeated: 3 });
    const tagged = (value: string) =>
      file.reader.page({
        order: "asc",
        limit: 10,
        columns: allColumns,
        tags: [{ name: "App", values: [value], op: "EQ" }],
      });
    expect([tagged("a").rows.length, tagged("wrong").rows.length]).toEqual([3, 0]);
    expect(file.reader.counts()).toMatchObject({ items: 3, duplicates: 0 });
    expect(file.faults()).toEqual([]);
  });

  test("give way to a verified item of another id at their place, and are listed at their next place", () => {
    using file = openChain(2);
    const items = [itemAt(10, 1_001), itemAt(10, 2_000), itemAt(10, 3_000)];
    const wrong = itemAt(10, 1_000);
    const beside = itemAt(10, 2_500);
    file.writer.addImported([], [importedOf(wrong), importedOf(wrong, { place: { ...root(11), offset: 640 } })]);
    file.writer.addImported([], [importedOf(beside)]);
    const before = file.reader.journal.newest();
    expect(verify(file, 10, items)).toEqual({ added: 3, duplicated: 0, repeated: 0, gone: false });
    expect(items.map((row) => placesOf(file, row))).toEqual([[[10, 1_001]], [[10, 2_000]], [[10, 3_000]]]);
    expect([placesOf(file, wrong), placesOf(file, beside)]).toEqual([[[11, 640]], [[10, 2_500]]]);
    const changes = (file.reader.journal.after(before) ?? []).map(({ change }) => change);
    expect(changes.find((change) => "id" in change && change.id === wrong.id)).toMatchObject({
      kind: "mined",
      place: { height: 11 },
      from: { height: 10 },
    });
    expect(file.reader.counts()).toMatchObject({ items: 5, duplicates: 0 });
    expect(file.faults()).toEqual([]);
  });

  test("give way at all their places to verified items, also where one of these is a duplicate itself", () => {
    using file = openChain(2);
    const wrong = itemAt(10, 1_000);
    const places = [wrong.place, { ...wrong.place, offset: 2_000 }, { ...root(11), offset: 640 }];
    file.writer.addImported(
      [],
      places.map((place) => importedOf(wrong, { place })),
    );
    const items = [itemAt(10, 1_000), itemAt(10, 2_000)];
    const again = itemAt(11, 640, { id: items[0]?.id ?? idOf(random) });
    expect(verify(file, 10, items)).toMatchObject({ added: 2, duplicated: 0 });
    expect(placesOf(file, wrong)).toEqual([[11, 640]]);
    expect(verify(file, 11, [again])).toMatchObject({ added: 0, duplicated: 1 });
    expect(placesOf(file, wrong)).toEqual([]);
    expect(placesOf(file, again)).toEqual([
      [10, 1_000],
      [11, 640],
    ]);
    expect(file.reader.counts()).toMatchObject({ items: 2, duplicates: 1 });
    expect(file.faults()).toEqual([]);
  });

  test("that are duplicates are corrected when their bundle is unbundled here, and so is what takes their place", () => {
    using file = openChain(2);
    const item = itemAt(10, 640, { tags: [tagOf("App", "a")] });
    const high = { ...item, place: { ...root(11), offset: 640 } };
    const wrong = { tags: [tagOf("App", "wrong")] };
    file.writer.addImported([], [importedOf(item, wrong), importedOf(high, wrong)]);
    for (const row of [item, high]) verify(file, row.place.height, [row]);
    expect(file.reader.counts()).toMatchObject({ items: 1, duplicates: 1 });
    file.writer.rollback(11);
    expect(file.reader.locate(item.id)).toMatchObject({ verified: true });
    expect(file.faults()).toEqual([]);

    using other = openChain(2);
    other.writer.addImported([], [importedOf(item, wrong), importedOf(high, wrong)]);
    for (const row of [item, high]) verify(other, row.place.height, [row]);
    other.writer.pruneItems({ ingestedBeforeSeconds: other.nowMs, startHeight: 10, endHeight: 10 });
    expect(other.reader.locate(item.id)).toMatchObject({ verified: true, digest: item.digest });
    expect(other.reader.row(item.id)?.tags).toEqual(item.tags);
    expect(other.faults()).toEqual([]);
  });

  test("that are duplicates give way to a verified item of another id", () => {
    using file = openChain(2);
    const [low, high] = [itemAt(10, 640), itemAt(11, 640)];
    file.writer.addImported([], [importedOf(low), importedOf(low, { place: high.place })]);
    expect(verify(file, 11, [high])).toMatchObject({ added: 1, duplicated: 0 });
    expect([placesOf(file, low), placesOf(file, high)]).toEqual([[[10, 640]], [[11, 640]]]);
    file.writer.pruneItems({ ingestedBeforeSeconds: file.nowMs, startHeight: 10, endHeight: 10 });
    expect([placesOf(file, low), placesOf(file, high)]).toEqual([[], [[11, 640]]]);
    expect(file.reader.counts()).toMatchObject({ items: 1, duplicates: 0 });
    expect(file.faults()).toEqual([]);
  });
});
