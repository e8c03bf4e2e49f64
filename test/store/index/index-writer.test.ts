/**
 * Writes to the index, step by step, and rollbacks.
 * @module
 */
import { serialize } from "bun:jsc";
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import type { Id } from "../../../src/arweave/id.ts";
import { schemaFingerprint } from "../../../src/lib/schema-scripts.ts";
import { createFilterKeys, createFilterSecret } from "../../../src/store/index/filter-key.ts";
import { openIndexReader } from "../../../src/store/index/index-reader.ts";
import { indexMigrations } from "../../../src/store/index/index-schema.ts";
import {
  allColumns,
  type BlockRows,
  type IndexReader,
  type ItemRow,
  type PagePlan,
} from "../../../src/store/index/index-types.ts";
import { openIndexWriter } from "../../../src/store/index/index-writer.ts";
import { partSizesDefault } from "../../../src/store/index/parts/parts.ts";
import { pendingPlace } from "../../../src/store/index/place.ts";
import { encodeItems, serializeBatch } from "../../../src/store/index/rows/row-batch.ts";
import { inspectIndex } from "../../support/inspect-index.ts";
import { createRandom } from "../../support/random.ts";
import { temporaryFolder } from "../folder.ts";
import { growingChain } from "./growing-chain.ts";
import { indexFile } from "./index-file.ts";
import { blockOf, bundleOf, idOf, itemOf, ownerOf, pendingOf, someFilters, tagOf } from "./rows-of.ts";

const random = createRandom(42);
const owner = ownerOf(random);
const all: PagePlan = {
  order: "asc",
  limit: 1_000,
  columns: allColumns,
};
const bundle = { dataSize: 1_000_000, tags: [tagOf("Bundle-Format", "binary")] };
const queueAll = (height: number, rows: readonly Readonly<{ txIndex: number; id: Id; dataSize: number }>[]) =>
  rows.map(({ txIndex, id, dataSize }) => bundleOf({ height, txIndex, offset: -1 }, id, dataSize));

/** Consecutive items of 200 bytes in the transaction at a place. */
const itemsOf = (height: number, txIndex: number, count: number, given: Partial<ItemRow> = {}): ItemRow[] =>
  Array.from({ length: count }, (_, index) =>
    itemOf(random, owner, { ...given, place: { height, txIndex, offset: 32 + 64 * count + 200 * index } }),
  );

