/**
 * Fills a columnar store with heights as they become final: each partition is exported, loaded and recorded.
 *
 * Partitions begin at multiples of their size, so that all gateways write the same partitions. A partition waits until
 * its bundles are unbundled. Each step may be repeated after a crash: files and loaded rows are replaced, and a
 * partition is recorded once. Items that are found later stay in the index.
 * Source: docs/reference/columnar.md.
 * @module
 */
import { blockHashBytes } from "../arweave/id.ts";
import { assert } from "../lib/assert.ts";
import type { IndexReader } from "../store/index/index-types.ts";
import type { IndexWriterCalls } from "../store/index/index-writer-calls.ts";
import type { PartitionWriter } from "./export-run.ts";
import type { PartitionHeights } from "./partition.ts";

export type StoreLoaderParts = Readonly<{
  reader: Pick<IndexReader, "block" | "counts" | "storedPartitions">;
  index: Pick<IndexWriterCalls, "addStoredPartition">;
  writer: PartitionWriter;
  /** Loads a partition of the folder into the store. */
  load: (partition: PartitionHeights) => Promise<void>;
  /** Folder of the exports that the store loads. */
  folder: string;
  /** Heights of a partition. */
  partitionHeights: number;
}>;

/** Loads the next partition. @returns Its heights; undefined when no partition is complete. */
export type LoadNext = () => Promise<PartitionHeights | undefined>;

export function createStoreLoader(parts: StoreLoaderParts): LoadNext {
  const { reader, index, writer, load, folder, partitionHeights } = parts;
  return async () => {
    const next = nextPartition(reader, partitionHeights);
    if (next === undefined || next.end > (await writer.stableHeight())) return undefined;
    if (!reader.storedPartitions.isSettled({ first: next.start, last: next.end })) return undefined;
    const block = reader.block(next.end);
    assert(block !== undefined, "the chain has its stable blocks");
    const request = { folder, ...next, maxFileRows: 0, skipL1Transactions: true, skipL1Tags: true };
    // One name for all attempts: an attempt after a crash keeps the files of a complete one.
    await writer.write({ ...request, runId: "store" });
    await load(next);
    const lastBlock = blockHashBytes(block.hash);
    const isAdded = await index.addStoredPartition({ first: next.start, last: next.end, lastBlock, foreignItems: 0 });
    return isAdded ? next : undefined;
  };
}

/** The first heights that no partition has; undefined while the index has no stable block. */
function nextPartition(reader: StoreLoaderParts["reader"], partitionHeights: number): PartitionHeights | undefined {
  const lowest = reader.counts().stable.minHeight;
  if (lowest === null) return undefined;
  const start = Math.max(lowest, reader.storedPartitions.nextHeight());
  return { start, end: (Math.floor(start / partitionHeights) + 1) * partitionHeights - 1 };
}
