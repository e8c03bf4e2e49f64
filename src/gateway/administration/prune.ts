/**
 * Removes index rows of stable data items that were indexed long ago. Transactions remain. A compact place of each item
 * remains: its content is still served by id, and still blocked where the block list has it.
 *
 * Each step removes a few blocks, so that indexing continues in between.
 * Source: docs/reference/gateway.md#exports-and-pruning.
 * @module
 */
import { explainError, Failure } from "../../failures.ts";
import { type IndexReader, stableDepth } from "../../store/index/index-types.ts";
import type { IndexWriterCalls } from "../../store/index/index-writer-calls.ts";

/** Selects the items indexed before a time, in a range of heights (inclusive). */
export type PruneOptions = Readonly<{
  /** Unix seconds. */
  indexedBefore: number;
  startHeight: number;
  endHeight: number;
}>;

export type PruneParts = Readonly<{
  reader: Pick<IndexReader, "tip" | "heightsWithItems">;
  index: Pick<IndexWriterCalls, "pruneItems" | "releaseSpace">;
}>;

/** Removes items and returns their number. Rejects with Failure `busy`, or with the signal's reason. */
export type Prune = (options: PruneOptions, signal: AbortSignal) => Promise<number>;

/** Items that one call of the writer reads, about 100 ms of its time; a larger block is read completely. */
const itemsPerStep = 10_000;

/** Blocks of one step; bounds the list of their heights. */
const blocksPerStep = 1_000;

export function createPrune({ reader, index }: PruneParts): Prune {
  return async ({ indexedBefore, startHeight, endHeight }, signal) => {
    const tip = reader.tip();
    if (tip === undefined) return 0;
    const last = Math.min(endHeight, tip.height - stableDepth);
    let removed = 0;
    let next = startHeight;
    while (next <= last) {
      signal.throwIfAborted();
      const step = reader.heightsWithItems(next, last, blocksPerStep);
      const end = lastOfStep(step);
      if (end === undefined) break;
      const bounds = { ingestedBeforeSeconds: indexedBefore, startHeight: next, endHeight: end };
      removed += await index.pruneItems(bounds);
      next = end + 1;
    }
    if (removed > 0) await releaseSpace(index, signal);
    return removed;
  };
}

/** Confirms rows by the columnar store. */
export type StoreConfirmation = Readonly<{
  /** Checks that the store has all rows of the partition that begins at a height. Rejects with the reason. */
  partition: (first: number, signal: AbortSignal) => Promise<void>;
  /** The places of items that the store has: upper and lower halves, alternating. */
  items: (
    request: Readonly<{ heights: Readonly<{ start: number; end: number }>; ingestedBefore: number }>,
    signal: AbortSignal,
  ) => Promise<Uint32Array>;
}>;

export type StoredPruneParts = Readonly<{
  reader: Pick<IndexReader, "heightsWithItems" | "storedPartitions">;
  index: Pick<IndexWriterCalls, "pruneStoredItems" | "releaseSpace">;
  confirm: StoreConfirmation;
}>;

/**
 * Removes only rows that the columnar store has confirmed, one by one. A partition that is not confirmed stays, and the
 * call rejects with Failure `columnar_store_unavailable` after the others are pruned.
 */
export function createStoredPrune({ reader, index, confirm }: StoredPruneParts): Prune {
  const pruneHeights = async (
    first: number,
    last: number,
    ingestedBefore: number,
    signal: AbortSignal,
  ): Promise<number> => {
    let removed = 0;
    for (let next = first; next <= last; ) {
      signal.throwIfAborted();
      const end = lastOfStep(reader.heightsWithItems(next, last, blocksPerStep));
      if (end === undefined) break;
      const places = await confirm.items({ heights: { start: next, end }, ingestedBefore }, signal);
      removed += await index.pruneStoredItems(places);
      next = end + 1;
    }
    return removed;
  };
  return async ({ indexedBefore, startHeight, endHeight }, signal) => {
    let removed = 0;
    const faults: unknown[] = [];
    for (const { first, last } of reader.storedPartitions.heights()) {
      if (last < startHeight || first > endHeight) continue;
      try {
        await confirm.partition(first, signal);
        removed += await pruneHeights(Math.max(first, startHeight), Math.min(last, endHeight), indexedBefore, signal);
      } catch (error) {
        signal.throwIfAborted();
        faults.push(error);
      }
    }
    if (removed > 0) await releaseSpace(index, signal);
    const [fault] = faults;
    if (fault === undefined) return removed;
    throw new Failure(
      "columnar_store_unavailable",
      { removed, partitions: faults.length, reason: explainError(fault) },
      fault,
    );
  };
}

/** Shrinks the file, in steps like the pruning itself. */
async function releaseSpace(index: Pick<IndexWriterCalls, "releaseSpace">, signal: AbortSignal): Promise<void> {
  while (await index.releaseSpace()) signal.throwIfAborted();
}

/** The last height of as many blocks as one step takes; undefined at the end. */
function lastOfStep(blocks: readonly Readonly<{ height: number; itemCount: number }>[]): number | undefined {
  let items = 0;
  let last: number | undefined;
  for (const { height, itemCount } of blocks) {
    if (last !== undefined && items + itemCount > itemsPerStep) break;
    items += itemCount;
    last = height;
  }
  return last;
}