describe("addBlock", () => {
  test("block and transactions are found by height, hash and id, with their exact texts", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner, 422_250);
    const text = '{"format":1,"id":"x","data":"AAEC","quantity":"12345678901234567890123"}';
    const { block, transactions } = chain.add({
      transactions: [{ format: 1, text, quantity: 12_345_678_901_234_567_890_123n, lastTx: "" }, {}],
      block: { weaveSize: 2n ** 70n, unchecked: ["tx_root"] },
    });
    expect(file.reader.tip()).toEqual({ height: 422_250, hash: block.hash, timestamp: block.timestamp });
    expect(file.reader.block(block.hash)).toEqual(file.reader.block(422_250));
    expect(file.reader.block(422_249)).toBeUndefined();
    expect(file.reader.blockText(block.hash)).toEqual({
      text: block.text,
      checked: ["links"],
      unchecked: ["tx_root"],
    });
    const id = transactions[0]?.id ?? idOf(random);
    expect(file.reader.transactionText(id)).toEqual({ text: text.replace("AAEC", ""), dataAt: 29 });
    expect(file.reader.row(id)?.quantity).toBe(12_345_678_901_234_567_890_123n);
    expect(file.reader.transactionStatus(id)).toEqual({
      height: 422_250,
      hash: block.hash,
      confirmations: 1,
    });
    expect(file.reader.transactionRecord(id)).toEqual({
      height: 422_250,
      hash: block.hash,
      confirmations: 1,
      text: text.replace("AAEC", ""),
      dataAt: 29,
    });
    expect(file.faults()).toEqual([]);
  });

  test("rows that another thread serialized are accepted", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    const rows = chain.next({ transactions: [bundle], bundles: queueAll });
    file.writer.addBlock(serialize(rows));
    const items = itemsOf(10, 0, 3);
    const outcome = file.writer.addItems({
      bundle: { height: 10, txIndex: 0, offset: -1 },
      rows: serializeBatch(encodeItems(items, createFilterKeys(file.reader.filterSecret))),
      firstEntry: 0,
      nextEntry: 3,
      bundles: [],
    });
    expect(outcome).toEqual({ added: 3, duplicated: 0, repeated: 0, gone: false });
    expect(file.reader.page(all).rows.map(({ id }) => id)).toEqual([
      ...rows.transactions.map(({ id }) => id),
      ...items.map(({ id }) => id),
    ]);
  });

  test("a batch that was encoded for another index is rejected and changes nothing", () => {
    using file = indexFile();
    growingChain(file.writer, random, owner).add({ transactions: [bundle], bundles: queueAll });
    const rows = serializeBatch(encodeItems(itemsOf(10, 0, 3), createFilterKeys(createFilterSecret())));
    const place = { height: 10, txIndex: 0, offset: -1 };
    expect(() => file.writer.addItems({ bundle: place, rows, firstEntry: 0, nextEntry: 3, bundles: [] })).toThrow(
      "the keys of the index",
    );
    expect(file.reader.counts().items).toBe(0);
  });

  test("a block that does not follow the tip is rejected and changes nothing", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    chain.add();
    const later = chain.next({ transactions: [{}], block: { height: 12 } });
    expect(() => file.writer.addBlock(later)).toThrow("the height of a block");
    expect(file.reader.tip()?.height).toBe(10);
    expect(file.faults()).toEqual([]);
  });

  test("a step that fails in the middle changes nothing, and the next one succeeds", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    const other = ownerOf(random);
    const good = chain.next({
      transactions: [{ owner: Buffer.from(other.key).toString("base64url"), ownerAddress: other.address }],
    });
    const bad = { ...good, missing: [{ txIndex: 5_000, id: idOf(random) }] };
    expect(() => file.writer.addBlock(bad)).toThrow("invariant broken");
    expect(file.reader.counts()).toMatchObject({ blocks: 0, transactions: 0, owners: 0 });
    file.writer.addBlock(good);
    expect(file.reader.counts()).toMatchObject({ blocks: 1, transactions: 1, owners: 1 });
    expect(file.faults()).toEqual([]);
  });

  test("an operator's transaction gets its place in the weave with its block, and is removed when the block is forked away", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    const first = chain.next({ transactions: [{}, {}] });
    file.writer.addStrayBlock({ ...first, transactions: first.transactions.slice(0, 1) });
    expect(file.reader.tip()).toBeUndefined();
    expect(file.reader.page(all).rows.length).toBe(1);
    const placed = first.transactions.map((row) => ({ ...row, weaveStart: 5n, weaveEnd: 1_005n }));
    file.writer.addBlock({ ...first, transactions: placed });
    expect(first.transactions.map(({ id }) => file.reader.weaveSpan(id)?.start)).toEqual([5n, 5n]);
    expect(file.reader.page(all).rows.length).toBe(2);
    expect(file.reader.counts()).toMatchObject({ blocks: 1, transactions: 2 });

    const forked = chain.next({ transactions: [{}], block: { height: 11 } });
    file.writer.addStrayBlock(forked);
    const real = chain.next({ transactions: [{}], block: { height: 11 } });
    file.writer.addBlock(real);
    expect(file.reader.placeOf(forked.transactions[0]?.id ?? idOf(random))).toBeUndefined();
    expect(file.reader.block(11)?.hash).toBe(real.block.hash);
    expect(file.faults()).toEqual([]);
  });
});

