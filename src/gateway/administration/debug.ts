/**
 * The debug record: contents of the index, progress, and warnings for the operator.
 *
 * All numbers are maintained as they change, so the cost does not depend on the number of rows.
 * Source: docs/reference/gateway.md#debug.
 * @module
 */
import { type Clock, unixSeconds } from "../../lib/clock.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { HeightCounts, IndexCounts, IndexReader, IndexTimes } from "../../store/index/index-types.ts";

export type DebugOptions = Readonly<{
  reader: Pick<IndexReader, "counts" | "times" | "tip" | "bundlePasses">;
  /** Faults of indexing, in sentences. */
  concerns: () => readonly string[];
  /** Transactions that an operator requested and that are not found yet. */
  stagedCount: () => number;
  clock: Clock;
}>;

/** Value of a field that is absent or not counted. */
const absent = -1;

/** A longer time without an indexed bundle is reported. Seconds. */
const bundleSilenceMax = 24 * 60 * 60;

export function createDebug({ reader, concerns, stagedCount, clock }: DebugOptions): () => JsonObject {
  return () => {
    const counts = reader.counts();
    const times = reader.times();
    const now = unixSeconds(clock);
    return {
      db: {
        counts: { ...countsRecord(counts), stagedTxs: stagedCount() },
        heights: heightsRecord(counts),
        timestamps: timesRecord(times, now),
        bundlePasses: reader.bundlePasses(),
        errors: errorsOf(counts.stable),
        warnings: [...warningsOf(counts, times, now), ...concerns()],
      },
    };
  };
}

function countsRecord(counts: IndexCounts): JsonObject {
  const { stable, recent } = counts;
  return {
    wallets: counts.owners,
    tagNames: absent, // tags are not counted apart from their rows
    tagValues: absent,
    stableTxs: stable.transactions,
    stableBlocks: stable.blocks,
    stableBlockTxs: stable.blockTransactions,
    missingStableBlocks: heightsIn(stable) - stable.blocks,
    missingStableTxs: stable.blockTransactions - stable.transactions,
    missingTxs: counts.missingTransactions,
    newBlocks: recent.blocks,
    newTxs: recent.transactions,
    pendingTxs: counts.pendingTransactions,
    pendingDataItems: counts.pendingItems,
    bundleCount: counts.bundles,
    queuedBundles: counts.bundlesQueued,
    failedBundles: counts.bundlesFailed,
    bundleDataItems: counts.bundleItems,
    matchedDataItems: counts.matchedItems,
    dataItems: counts.items,
    storedDataItems: counts.storedItems,
    nestedDataItems: counts.nestedItems,
    duplicates: counts.duplicates,
  };
}

function heightsRecord({ stable, recent }: IndexCounts): JsonObject {
  return {
    minStable: stable.minHeight ?? absent,
    maxStable: stable.maxHeight ?? absent,
    minNew: recent.minHeight ?? absent,
    maxNew: recent.maxHeight ?? absent,
    minStableDataItem: stable.minItemHeight ?? absent,
    maxStableDataItem: stable.maxItemHeight ?? absent,
    minNewDataItem: recent.minItemHeight ?? absent,
    maxNewDataItem: recent.maxItemHeight ?? absent,
  };
}

function timesRecord(times: IndexTimes, now: number): JsonObject {
  return {
    now,
    maxBundleQueuedAt: times.bundleQueuedAt ?? absent,
    maxBundleSkippedAt: times.bundleSkippedAt ?? absent,
    maxBundleUnbundledAt: times.bundleUnbundledAt ?? absent,
    maxBundleFullyIndexedAt: times.bundleFullyIndexedAt ?? absent,
    maxNewDataItemIndexedAt: times.recentItemIndexedAt ?? absent,
    maxStableDataItemIndexedAt: times.stableItemIndexedAt ?? absent,
  };
}

/** Number of heights, both ends included. */
function heightsIn({ minHeight, maxHeight }: HeightCounts): number {
  return minHeight === null || maxHeight === null ? 0 : maxHeight - minHeight + 1;
}

function errorsOf(stable: HeightCounts): string[] {
  const { blocks, blockTransactions, transactions, minHeight, maxHeight } = stable;
  const range = `stable block height range (${minHeight} to ${maxHeight})`;
  const named = `stable block transaction count (${blockTransactions})`;
  return [
    ...(blocks === heightsIn(stable) ? [] : [`Stable block count (${blocks}) does not match ${range}.`]),
    ...(transactions === blockTransactions
      ? []
      : [`Stable transaction count (${transactions}) does not match ${named}.`]),
  ];
}

function warningsOf(counts: IndexCounts, { bundleFullyIndexedAt }: IndexTimes, now: number): string[] {
  const isSilent = bundleFullyIndexedAt !== null && now - bundleFullyIndexedAt > bundleSilenceMax;
  return [
    ...(isSilent ? ["Last bundle fully indexed more than 24 hours ago."] : []),
    ...(counts.bundlesFailed > 0 ? [`Bundles that failed and wait or are set aside: ${counts.bundlesFailed}.`] : []),
  ];
}
