/**
 * States of bundles: each step and its effect on the status record.
 * @module
 */
import { describe, expect, test } from "bun:test";
import type { Id } from "../../../../src/arweave/id.ts";
import type { BundleRef, BundleRow, ItemRow } from "../../../../src/store/index/index-types.ts";
import { createRandom } from "../../../support/random.ts";
import { growingChain } from "../growing-chain.ts";
import { type IndexFile, indexFile } from "../index-file.ts";
import { bundleOf, idOf, itemOf, ownerOf, someFilters } from "../rows-of.ts";

const random = createRandom(5);
const owner = ownerOf(random);
const root = { height: 10, txIndex: 0, offset: -1 };

/** An index with one queued bundle; its id. */
function queued(file: IndexFile): Id {
  const { transactions } = growingChain(file.writer, random, owner).add({
    transactions: [{ dataSize: 1_000_000 }],
    bundles: (_height, rows) => rows.map(({ id, dataSize }) => bundleOf(root, id, dataSize)),
  });
  return transactions[0]?.id ?? idOf(random);
}

const nestedOf = (offset: number, id: Id = idOf(random)): BundleRow => ({
  id,
  place: { ...root, offset },
  parentOffset: null,
  headerSize: 130,
  size: 10_000,
  depth: 1,
  bypassFilter: false,
});

/** Queues bundles that were found in the root's data. */
function queueNested(file: IndexFile, id: Id, bundles: readonly BundleRow[]): void {
  file.writer.addItems({ bundle: { ...root, id }, rows: [], firstEntry: 0, nextEntry: 0, bundles });
}