describe("missing transactions", () => {
  test("are returned when due, added later, and then have a place in the weave", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    const id = idOf(random);
    const { transactions } = chain.add({
      transactions: [{ dataSize: 10 }],
      missing: [{ txIndex: 1, id }],
    });
    const place = { height: 10, txIndex: 1, offset: -1 };
    expect(file.reader.dueMissing(file.nowMs, 10)).toEqual([{ place, id, attempts: 0 }]);
    file.writer.postponeMissing(place, idOf(random), file.nowMs + 5_000); // of a block that a reorg replaced
    expect(file.reader.dueMissing(file.nowMs, 10)).toEqual([{ place, id, attempts: 0 }]);
    file.writer.postponeMissing(place, id, file.nowMs + 5_000);
    expect(file.reader.dueMissing(file.nowMs, 10)).toEqual([]);
    expect(file.reader.dueMissing(file.nowMs + 5_000, 10)).toEqual([{ place, id, attempts: 1 }]);

    const late = chain.next({ transactions: [{}, { id, ...bundle, dataSize: 20 }] }).transactions[1];
    if (late === undefined) throw new Error("the block has two transactions");
    const hash = file.reader.block(10)?.hash;
    if (hash === undefined) throw new Error("the block is there");
    const block = { height: 10, hash };
    expect(file.writer.addMissingTransaction(block, { ...late, id: idOf(random) }, [])).toBe(false);
    // The weave layout was computed for one block, and does not apply to the block that replaced it.
    const sibling = { ...block, hash: hash.toLowerCase() as typeof hash };
    expect(file.writer.addMissingTransaction(sibling, late, [])).toBe(false);
    expect(file.writer.addMissingTransaction({ ...block, height: 11 }, late, [])).toBe(false);
    expect(file.writer.addMissingTransaction(block, late, queueAll(10, [late]))).toBe(true);
    expect(file.writer.addMissingTransaction(block, late, [])).toBe(false);
    const start = 2n ** 60n;
    const setLayout = (at: typeof hash) =>
      file.writer.setWeaveLayout(
        { height: 10, hash: at },
        [
          { txIndex: 0, start, end: start + 10n },
          { txIndex: 1, start: start + 262_144n, end: start + 262_164n },
        ],
        { checked: ["tx_root"], unchecked: [] },
      );
    // The layout of a forked block does not apply to another block.
    expect(setLayout(hash.toLowerCase() as typeof hash)).toBe(false);
    expect(file.reader.weaveSpan(id)).toBeUndefined();
    expect(setLayout(hash)).toBe(true);
    expect(file.reader.weaveSpan(id)).toMatchObject({ start: start + 262_144n, end: start + 262_164n });
    expect(file.reader.transactionAt(start + 9n)?.id).toBe(transactions[0]?.id ?? id);
    // Padding between transactions belongs to no transaction.
    expect(file.reader.transactionAt(start + 10n)).toBeUndefined();
    expect(file.reader.transactionAt(start + 262_163n)?.id).toBe(id);
    expect(file.reader.transactionAt(start + 262_164n)).toBeUndefined();
    expect(file.reader.transactionAt(0n)).toBeUndefined();
    expect(file.reader.blockText(10)?.checked).toEqual(["tx_root"]);
    expect(file.reader.locate(id)?.weaveStart).toBe(start + 262_144n);
    expect(file.reader.counts().missingTransactions).toBe(0);
    expect(file.writer.takeBundle()?.id).toBe(id);
    expect(file.faults()).toEqual([]);
  });
});

