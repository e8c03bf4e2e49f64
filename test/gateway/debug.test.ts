/**
 * The debug record made from numbers: what is wrong is said in the words that importers of the peer know.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { createDebug } from "../../src/gateway/administration/debug.ts";
import { noHeights } from "../graphql/memory-index.ts";

const now = 1_700_000_000;
const counts = {
  owners: 1,
  transactions: 2,
  items: 3,
  nestedItems: 4,
  storedItems: 0,
  pendingTransactions: 5,
  pendingItems: 6,
  duplicates: 7,
  blocks: 8,
  missingTransactions: 9,
  bundles: 10,
  bundlesQueued: 11,
  bundlesFailed: 0,
  bundleItems: 13,
  matchedItems: 14,
  stable: noHeights,
  recent: noHeights,
};
const times = {
  bundleQueuedAt: null,
  bundleSkippedAt: null,
  bundleUnbundledAt: null,
  bundleFullyIndexedAt: null,
  recentItemIndexedAt: null,
  stableItemIndexedAt: null,
};

function recordOf(changed: Readonly<{ counts?: object; times?: object; concerns?: readonly string[] }> = {}) {
  const debug = createDebug({
    reader: {
      counts: () => ({ ...counts, ...changed.counts }),
      times: () => ({ ...times, ...changed.times }),
      tip: () => undefined,
      bundlePasses: () => [],
    },
    concerns: () => changed.concerns ?? [],
    stagedCount: () => 15,
    clock: () => now * 1_000 + 999,
  });
  return JSON.parse(JSON.stringify(debug())).db;
}

describe("the debug record", () => {
  test("of an empty index has −1 for absent heights, and no warning", () => {
    const { heights: found, timestamps, errors, warnings, counts: numbers } = recordOf();
    expect(new Set(Object.values(found))).toEqual(new Set([-1]));
    expect(timestamps).toEqual({
      now,
      maxBundleQueuedAt: -1,
      maxBundleSkippedAt: -1,
      maxBundleUnbundledAt: -1,
      maxBundleFullyIndexedAt: -1,
      maxNewDataItemIndexedAt: -1,
      maxStableDataItemIndexedAt: -1,
    });
    expect([errors, warnings]).toEqual([[], []]);
    expect(numbers).toEqual({
      wallets: 1,
      tagNames: -1,
      tagValues: -1,
      stableTxs: 0,
      stableBlocks: 0,
      stableBlockTxs: 0,
      missingStableBlocks: 0,
      missingStableTxs: 0,
      missingTxs: 9,
      newBlocks: 0,
      newTxs: 0,
      pendingTxs: 5,
      pendingDataItems: 6,
      bundleCount: 10,
      queuedBundles: 11,
      failedBundles: 0,
      bundleDataItems: 13,
      matchedDataItems: 14,
      dataItems: 3,
      nestedDataItems: 4,
      storedDataItems: 0,
      duplicates: 7,
      stagedTxs: 15,
    });
  });

  test("lists the missing stable blocks", () => {
    const stable = {
      ...noHeights,
      blocks: 9,
      blockTransactions: 30,
      transactions: 28,
      minHeight: 5,
      maxHeight: 14,
    };
    const { counts: numbers, errors } = recordOf({ counts: { stable } });
    expect(numbers).toMatchObject({ stableBlocks: 9, missingStableBlocks: 1, missingStableTxs: 2 });
    expect(errors).toEqual([
      "Stable block count (9) does not match stable block height range (5 to 14).",
      "Stable transaction count (28) does not match stable block transaction count (30).",
    ]);
  });

  test.each([
    [24 * 60 * 60, []],
    [24 * 60 * 60 + 1, ["Last bundle fully indexed more than 24 hours ago."]],
  ])("%p seconds after the last bundle it warns of %p", (seconds, expected) => {
    expect(recordOf({ times: { bundleFullyIndexedAt: now - seconds } }).warnings).toEqual(expected);
  });

  test("includes the concerns of indexing, and counts failed bundles", () => {
    const { warnings } = recordOf({ counts: { bundlesFailed: 3 }, concerns: ["the mempool: stopped"] });
    expect(warnings).toEqual(["Bundles that failed and wait or are set aside: 3.", "the mempool: stopped"]);
  });
});
