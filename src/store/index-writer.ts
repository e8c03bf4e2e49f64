/**
 * The one writer of the index: blocks, items, bundles and pending rows, each call one database transaction.
 *
 * Exactly one thread of one process may hold it (workers/index.ts); readers open their own (index-reader.ts).
 * A call that throws leaves the database as it was.
 * Source: design.md §2.3, §2.4, §6.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import type { Place } from "./place.ts";
import type { BlockRows, BundleJob, BundleRow, ItemRow, PendingRow, TransactionRow } from "./rows.ts";

/** What a batch of items became. */
export type ItemsAdded = Readonly<{
  /** Rows that are new to the index and stand at their canonical place. */
  added: number;
  /** Rows whose id stands at a lower place already; kept apart. */
  duplicated: number;
  /** Rows that were there before, at the same place: a step that was repeated. */
  repeated: number;
}>;

/** A batch of verified items of one bundle, and how far the bundle is done after it. */
export type ItemBatch = Readonly<{
  bundle: Place;
  /** In any order; `bun:jsc` serialised `ItemRow[]` is taken as it is. */
  rows: readonly ItemRow[] | ArrayBuffer;
  /** The first entry of the bundle that is not in this batch or one before it. */
  nextEntry: number;
  /** Bundles found among the items; queued in the same transaction. */
  bundles: readonly BundleRow[];
}>;

/** The writer. Times are taken from its clock. */
export type IndexWriter = Readonly<{
  /**
   * Adds the block after the tip, with its transactions, the ids that are missing, and the bundles to queue.
   * The first block may have any height. Rows that are there already (queued by hand before) are kept.
   */
  addBlock: (rows: BlockRows) => void;
  /** Adds a block that is not followed (below the first one), for single transactions an operator asks for. */
  addStrayBlock: (rows: BlockRows) => void;
  /** Removes every block and row at or above a height; the ids' other places take over. In steps for deep ones. */
  rollback: (fromHeight: number) => Readonly<{ blocks: number; rows: number }>;
  /** Fills a transaction that was missing; false when that place is not missing (any more). */
  addMissingTransaction: (place: Place, row: TransactionRow, bundles: readonly BundleRow[]) => boolean;
  /** Notes one more failed attempt at a missing transaction. */
  postponeMissing: (place: Place, nextTryAtMs: number) => void;
  /** Adds items of a bundle and notes the bundle's progress. */
  addItems: (batch: ItemBatch) => ItemsAdded;
  /** Adds pending rows in arrival order; an id that the index has already is left alone. Answers how many were added. */
  addPending: (rows: readonly PendingRow[]) => number;
  /** Removes pending rows by id. */
  removePending: (ids: readonly Id[]) => number;
  /** Removes pending rows that were ingested before a time. Unix seconds. */
  expirePending: (beforeSeconds: number) => number;
  /** Queues bundles, or queues them again; answers how many were not queued already. */
  queueBundles: (bundles: readonly BundleRow[]) => number;
  /** Takes the bundle that is due first, or undefined. It is taken again after a crash. */
  takeBundle: () => BundleJob | undefined;
  /** The filter said no. */
  skipBundle: (bundle: Place, filters: BundleFilters) => void;
  /** Every entry was read and its items are in the index. `itemCount`: entries of the bundle, valid or not. */
  finishBundle: (bundle: Place, outcome: BundleFilters & Readonly<{ itemCount: number }>) => void;
  /** The bundle could not be done now; it is due again at that time. Null: never (the bundle itself is malformed). */
  failBundle: (bundle: Place, reason: string, nextTryAtMs: number | null) => void;
  /** Removes item rows of stable heights by time of ingestion; transactions stay. Bounds inclusive. */
  pruneItems: (
    bounds: Readonly<{ ingestedBeforeSeconds: number; startHeight: number; endHeight: number }>,
  ) => number;
  /** Lets the write-ahead log shrink; called when there is nothing to do. */
  checkpoint: () => void;
  close: () => void;
}>;

/** Canonical texts of the filters in force (arweave/filter.ts `canonical`). */
export type BundleFilters = Readonly<{ unbundleFilter: string; indexFilter: string }>;