describe("duplicates", () => {
  test("the lowest place is canonical, also when it is added later, and the other one replaces it when it is removed", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    chain.add({ transactions: [bundle, bundle], bundles: queueAll });
    chain.add({ transactions: [bundle], bundles: queueAll });
    const [low, other, high] = [itemsOf(10, 0, 1), itemsOf(10, 1, 1), itemsOf(11, 0, 1)].map((rows) => rows[0]);
    if (low === undefined || other === undefined || high === undefined) throw new Error("three items");
    const { id } = low;
    const add = (row: ItemRow) =>
      file.writer.addItems({
        bundle: { height: row.place.height, txIndex: row.place.txIndex, offset: -1 },
        rows: [{ ...row, id, tags: [tagOf("At", String(row.place.height))] }],
        firstEntry: 0,
        nextEntry: 0,
        bundles: [],
      });
    const found = (): unknown => file.reader.page({ ...all, ids: [id] }).rows.map(({ place }) => place);

    expect(add(other)).toMatchObject({ added: 1, duplicated: 0 });
    expect(add(high)).toMatchObject({ added: 0, duplicated: 1 });
    expect(found()).toEqual([other.place]);
    expect(add(low)).toMatchObject({ added: 1, duplicated: 0 });
    expect(found()).toEqual([low.place]);
    expect(file.reader.placesOf(id)).toEqual([low.place, other.place, high.place]);
    expect(file.reader.counts()).toMatchObject({ items: 1, duplicates: 2 });
    // A repeated step changes nothing.
    expect(add(low)).toMatchObject({ repeated: 1 });
    expect(add(high)).toMatchObject({ duplicated: 1 });
    expect(file.reader.placesOf(id).length).toBe(3);
    expect(file.reader.page({ ...all, tags: [{ name: "At", values: ["11"], op: "EQ" }] }).rows).toEqual([]);
    expect(file.faults()).toEqual([]);

    // Pruning removes by time; here it removes the two lower places, so that the third becomes canonical.
    file.writer.pruneItems({ ingestedBeforeSeconds: file.nowMs / 1_000 + 1, startHeight: 10, endHeight: 10 });
    expect(found()).toEqual([high.place]);
    expect(file.reader.page({ ...all, tags: [{ name: "At", values: ["11"], op: "EQ" }] }).rows.length).toBe(1);
    expect(file.faults()).toEqual([]);
  });

  test.each([
    ["the lower bundle first", [0, 1, 2]],
    ["the lower bundle last", [2, 1, 0]],
    ["the nested bundle last", [0, 2, 1]],
  ])("bundles count their duplicates by place, whichever came first: %s", (_name, order) => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    const lower = chain.add({ transactions: [bundle], bundles: queueAll }).transactions[0]?.id;
    const upper = chain.add({ transactions: [bundle], bundles: queueAll }).transactions[0]?.id;
    const nested = idOf(random);
    const [shared, own] = [idOf(random), idOf(random)];
    if (lower === undefined || upper === undefined) throw new Error("two bundles");
    const at = (height: number, offset: number) => ({ height, txIndex: 0, offset });
    const batches = [
      { bundle: at(10, -1), rows: [itemOf(random, owner, { id: shared, place: at(10, 96) })] },
      // The upper bundle contains one with both items, the second of them twice.
      {
        bundle: at(11, 96),
        rows: [1_000, 2_000, 3_000].map((offset, index) =>
          itemOf(random, owner, { id: index === 0 ? shared : own, place: at(11, offset), parentOffset: 96 }),
        ),
      },
      {
        bundle: at(11, -1),
        rows: [itemOf(random, owner, { id: nested, place: at(11, 96), size: 9_000 })],
      },
    ];
    const nestedRow = { ...bundleOf(at(11, 96), nested, 9_000), headerSize: 100, depth: 1 };
    file.writer.addItems({ bundle: at(11, -1), rows: [], firstEntry: 0, nextEntry: 0, bundles: [nestedRow] });
    for (const index of order) {
      const batch = batches[index];
      if (batch === undefined) throw new Error("a batch");
      file.writer.addItems({ ...batch, firstEntry: 0, nextEntry: batch.rows.length, bundles: [] });
      file.writer.finishBundle(batch.bundle, { ...someFilters, itemCount: batch.rows.length });
    }
    const counted = () => [lower, nested, upper].map((id) => file.reader.bundleStatus(id)?.duplicatedDataItemCount);
    expect(counted()).toEqual([0, 2, 0]);
    expect(file.faults()).toEqual([]);
    chain.rollback(11);
    expect(counted()).toEqual([0, undefined, undefined]);
  });

  test("one bundle that contains an item twice counts one duplicate", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    const { transactions } = chain.add({ transactions: [bundle], bundles: queueAll });
    const [first, second] = itemsOf(10, 0, 2);
    if (first === undefined || second === undefined) throw new Error("two items");
    const place = { height: 10, txIndex: 0, offset: -1 };
    file.writer.takeBundle();
    file.writer.addItems({
      bundle: place,
      rows: [{ ...second, id: first.id }, first],
      firstEntry: 0,
      nextEntry: 2,
      bundles: [],
    });
    file.writer.finishBundle(place, { ...someFilters, itemCount: 2 });
    expect(file.reader.placeOf(first.id)).toEqual(first.place);
    expect(file.reader.bundleStatus(transactions[0]?.id ?? first.id)).toMatchObject({
      dataItemCount: 2,
      matchedDataItemCount: 2,
      duplicatedDataItemCount: 1,
    });
    expect(file.faults()).toEqual([]);
  });

  test("a mined row replaces the pending one, which becomes canonical again when the block is removed", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    chain.add();
    const id = idOf(random);
    expect(file.writer.addPending([pendingOf(random, owner, { kind: "transaction", id })])).toBe(1);
    expect(file.reader.locate(id)).toMatchObject({ pending: true, stable: false, kind: "transaction" });
    const text = `{"id":"${id}"}`;
    expect(file.reader.transactionText(id)?.text).toBe(text);
    expect(file.reader.transactionRecord(id)).toBeUndefined();
    chain.add({ transactions: [{ id, text }] });
    expect(file.reader.locate(id)).toMatchObject({ pending: false, place: { height: 11 } });
    expect(file.reader.transactionRecord(id)).toMatchObject({ height: 11, confirmations: 1, text });
    expect(file.writer.addPending([pendingOf(random, owner, { id })])).toBe(0);
    chain.rollback(11);
    expect(file.reader.locate(id)).toMatchObject({ pending: true });
    expect(file.reader.transactionText(id)?.text).toBe(text);
    expect(file.reader.transactionRecord(id)).toBeUndefined();
    expect(file.writer.removePending([id, idOf(random)])).toBe(1);
    expect(file.reader.locate(id)).toBeUndefined();
    expect(file.faults()).toEqual([]);
  });
});