describe("bundle states", () => {
  test("the entries under a root are counted on all levels since the root was last queued", () => {
    using file = indexFile();
    const id = queued(file);
    const entries = () => file.reader.entriesUnder(root);
    const advance = (bundle: BundleRef, nextEntry: number, bundles: BundleRow[] = []) =>
      file.writer.addItems({ bundle, rows: [], firstEntry: 0, nextEntry, bundles, invalid: [] });
    const nested = [nestedOf(96), nestedOf(20_096)] as const;
    const [first, second] = nested.map((row) => ({ ...row.place, id: row.id })) as [BundleRef, BundleRef];
    expect(entries()).toBe(0);
    for (const [time, sum] of [
      ["the first time", 3],
      ["and again, from nothing", 3],
    ] as const) {
      file.writer.takeBundle();
      advance({ ...root, id }, sum, [...nested]);
      expect([time, entries()]).toEqual([time, 3]);
      file.writer.finishBundle({ ...root, id }, { ...someFilters, itemCount: 3 });
      expect(entries()).toBe(3);
      file.writer.takeBundle();
      advance(first, 40);
      file.writer.finishBundle(first, { ...someFilters, itemCount: 40 });
      file.writer.takeBundle();
      advance(second, 500);
      file.writer.failBundle(second, "more than enough", null);
      expect(entries()).toBe(543);
      expect(file.reader.entriesUnder({ ...root, txIndex: 1 })).toBe(0);
      file.nowMs += 10_000;
      file.writer.queueBundle(bundleOf(root, id, 1_000_000));
      expect([time, entries()]).toEqual([time, 0]);
    }
  });

  test("queued, unbundled and indexed, with every field of the record", () => {
    using file = indexFile();
    const id = queued(file);
    expect(file.reader.bundleStatus(idOf(random))).toBeUndefined();
    expect(file.reader.nextBundleAt()).toBe(file.nowMs);
    expect(file.writer.takeBundle()).toEqual({
      ...bundleOf(root, id, 1_000_000),
      rootId: id,
      nextEntry: 0,
      attempts: 0,
      matchedCount: 0,
    });
    expect(file.writer.takeBundle()).toBeUndefined();
    expect(file.reader.nextBundleAt()).toBeUndefined();
    file.nowMs += 10_000;
    const item = itemOf(random, owner, { place: { ...root, offset: 96 } });
    file.writer.addItems({
      bundle: { ...root, id },
      rows: [item],
      firstEntry: 0,
      nextEntry: 3,
      bundles: [],
      invalid: [
        { entry: 2, offset: 500, id, reason: "signature" },
        { entry: 1, offset: 300, id: item.id, reason: "tags" },
      ],
    });
    file.writer.finishBundle({ ...root, id }, { ...someFilters, itemCount: 3 });
    expect(file.reader.bundleStatus(id)).toEqual({
      id,
      rootTransactionId: id,
      formatId: 1,
      unbundleFilterId: 1,
      indexFilterId: 1,
      previousUnbundleFilterId: null,
      previousIndexFilterId: null,
      dataItemCount: 3,
      matchedDataItemCount: 1,
      duplicatedDataItemCount: 0,
      importAttemptCount: 1,
      retryAttemptCount: 0,
      firstQueuedAt: 1_700_000_000,
      lastQueuedAt: 1_700_000_000,
      firstSkippedAt: null,
      lastSkippedAt: null,
      firstUnbundledAt: 1_700_000_010,
      lastUnbundledAt: 1_700_000_010,
      firstFullyIndexedAt: 1_700_000_010,
      lastFullyIndexedAt: 1_700_000_010,
      firstRetriedAt: null,
      lastRetriedAt: null,
    });
    expect(file.reader.invalidItems(id, 0, 10)?.items.map(({ entry, reason }) => [entry, reason])).toEqual([
      [1, "tags"],
      [2, "signature"],
    ]);
    expect(file.reader.counts()).toMatchObject({
      bundles: 1,
      bundlesQueued: 0,
      bundleItems: 3,
      matchedItems: 1,
    });
    expect(file.faults()).toEqual([]);
  });

  test("the first thousand invalid entries are listed and all are counted, and read again without doubling", () => {
    using file = indexFile();
    const id = queued(file);
    const invalidOf = (first: number, count: number, reason: string) =>
      Array.from({ length: count }, (_, index) => ({ entry: first + index, offset: 100, id: idOf(random), reason }));
    const unbundle = (batches: readonly (readonly [listed: number, all: number])[], reason: string) => {
      file.writer.takeBundle();
      let nextEntry = 0;
      for (const [listed, invalidCount] of batches) {
        const invalid = invalidOf(nextEntry, listed, reason);
        const entries = { firstEntry: nextEntry, nextEntry: nextEntry + 2_000 };
        file.writer.addItems({ bundle: { ...root, id }, rows: [], ...entries, bundles: [], invalid, invalidCount });
        nextEntry += 2_000;
      }
      expect(file.reader.invalidItems(id, 0, 1)?.invalidCount).toBe(null);
      file.writer.finishBundle({ ...root, id }, { ...someFilters, itemCount: nextEntry });
    };
    unbundle(
      [
        [600, 700],
        [0, 0],
        [600, 900],
      ].map(([listed = 0, all = 0]) => [listed, all] as const),
      "first",
    );
    const { itemCount, invalidCount, items = [] } = file.reader.invalidItems(id, 0, 5_000) ?? {};
    expect([itemCount, invalidCount, items.length]).toEqual([6_000, 1_600, 1_000]);
    expect([items[599]?.entry, items[600]?.entry, items.at(-1)?.entry]).toEqual([599, 4_000, 4_399]);
    expect(file.reader.invalidItems(id, 599, 2)?.items.map(({ entry }) => entry)).toEqual([599, 4_000]);
    expect(file.reader.invalidItems(idOf(random), 0, 1)).toBeUndefined();

    file.writer.queueBundle({ ...bundleOf(root, id, 1_000_000), bypassFilter: true });
    file.writer.takeBundle();
    const bundle = { ...root, id };
    file.writer.addItems({
      bundle,
      rows: [],
      firstEntry: 0,
      nextEntry: 3,
      bundles: [],
      invalid: invalidOf(1, 2, "second"),
    });
    file.writer.finishBundle(bundle, { ...someFilters, itemCount: 3 });
    const again = file.reader.invalidItems(id, 0, 5_000);
    expect(again?.invalidCount).toBe(2);
    expect(again?.items.map(({ entry, reason }) => [entry, reason])).toEqual([
      [1, "second"],
      [2, "second"],
    ]);
    expect(file.faults()).toEqual([]);
  });

  test("skipped, then queued again by an operator with other filters", () => {
    using file = indexFile();
    const id = queued(file);
    file.writer.takeBundle();
    file.writer.skipBundle(root, someFilters);
    expect(file.reader.bundleStatus(id)).toMatchObject({
      firstSkippedAt: 1_700_000_000,
      unbundleFilterId: 1,
    });
    expect(file.writer.takeBundle()).toBeUndefined();
    file.nowMs += 1_000;
    expect(file.reader.counts()).toMatchObject({ bundlesQueued: 0 });
    file.writer.queueBundle({ ...bundleOf(root, id, 1_000_000), bypassFilter: true });
    file.writer.queueBundle(bundleOf(root, id, 1_000_000));
    expect(file.reader.counts()).toMatchObject({ bundlesQueued: 1 });
    expect(file.writer.takeBundle()).toMatchObject({ bypassFilter: true, attempts: 1 });
    const other = { unbundleFilter: '{"never":true}', indexFilter: someFilters.indexFilter };
    file.writer.finishBundle(root, { ...other, itemCount: 0 });
    expect(file.reader.bundleStatus(id)).toMatchObject({
      unbundleFilterId: 2,
      indexFilterId: 1,
      previousUnbundleFilterId: 1,
      previousIndexFilterId: null,
      firstQueuedAt: 1_700_000_000,
      lastQueuedAt: 1_700_000_001,
      importAttemptCount: 2,
    });
    expect(file.faults()).toEqual([]);
  });

  test("a range with bypassed filters repeats bundles that are being unbundled with filters, and queues none twice", () => {
    using file = indexFile();
    const id = queued(file);
    const job = file.writer.takeBundle();
    const bundle = { ...root, id, bypassFilter: false };
    expect(file.writer.addBundleRange({ startHeight: 0, endHeight: 100, bypassFilter: true })).toBe(true);
    const bounds = { waitingMax: 10, readMax: 10 };
    expect(file.writer.stepBundlePass(someFilters, bounds)).toMatchObject({ queued: 1 });
    expect(job?.bypassFilter).toBe(false);
    expect(file.reader.counts()).toMatchObject({ bundles: 1, bundlesQueued: 1 });
    expect(file.writer.takeBundle()).toBeUndefined();
    file.writer.addItems({ bundle, rows: [], firstEntry: 0, nextEntry: 3, bundles: [] });
    file.writer.finishBundle(bundle, { ...someFilters, itemCount: 3 });
    expect(file.writer.takeBundle()).toMatchObject({ bypassFilter: true, nextEntry: 0, matchedCount: 0 });
    const again = { ...bundle, bypassFilter: true };
    file.writer.addItems({ bundle: again, rows: [], firstEntry: 0, nextEntry: 3, bundles: [] });
    file.writer.finishBundle(again, { ...someFilters, itemCount: 3 });
    expect(file.reader.counts()).toMatchObject({ bundles: 1, bundlesQueued: 0 });
    expect(file.faults()).toEqual([]);
  });

  test("a request for a done bundle queues only the failed bundles within it", () => {
    using file = indexFile();
    const id = queued(file);
    const [within, beside] = [nestedOf(5_000), nestedOf(200_096)];
    queueNested(file, id, [within, beside]);
    for (let count = 0; count < 3; count += 1) file.writer.takeBundle();
    const outer = { ...within, id: idOf(random), place: { ...root, offset: 96 }, size: 90_000 };
    queueNested(file, id, [outer]);
    file.writer.takeBundle();
    const refOf = (row: BundleRow) => ({ ...row.place, id: row.id, bypassFilter: false });
    file.writer.finishBundle({ ...root, id }, { ...someFilters, itemCount: 0 });
    file.writer.finishBundle(refOf(outer), { ...someFilters, itemCount: 0 });
    for (const row of [within, beside]) file.writer.failBundle(refOf(row), "malformed", null);
    expect(file.reader.counts()).toMatchObject({ bundlesQueued: 0, bundlesFailed: 2 });
    expect(file.writer.requestBundle(outer, someFilters)).toBe("queued");
    expect(file.reader.counts()).toMatchObject({ bundlesQueued: 1, bundlesFailed: 1 });
    expect(file.writer.takeBundle()).toMatchObject({ id: within.id });
    file.writer.finishBundle(refOf(within), { ...someFilters, itemCount: 0 });
    expect(file.writer.requestBundle(outer, someFilters)).toBe("done");
    const never = { ...someFilters, indexFilter: '{"never":true}' };
    expect(file.writer.requestBundle({ ...outer, bypassFilter: true }, never)).toBe("queued");
    expect(file.writer.takeBundle()).toMatchObject({ id: outer.id, bypassFilter: true });
    expect(file.faults()).toEqual([]);
  });

  test("failed, retried when due from its next entry, and given up when malformed", () => {
    using file = indexFile();
    const id = queued(file);
    file.writer.takeBundle();
    file.writer.addItems({
      bundle: root,
      rows: [itemOf(random, owner, { place: { ...root, offset: 96 } })],
      firstEntry: 0,
      nextEntry: 1,
      bundles: [],
    });
    file.writer.failBundle(root, "no source", file.nowMs + 60_000);
    expect(file.writer.takeBundle()).toBeUndefined();
    expect(file.reader.counts()).toMatchObject({ bundlesQueued: 0, bundlesFailed: 1 });
    expect(file.reader.nextBundleAt()).toBe(file.nowMs + 60_000);
    file.nowMs += 60_000;
    expect(file.writer.takeBundle()).toMatchObject({ nextEntry: 1, matchedCount: 1, attempts: 1 });
    expect(file.reader.bundleStatus(id)).toMatchObject({
      importAttemptCount: 2,
      retryAttemptCount: 1,
      firstRetriedAt: 1_700_000_060,
    });
    file.writer.failBundle(root, "no bundle", null);
    file.nowMs += 10 ** 9;
    expect(file.writer.takeBundle()).toBeUndefined();
    expect(file.reader.counts()).toMatchObject({ bundlesQueued: 0, bundlesFailed: 1 });
    expect(file.faults()).toEqual([]);
  });

  test("a nested bundle is queued once for each place, and both places have a row", () => {
    using file = indexFile();
    const rootId = queued(file);
    file.writer.takeBundle();
    const nested = nestedOf(5_000);
    const batch = {
      bundle: root,
      rows: [],
      firstEntry: 0,
      nextEntry: 1,
      bundles: [nested, nestedOf(9_000_064, nested.id)],
    };
    file.writer.addItems(batch);
    file.writer.addItems({ ...batch, firstEntry: 1 });
    const taken = file.writer.takeBundles(10);
    expect(taken.map(({ place }) => place.offset)).toEqual([5_000, 9_000_064]);
    expect(taken[0]).toEqual({ ...nested, rootId, nextEntry: 0, attempts: 0, matchedCount: 0 });
    expect(file.reader.bundleStatus(nested.id)?.rootTransactionId).toBe(rootId);
    expect(file.reader.counts()).toMatchObject({ bundles: 3, bundlesQueued: 3 });
    expect(file.faults()).toEqual([]);
  });

  test("an operator's requests come before waiting bundles", () => {
    using file = indexFile();
    const id = queued(file);
    file.nowMs += 1_000;
    queueNested(file, id, [{ ...nestedOf(640), bypassFilter: true }, nestedOf(320)]);
    const offsets = Array.from({ length: 4 }, () => file.writer.takeBundle()?.place.offset);
    expect(offsets).toEqual([640, -1, 320, undefined]);
  });

  test("steps of a removed or replaced bundle have no effect", () => {
    using file = indexFile();
    const id = queued(file);
    file.writer.takeBundle();
    const other = { ...root, id: idOf(random) };
    const rows = [itemOf(random, owner, { place: { ...root, offset: 96 } })];
    const step = { rows, firstEntry: 0, nextEntry: 1, bundles: [] };
    const nothing = { added: 0, duplicated: 0, repeated: 0, gone: true };
    expect(file.writer.addItems({ ...step, bundle: other })).toEqual(nothing);
    file.writer.finishBundle(other, { ...someFilters, itemCount: 1 });
    file.writer.skipBundle(other, someFilters);
    file.writer.failBundle(other, "late", null);
    expect(file.reader.bundleStatus(id)).toMatchObject({ lastUnbundledAt: null, lastSkippedAt: null });
    file.writer.rollback(10);
    expect(file.writer.addItems({ ...step, bundle: root })).toEqual(nothing);
    file.writer.finishBundle(root, { ...someFilters, itemCount: 1 });
    expect(file.reader.counts()).toMatchObject({ bundles: 0, bundlesQueued: 0, bundlesFailed: 0, items: 0 });
    expect(file.faults()).toEqual([]);
  });

  test("work on a bundle that a reorganization removed and added again neither skips entries nor ends it", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    const id = idOf(random);
    const bundle = { ...root, height: 11, id, bypassFilter: false };
    const addBundle = () =>
      chain.add({
        transactions: [{ id, dataSize: 1_000_000 }],
        bundles: () => [bundleOf({ ...root, height: 11 }, id, 1_000_000)],
      });
    const rows = [96, 400].map((offset) => itemOf(random, owner, { place: { ...root, height: 11, offset } }));
    const [first = [], second = []] = rows.map((row) => [row]);
    const add = (firstEntry: number, items: readonly ItemRow[]) =>
      file.writer.addItems({ bundle, rows: items, firstEntry, nextEntry: firstEntry + 1, bundles: [] }).gone;
    chain.add();
    addBundle();
    file.writer.takeBundle();
    expect(add(0, first)).toBe(false);
    chain.rollback(11);
    addBundle();
    expect(add(1, second)).toBe(true);
    file.writer.finishBundle(bundle, { ...someFilters, itemCount: 2 });
    expect(file.writer.takeBundle()).toMatchObject({ id, nextEntry: 0, attempts: 0 });
    // Another slot has taken it, and left it to the one that works on it.
    file.writer.finishBundle(bundle, { ...someFilters, itemCount: 2 });
    expect(file.writer.takeBundle()).toMatchObject({ id, nextEntry: 0, attempts: 1 });
    file.writer.releaseBundle({ ...bundle, id: idOf(random) });
    expect(file.writer.takeBundle()).toBeUndefined();
    file.writer.releaseBundle(bundle);
    expect(file.writer.takeBundle()).toMatchObject({ id, nextEntry: 0, attempts: 2 });
    expect([add(0, first), add(1, second)]).toEqual([false, false]);
    file.writer.finishBundle(bundle, { ...someFilters, itemCount: 2 });
    file.writer.releaseBundle(bundle);
    expect(file.writer.takeBundle()).toBeUndefined();
    expect(file.reader.counts()).toMatchObject({ items: 2, bundleItems: 2, bundlesQueued: 0 });
    expect(file.faults()).toEqual([]);
  });

  test("a bundle whose root transaction is missing waits for it, and is not due until then", () => {
    using file = indexFile();
    const id = idOf(random);
    const chain = growingChain(file.writer, random, owner);
    const bundles = () => [bundleOf(root, id, 5)];
    const { block } = chain.add({ missing: [{ txIndex: 0, id }], bundles });
    expect([file.writer.takeBundle(), file.reader.nextBundleAt()]).toEqual([undefined, undefined]);
    const late = chain.next({ transactions: [{ id }] }).transactions;
    for (const row of late) file.writer.addMissingTransaction(block, row, []);
    expect(file.reader.nextBundleAt()).toBe(file.nowMs);
    expect(file.writer.takeBundle()?.id).toBe(id);
  });

  test("a request for a bundle that has left its place queues nothing, also where another one is now", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    const gone = idOf(random);
    const place = { ...root, height: chain.add().block.height };
    const request = () => {
      const row = bundleOf(place, gone, 5);
      expect(file.writer.queueBundle(row)).toBe("gone");
      expect(file.writer.requestBundle({ ...row, bypassFilter: true }, someFilters)).toBe("gone");
    };
    request();
    expect([file.writer.takeBundle(), file.reader.nextBundleAt()]).toEqual([undefined, undefined]);
    chain.rollback(place.height);
    const there = idOf(random);
    chain.add({ transactions: [{ id: there }], bundles: () => [bundleOf(place, there, 7)] });
    request();
    expect(file.writer.takeBundle()).toMatchObject({ id: there, rootId: there, size: 7 });
    expect(file.writer.takeBundle()).toBeUndefined();
    expect(file.reader.bundleStatus(gone)).toBeUndefined();
    expect(file.faults()).toEqual([]);
  });
});

