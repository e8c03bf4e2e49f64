/**
 * The debug record: what the index holds, how far it is, and what an operator should look at.
 *
 * All of it comes from numbers that are kept as they change, so that it costs the same for a hundred rows and
 * a billion.
 * Source: docs/reference/gateway.md#debug.
 * @module
 */
import { type Clock, unixSeconds } from "../../lib/clock.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { HeightCounts, IndexCounts, IndexReader, IndexTimes } from "../../store/index/types.ts";

/** What the record is made from. */
export type DebugOptions = Readonly<{
  reader: Pick<IndexReader, "counts" | "times" | "tip" | "bundlePasses">;
  /** What is wrong with indexing, in sentences. */
  concerns: () => readonly string[];
  /** Transactions that an operator asked for and that are not found yet. */
  stagedCount: () => number;
  clock: Clock;
}>;

/** Stands for what is not there, or is not counted. */
const absent = -1;

/** A gateway that unbundles and has finished nothing for so long has a problem. Seconds. */
const bundleSilenceMax = 24 * 60 * 60;

/** Creates the maker of debug records. */
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

/** Heights from the lowest to the highest, both counted. */
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