describe("pending rows", () => {
  test("come after all blocks in order of arrival, and expire unless this process verified them", () => {
    using file = indexFile();
    growingChain(file.writer, random, owner).add({ transactions: [{}] });
    const [announced, uploaded, mempool] = [
      pendingOf(random, owner, { verified: false }),
      pendingOf(random, owner, { verified: true }),
      pendingOf(random, owner, { kind: "transaction" }),
    ];
    file.writer.addPending([announced, announced, uploaded]);
    file.nowMs += 1_000;
    file.writer.addPending([mempool]);
    const ids = (): Id[] => file.reader.page(all).rows.map(({ id }) => id);
    expect(ids().slice(1)).toEqual([announced.id, uploaded.id, mempool.id]);
    expect(file.reader.locate(announced.id)?.verified).toBe(false);
    expect(file.reader.locate(uploaded.id)?.verified).toBe(true);
    expect(file.reader.page({ ...all, block: { min: 0 } }).rows.length).toBe(1);
    expect(file.writer.expirePending(1_700_000_001)).toBe(1);
    expect(ids().slice(1)).toEqual([uploaded.id, mempool.id]);
    expect(file.writer.expirePending(1_700_000_002)).toBe(1);
    expect(ids().slice(1)).toEqual([uploaded.id]);
    expect(file.reader.counts()).toMatchObject({ pendingItems: 1, pendingTransactions: 0 });
    expect(file.faults()).toEqual([]);
  });

  test("have stored signatures exactly as long as they are pending", () => {
    using file = indexFile();
    growingChain(file.writer, random, owner).add({ transactions: [{}] });
    const signature = new Uint8Array(512).fill(9);
    const [announced, uploaded, unsigned] = [
      pendingOf(random, owner, { verified: false, signature }),
      pendingOf(random, owner, { verified: true, signature }),
      pendingOf(random, owner, { verified: true }),
    ];
    file.writer.addPending([announced, uploaded, unsigned]);
    const place = (id: Id) => file.reader.placeOf(id) ?? pendingPlace(1);
    const [first, second] = [place(announced.id), place(uploaded.id)];
    expect([first, second].map((each) => file.reader.pendingSignature(each))).toEqual([signature, signature]);
    expect(file.reader.pendingSignature(place(unsigned.id))).toBeUndefined();
    file.writer.addPending([{ ...announced, verified: true }]);
    expect(file.reader.pendingSignature(first)).toBeUndefined();
    file.writer.addPending([pendingOf(random, owner, { verified: false, signature, id: announced.id })]);
    file.writer.removePending([uploaded.id]);
    expect(file.reader.pendingSignature(second)).toBeUndefined();
    const late = pendingOf(random, owner, { verified: false, signature });
    file.writer.addPending([late]);
    const third = place(late.id);
    file.nowMs += 2_000;
    expect(file.writer.expireAnnounced(1_700_000_001)).toBe(1);
    expect(file.reader.pendingSignature(third)).toBeUndefined();
    expect(file.faults()).toEqual([]);
  });
});

