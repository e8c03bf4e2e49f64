/**
 * Batches of rows: what a thread encodes is what the writer stores.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { createFilterKeys, createFilterSecret } from "../../../../src/store/index/filter-key.ts";
import type { ItemRow } from "../../../../src/store/index/index-types.ts";
import {
  encodeItems,
  encodeRows,
  hasTransactions,
  keysOfBatchRow,
  readBatch,
  rowOf,
  serializeBatch,
  sortedIdKeys,
} from "../../../../src/store/index/rows/row-batch.ts";
import { filterKeysOfRow, storedTransaction } from "../../../../src/store/index/rows/stored-row.ts";
import { itemsOfBatch } from "../../../support/batch-items.ts";
import { createRandom } from "../../../support/random.ts";
import { seedOr } from "../../../support/seed.ts";
import { itemOf, ownerOf, transactionOf } from "../rows-of.ts";

const random = createRandom(seedOr(611));
const keys = createFilterKeys(createFilterSecret());
const owner = ownerOf(random);

function itemAt(offset: number, given: Partial<ItemRow> = {}): ItemRow {
  return itemOf(random, owner, { place: { height: 7, txIndex: 3, offset }, ...given });
}

function roundTrip(items: readonly ItemRow[]): ItemRow[] {
  return itemsOfBatch(readBatch(serializeBatch(encodeItems(items, keys)), keys));
}

describe("encodeItems", () => {
  const longTag = { name: "n".repeat(1_000), value: "v".repeat(100_000) };
  test.each<[string, Partial<ItemRow>]>([
    ["no tags, target or anchor", { tags: [], target: "", anchor: "" }],
    ["a target with 43 characters that are not canonical", { target: "a".repeat(43) }],
    ["a target with fewer bytes", { target: "AAAA" }],
    ["an anchor of bytes", { anchor: "AAEC" }],
    ["an anchor that is text", { anchor: "not base64url: ü" }],
    ["a parent at byte 0", { parentOffset: 0 }],
    ["no parent", { parentOffset: null }],
    ["a size above 2^32", { size: 2 ** 37 }],
    ["tags longer than a page", { tags: [longTag, longTag] }],
  ])("an item with %s is unchanged", (_, given) => {
    const items = [itemAt(96), itemAt(96 + 64, given), itemAt(2 ** 36 + 5)];
    expect(roundTrip(items)).toEqual(items);
  });

  test("no items are a batch without rows", () => {
    expect(roundTrip([])).toEqual([]);
  });

  test("items are in place order, each with its owner", () => {
    const owners = [ownerOf(random), ownerOf(random)];
    const items = Array.from({ length: 200 }, (_, index) =>
      itemOf(random, owners[index % 2] ?? owner, { place: { height: 7, txIndex: 3, offset: (index + 2) * 100 } }),
    );
    const batch = encodeItems(items.toReversed(), keys);
    expect(itemsOfBatch(batch)).toEqual(items);
    expect(batch.ownerEnds.length).toBe(owners.length);
  });

  test("the keys of a row are those of its id, owner, recipient and tags", () => {
    const batch = encodeItems([itemAt(96), itemAt(200, { target: "" }), itemAt(300, { tags: [] })], keys);
    for (let index = 0; index < batch.count; index += 1) {
      const row = rowOf(batch, index);
      const tags = itemsOfBatch(batch)[index]?.tags ?? [];
      const expected = filterKeysOfRow(keys, { ...row, owner: row.address, tags });
      expect(keysOfBatchRow(batch, index)).toEqual([keys.id(row.id), ...expected]);
    }
  });

  test("the order of ids is that of their keys", () => {
    const batch = encodeItems(
      Array.from({ length: 100 }, (_, index) => itemAt((index + 2) * 100)),
      keys,
    );
    const found = sortedIdKeys(batch);
    expect(found).toEqual(found.toSorted((a, b) => a - b));
    expect(new Set(batch.idOrder).size).toBe(100);
  });
});

test("a batch with a transaction tells so", () => {
  const stored = storedTransaction(7, transactionOf(random, owner, { txIndex: 3 }));
  expect(hasTransactions(encodeRows([stored], keys))).toBe(true);
  expect(hasTransactions(encodeItems([itemAt(96)], keys))).toBe(false);
});