describe("times and counts", () => {
  test("are those of the newest events, and of the stable and the recent heights", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owner);
    for (let count = 0; count < 30; count += 1) {
      file.nowMs += 1_000;
      const { block } = chain.add({
        transactions: [{ dataSize: 1_000 }, {}],
        missing: [{ txIndex: 2, id: idOf(random) }],
        bundles: (height, rows) => rows.slice(0, 1).map(({ id }) => bundleOf({ ...root, height }, id, 1_000)),
      });
      const place = { ...root, height: block.height };
      const rows = [
        itemOf(random, owner, { place: { ...place, offset: 96 } }),
        itemOf(random, owner, { place: { ...place, offset: 400 }, parentOffset: 96 }),
      ];
      file.writer.addItems({ bundle: place, rows, firstEntry: 0, nextEntry: 2, bundles: [] });
    }
    // Heights 10 to 39: stable are those up to 39 − 18.
    expect(file.reader.counts()).toMatchObject({
      blocks: 30,
      blockTransactions: 90,
      transactions: 60,
      items: 60,
      nestedItems: 30,
      missingTransactions: 30,
      stable: {
        blocks: 12,
        blockTransactions: 36,
        transactions: 24,
        items: 24,
        minHeight: 10,
        maxHeight: 21,
        minItemHeight: 10,
        maxItemHeight: 21,
      },
      recent: {
        blocks: 18,
        blockTransactions: 54,
        transactions: 36,
        items: 36,
        minHeight: 22,
        maxHeight: 39,
        minItemHeight: 22,
        maxItemHeight: 39,
      },
    });
    expect(file.reader.times()).toEqual({
      bundleQueuedAt: 1_700_000_030,
      bundleSkippedAt: null,
      bundleUnbundledAt: null,
      bundleFullyIndexedAt: null,
      recentItemIndexedAt: 1_700_000_030,
      stableItemIndexedAt: 1_700_000_012,
    });
    expect(file.faults()).toEqual([]);
  });

  test("of an empty index are zero and unknown", () => {
    using file = indexFile();
    const nothing = { blocks: 0, items: 0, minHeight: null, maxHeight: null, minItemHeight: null };
    expect(file.reader.counts()).toMatchObject({ owners: 0, bundles: 0, stable: nothing, recent: nothing });
    expect(Object.values(file.reader.times())).toEqual([null, null, null, null, null, null]);
    expect(file.reader.nextBundleAt()).toBeUndefined();
  });
});