describe("rollback", () => {
  test.each([1, 5, 60])("of %d blocks restores the previous state exactly, and following continues", (depth) => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    const grow = (): void => {
      const { block } = chain.add({
        transactions: [bundle, { target: owner.address }],
        missing: [{ txIndex: 2, id: idOf(random) }],
        bundles: queueAll,
      });
      file.writer.addItems({
        bundle: { height: block.height, txIndex: 0, offset: -1 },
        rows: itemsOf(block.height, 0, 20, { tags: [tagOf("Type", "x")] }),
        firstEntry: 0,
        nextEntry: 20,
        bundles: [],
        invalid: [{ entry: 20, offset: 9_000, id: idOf(random), reason: "signature" }],
      });
    };
    for (let count = 0; count < 5; count += 1) grow();
    const before = { rows: file.reader.page(all), counts: { ...file.reader.counts(), owners: 0 } };
    for (let count = 0; count < depth; count += 1) grow();
    expect(chain.rollback(15)).toEqual({ blocks: depth, rows: depth * 22 });
    const after = { rows: file.reader.page(all), counts: { ...file.reader.counts(), owners: 0 } };
    expect(after).toEqual(before);
    expect(file.reader.tip()?.height).toBe(14);
    expect(file.faults()).toEqual([]);
    grow();
    expect(file.reader.tip()?.height).toBe(15);
    expect(file.faults()).toEqual([]);
  });

  test("of everything leaves an empty index", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    for (let count = 0; count < 30; count += 1) chain.add({ transactions: [{}, {}] });
    expect(chain.rollback(0)).toEqual({ blocks: 30, rows: 60 });
    expect(file.reader.tip()).toBeUndefined();
    expect(file.reader.page(all)).toEqual({ rows: [], hasNextPage: false });
    expect(file.faults()).toEqual([]);
  });

  test("above the tip changes nothing", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    chain.add({ transactions: [{}] });
    expect(file.writer.rollback(11)).toEqual({ blocks: 0, rows: 0 });
    expect(file.reader.tip()?.height).toBe(10);
  });
});

/** An empty block after the tip. */
function blockAfter(reader: IndexReader): BlockRows {
  const tip = reader.tip();
  const block = blockOf(random, { height: (tip?.height ?? -1) + 1, previous: tip?.hash ?? "" });
  return { block, transactions: [], missing: [], bundles: [] };
}

