/**
 * Locations of an id's bytes, and of all items within a span.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { openBlockList } from "../../../src/store/block-list.ts";
import { noColumns } from "../../../src/store/index/index-types.ts";
import { createRandom } from "../../support/random.ts";
import { growingChain } from "./growing-chain.ts";
import { indexFile } from "./index-file.ts";
import { bundleOf, idOf, itemOf, ownerOf, tagOf } from "./rows-of.ts";

const random = createRandom(11);
const owner = ownerOf(random);
const root = { height: 10, txIndex: 0, offset: -1 };
const dataRoot = Buffer.from(random.bytes(32)).toString("base64url");

function nestedBundle() {
  const file = indexFile();
  const chain = growingChain(file.writer, random, owner);
  const start = 2n ** 55n + 1n;
  const { transactions } = chain.add({
    transactions: [{ dataSize: 100_000, dataRoot, weaveStart: start, weaveEnd: start + 100_000n }],
    bundles: (_height, rows) => rows.map(({ id }) => bundleOf(root, id, 100_000)),
  });
  const at = (offset: number, size: number, parentOffset: number | null = null) =>
    itemOf(random, owner, { place: { ...root, offset }, headerSize: 130, size, parentOffset });
  // One alone, one that contains two, of which the second contains one; then one that begins in the middle of a step.
  const alone = {
    ...at(300, 70),
    tags: [tagOf("content-TYPE", "image/png"), tagOf("Content-Encoding", "gzip")],
  };
  const outer = at(500, 9_870);
  const inner = at(800, 70, 500);
  const middle = at(1_000, 2_870, 500);
  const deep = at(1_300, 100, 1_000);
  const last = at(10_500, 70);
  const rows = [alone, outer, inner, middle, deep, last];
  file.writer.addItems({ bundle: root, rows, firstEntry: 0, nextEntry: 6, bundles: [] });
  const rootId = transactions[0]?.id ?? idOf(random);
  return { file, chain, rootId, start, alone, outer, inner, middle, deep, last };
}

describe("locate", () => {
  test("a transaction is located at its data, an item at its payload", () => {
    const { file, rootId, start, alone, inner, outer } = nestedBundle();
    using _open = file;
    expect(file.reader.locate(rootId)).toMatchObject({
      kind: "transaction",
      rootId,
      size: 100_000,
      dataOffset: 0,
      dataRoot,
      weaveStart: start,
      rootFormat: 2,
      verified: true,
      stable: false,
      pending: false,
    });
    expect(file.reader.locate(alone.id)).toMatchObject({
      kind: "item",
      rootId,
      parentId: rootId,
      itemOffset: 300,
      dataOffset: 430,
      headerSize: 130,
      size: 70,
      rootSize: 100_000,
      dataRoot,
      weaveStart: start,
      contentType: "image/png",
      contentEncoding: "gzip",
      digest: alone.digest,
      signatureType: 3,
      ownerAddress: owner.address,
    });
    expect(file.reader.locate(inner.id)).toMatchObject({ rootId, parentId: outer.id, itemOffset: 800 });
    expect(file.reader.locate(idOf(random))).toBeUndefined();
    expect(file.reader.row(inner.id)?.parentId).toBe(outer.id);
    expect(file.reader.row(rootId)?.parentId).toBeUndefined();
  });

  test("a row is stable at a depth of eighteen blocks", () => {
    const { file, chain, rootId, alone } = nestedBundle();
    using _open = file;
    for (let count = 0; count < 17; count += 1) chain.add();
    expect(file.reader.locate(alone.id)?.stable).toBe(false);
    chain.add();
    expect(file.reader.locate(alone.id)?.stable).toBe(true);
    expect(file.reader.transactionStatus(rootId)?.confirmations).toBe(19);
    expect(file.reader.transactionStatus(alone.id)).toBeUndefined();
    expect(file.reader.transactionText(alone.id)).toBeUndefined();
    expect(file.reader.transactionRecord(alone.id)).toBeUndefined();
  });

  test("the parent of an item is known also when the index filter excluded it", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    chain.add({
      transactions: [{ dataSize: 9_999 }],
      bundles: (_height, rows) => rows.map(({ id }) => bundleOf(root, id, 9_999)),
    });
    const nested = { ...bundleOf({ ...root, offset: 500 }, idOf(random), 3_000), headerSize: 130, depth: 1 };
    const child = itemOf(random, owner, { place: { ...root, offset: 800 }, parentOffset: 500 });
    file.writer.addItems({ bundle: root, rows: [child], firstEntry: 0, nextEntry: 1, bundles: [nested] });
    expect(file.reader.locate(child.id)?.parentId).toBe(nested.id);
    expect(file.reader.row(child.id)?.parentId).toBe(nested.id);
    const columns = noColumns;
    const page = file.reader.page({ bundledIn: [nested.id], order: "asc", limit: 5, columns });
    expect(page.rows.map(({ id }) => id)).toEqual([child.id]);
    expect(file.reader.itemsWithin(root, 2_000, 2_001, 10).map(({ id }) => id)).toEqual([nested.id]);
  });
});

describe("itemsWithin", () => {
  test("finds items that begin in a span and items that overlap it", () => {
    const { file, alone, outer, inner, middle, deep, last } = nestedBundle();
    using _open = file;
    const names = new Map([
      [alone.id, "alone"],
      [outer.id, "outer"],
      [inner.id, "inner"],
      [middle.id, "middle"],
      [deep.id, "deep"],
      [last.id, "last"],
    ]);
    const rows: [number, number, string][] = [
      [0, 300, ""],
      [0, 301, "alone"],
      [299, 300, ""],
      [499, 500, "alone"], // alone ends at 500
      [500, 501, "outer"],
      [999, 1_000, "outer inner"],
      [1_000, 1_001, "outer middle"],
      [1_529, 1_530, "outer middle deep"],
      [1_530, 1_531, "outer middle"],
      [4_000, 4_001, "outer"],
      [10_499, 10_500, "outer"],
      [10_500, 10_501, "last"],
      [10_700, 100_000, ""],
      [0, 100_000, "alone outer inner middle deep last"],
    ];
    for (const [start, end, expected] of rows) {
      const found = file.reader.itemsWithin(root, start, end, 100).map(({ id }) => names.get(id));
      expect([start, end, found.join(" ")]).toEqual([start, end, expected]);
    }
    expect(file.reader.itemsWithin(root, 0, 100_000, 2).length).toBe(2);
    expect(file.reader.itemsWithin({ ...root, txIndex: 1 }, 0, 100_000, 10)).toEqual([]);
  });

  test("agrees with a scan of all items, for any bundle and any span", () => {
    const seed = 77;
    const chance = createRandom(seed);
    using file = indexFile();
    growingChain(file.writer, random, owner).add({
      transactions: [{ dataSize: 10 ** 6 }],
      bundles: (_height, rows) => rows.map(({ id }) => bundleOf(root, id, 10 ** 6)),
    });
    const rows: ReturnType<typeof itemOf>[] = [];
    const fill = (start: number, depth: number, parentOffset: number | null): number => {
      let offset = start + 96;
      for (let count = 0; count < 1 + chance.below(6); count += 1) {
        const end =
          depth < 4 && chance.chance(0.4) ? fill(offset + 116, depth + 1, offset) : offset + 116 + chance.below(90);
        const row = { place: { ...root, offset }, parentOffset, headerSize: 116, size: end - offset - 116 };
        rows.push(itemOf(random, owner, row));
        offset = end;
      }
      return offset;
    };
    const end = fill(0, 0, null);
    file.writer.addItems({ bundle: root, rows, firstEntry: 0, nextEntry: 1, bundles: [] });
    for (let count = 0; count < 500; count += 1) {
      const from = chance.below(end);
      const to = from + 1 + chance.below(chance.chance(0.5) ? 3 : 500);
      const expected = rows
        .filter(({ place, size }) => place.offset < to && place.offset + 116 + size > from)
        .sort((a, b) => a.place.offset - b.place.offset)
        .map(({ id }) => id);
      expect({
        seed,
        from,
        to,
        ids: file.reader.itemsWithin(root, from, to, 1_000).map(({ id }) => id),
      }).toEqual({ seed, from, to, ids: expected });
    }
  });

  test("finds copies at places that are not canonical, so that blocking covers them", () => {
    using file = indexFile();
    const blockList = openBlockList(`${file.path}.blockList`, () => 0);
    const chain = growingChain(file.writer, random, owner);
    chain.add({
      transactions: [{ dataSize: 9_999 }, { dataSize: 9_999 }],
      bundles: (height, rows) => rows.map(({ id, txIndex }) => bundleOf({ height, txIndex, offset: -1 }, id, 9_999)),
    });
    const item = itemOf(random, owner, { place: { ...root, offset: 96 } });
    for (const txIndex of [0, 1]) {
      const place = { ...root, txIndex };
      const rows = [{ ...item, place: { ...place, offset: 96 } }];
      file.writer.addItems({ bundle: place, rows, firstEntry: 0, nextEntry: 1, bundles: [] });
    }
    blockList.block("id", item.id, {});
    const within = file.reader.itemsWithin({ ...root, txIndex: 1 }, 0, 9_999, 10);
    expect(within.some(({ id }) => blockList.isBlockedId(id))).toBe(true);
    blockList.close();
  });
});