describe("restart", () => {
  test("rows, keys, places of pending rows and bundles in progress are restored", () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/index.sqlite`;
    const clock = (): number => 1_700_000_000_000;
    const first = openIndexWriter(path, { clock });
    const chain = growingChain(first, random, owner);
    const { transactions } = chain.add({ transactions: [bundle], bundles: queueAll });
    const place = { height: 10, txIndex: 0, offset: -1 };
    first.takeBundle();
    first.addItems({ bundle: place, rows: itemsOf(10, 0, 5), firstEntry: 0, nextEntry: 5, bundles: [] });
    first.addPending([pendingOf(random, owner)]);
    first.close();

    const second = openIndexWriter(path, { clock });
    const reader = openIndexReader(path);
    expect(second.takeBundle()).toMatchObject({
      id: transactions[0]?.id ?? "",
      nextEntry: 5,
      matchedCount: 5,
      attempts: 1,
    });
    const late = pendingOf(random, owner);
    second.addPending([late]);
    const rows = reader.page(all).rows;
    expect(rows.length).toBe(8);
    expect(rows.at(-1)?.id).toBe(late.id);
    expect(reader.page({ ...all, owners: [owner.address] }).rows.length).toBe(8);
    reader.close();
    second.close();
  });

  test("invalid items of an earlier release stay, and their number is known once the bundle is read again", () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/index.sqlite`;
    const options = { clock: () => 1_700_000_000_000 };
    const first = openIndexWriter(path, options);
    const chain = growingChain(first, random, owner);
    const { transactions } = chain.add({ transactions: [bundle], bundles: queueAll });
    const id = transactions[0]?.id;
    if (id === undefined) throw new Error("the block has a bundle");
    const ref = { height: 10, txIndex: 0, offset: -1, id };
    const invalid = [{ entry: 1, offset: 900, id, reason: "signature" }];
    const rows = itemsOf(10, 0, 5);
    first.takeBundle();
    first.addItems({ bundle: ref, rows, firstEntry: 0, nextEntry: 6, bundles: [], invalid });
    first.close();
    const db = new Database(path);
    for (const column of ["invalid_item_count", "next_invalid"]) db.run(`ALTER TABLE bundles DROP COLUMN ${column}`);
    db.run("DROP TABLE part_ids");
    db.run("ALTER TABLE parts DROP COLUMN id_buckets");
    const earlier = indexMigrations.slice(
      0,
      indexMigrations.findIndex((script) => script.includes("next_invalid")),
    );
    db.run("UPDATE schema_version SET version = ?", [earlier.length]);
    db.run("UPDATE schema_fingerprint SET fingerprint = ?", [schemaFingerprint(earlier)]);
    db.close();

    const second = openIndexWriter(path, options);
    const reader = openIndexReader(path);
    expect(reader.invalidItems(id, 0, 10)).toEqual({ itemCount: null, invalidCount: null, items: invalid });
    expect(second.takeBundle()).toMatchObject({ id, nextEntry: 0, matchedCount: 0 });
    second.addItems({ bundle: ref, rows, firstEntry: 0, nextEntry: 6, bundles: [], invalid });
    second.finishBundle(ref, { unbundleFilter: '{"always":true}', indexFilter: '{"always":true}', itemCount: 6 });
    expect(reader.invalidItems(id, 0, 10)).toEqual({ itemCount: 6, invalidCount: 1, items: invalid });
    reader.close();
    second.close();
    expect(inspectIndex(path).faults).toEqual([]);
  });

  test("an index of the first version is migrated with all rows, which are sealed later", () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/index.sqlite`;
    const options = { clock: () => 1_700_000_000_000, partSizes: { ...partSizesDefault, sealRows: 10 } };
    const first = openIndexWriter(path, { ...options, partSizes: partSizesDefault });
    const chain = growingChain(first, random, owner);
    for (let count = 0; count < 40; count += 1) chain.add({ transactions: [{ tags: [tagOf("n", "x")] }, {}] });
    first.close();
    const db = new Database(path);
    const later = ["unsealed", "parts", "part_places", "part_rare", "part_ids", "part_lists", "part_keys"];
    for (const table of [
      ...later,
      "pending_signatures",
      "pruned_items",
      "content_types",
      "bundle_passes",
      "stored_partitions",
      "changes",
    ])
      db.run(`DROP TABLE ${table}`);
    db.run("DROP INDEX duplicates_of_bundle");
    for (const column of ["next_duplicated INTEGER NOT NULL DEFAULT 0", "duplicated_data_item_count INTEGER"])
      db.run(`ALTER TABLE bundles ADD COLUMN ${column}`);
    for (const column of ["invalid_item_count", "next_invalid"]) db.run(`ALTER TABLE bundles DROP COLUMN ${column}`);
    db.run("UPDATE schema_version SET version = 1");
    db.run("UPDATE schema_fingerprint SET fingerprint = ?", [schemaFingerprint(indexMigrations.slice(0, 1))]);
    db.close();

    const second = openIndexWriter(path, options);
    const reader = openIndexReader(path);
    const tagged: PagePlan = { ...all, tags: [{ name: "n", values: ["x"], op: "EQ" }] };
    expect(reader.page(tagged).rows.length).toBe(40);
    for (let height = 50; height < 60; height += 1) second.addBlock(blockAfter(reader));
    expect(reader.page(tagged).rows.length).toBe(40);
    reader.close();
    second.close();
    expect(inspectIndex(path).faults).toEqual([]);
    const sealed = new Database(path);
    expect(sealed.query("SELECT count(*) AS n FROM unsealed").get()).not.toEqual({ n: 80 });
    sealed.close();
  });

  test("opening an index without a writer, or a file that is not a database, fails with a clear message", async () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/index.sqlite`;
    expect(() => openIndexReader(path)).toThrow(`cannot open the database ${path}`);
    await Bun.write(path, "this is not a database, but it is long enough to look like a page of one".repeat(50));
    expect(() => openIndexWriter(path, { clock: () => 0 })).toThrow(`cannot open the database ${path}`);
  });
});
