/**
 * The only writer of the index: blocks, items, bundles and pending rows. Each call is one database transaction.
 *
 * Only one thread of one process may open it (workers/index.ts); readers use separate connections. A call that throws
 * leaves the database unchanged. Pruning removes item rows in steps, each a transaction; compact places remain.
 * Source: docs/reference/index-layout.md#inserting.
 * @module
 */
import { deserialize } from "bun:jsc";
import type { Database } from "bun:sqlite";
import { type BlockHash, blockHashBytes, type Id, idFromBytes } from "../../arweave/id.ts";
import { assert } from "../../lib/assert.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { type Clock, unixSeconds } from "../../lib/clock.ts";
import {
  closeDatabase,
  inTransaction,
  openForWriting,
  pageBytes,
  prepareQuery,
  releaseFreePages,
  setCache,
} from "../sqlite.ts";
import {
  type BundlePassBounds,
  type BundlePasses,
  type BundlePassStep,
  type BundleRange,
  createBundlePasses,
} from "./bundles/bundle-passes.ts";
import { type BundleRequestOutcome, type Bundles, createBundles } from "./bundles/bundle-table.ts";
import { type ChainTables, createChainTables, createPending, type Pending } from "./chain/chain-tables.ts";
import { createFilterKeys, createFilterSecret, type FilterKeys } from "./filter-key.ts";
import { createCounts } from "./index-counters.ts";
import { indexMigrations } from "./index-schema.ts";
import type {
  BlockChecks,
  BlockRows,
  BundleFilters,
  BundleJob,
  BundleRef,
  BundleRow,
  ImportedItemRow,
  InvalidItem,
  ItemRow,
  PendingRow,
  SerializedRows,
  TransactionRow,
  WeaveLayout,
} from "./index-types.ts";
import { createJournal, type Journal, type JournalSizes } from "./journal/journal.ts";
import { filterFolderOf, removeOtherFilters } from "./parts/part-filter.ts";
import { type PartMerges, type PartSizes, partSizesDefault } from "./parts/parts.ts";
import { type Place, packHeight, pendingHeight } from "./place.ts";
import { placeSql } from "./place-sql.ts";
import { createOwners } from "./rows/owner-numbers.ts";
import { encodeItems, encodeRows, readBatch } from "./rows/row-batch.ts";
import { createRowTable, type RowsAdded, type RowTable, removeInSteps } from "./rows/row-table.ts";
import { storedImport } from "./rows/stored-row.ts";
import { createStoredPartitions, type StoredPartition, type StoredPartitions } from "./stored-partitions.ts";

/** Outcome of a batch of items. */
type ItemsAdded = RowsAdded &
  Readonly<{
    /** Whether the bundle was removed meanwhile, or did not come as far as this batch: then nothing was added. */
    gone: boolean;
  }>;

/** Outcome of a batch of imported items. */
type ItemsImported = RowsAdded &
  Readonly<{
    /** Rows that were not added, because another item is at their place. */
    occupied: number;
  }>;

/** A block by height and hash: after a reorganization another block has its height. */
export type BlockRef = Readonly<{ height: number; hash: BlockHash }>;

/** A batch of verified items of one bundle, and the bundle's progress after it. */
type ItemBatch = Readonly<{
  bundle: BundleRef;
  /** In any order, or as `encodeItems` and `serializeBatch` of another thread returned them. */
  rows: readonly ItemRow[] | SerializedRows;
  /** The first entry of this batch. */
  firstEntry: number;
  /** The first entry of the bundle after this batch. */
  nextEntry: number;
  /** Bundles found among the items; queued in the same transaction. */
  bundles: readonly BundleRow[];
  /** Entries of this batch that are not valid items: the first ones, and the number of all. */
  invalid?: readonly InvalidItem[];
  invalidCount?: number;
}>;

/** The writer. Times come from its clock. */
export type IndexWriter = PartMerges &
  Readonly<{
    /**
     * Adds the block after the tip, with its transactions, missing ids, and bundles to queue.
     * The first block may have any height. Existing rows (queued by an operator before) stay unchanged.
     *
     * @param rows - As values, or serialized with `bun:jsc`.
     */
    addBlock: (rows: BlockRows | SerializedRows) => void;
    /** Adds successive blocks after the tip, as `addBlock` does, all of them or none. */
    addBlocks: (blocks: readonly (BlockRows | SerializedRows)[]) => void;
    /** Adds a block that is not followed (below the first one), for single transactions that an operator requests. */
    addStrayBlock: (rows: BlockRows) => void;
    /** Removes blocks and rows from a height on; other places of the ids become canonical. Runs in steps. */
    rollback: (fromHeight: number) => Readonly<{ blocks: number; rows: number }>;
    /** Adds a missing transaction; false when it is no longer missing in that block. */
    addMissingTransaction: (block: BlockRef, row: TransactionRow, bundles: readonly BundleRow[]) => boolean;
    /**
     * Sets the places of a block's transactions in the weave, once all of them are known; false when the block is no
     * longer at its height.
     *
     * @param checks - New lists of verified and unverified fields; absent: unchanged.
     */
    setWeaveLayout: (block: BlockRef, layout: WeaveLayout, checks?: BlockChecks) => boolean;
    /** Counts a failed attempt to fetch a missing transaction. */
    postponeMissing: (place: Place, id: Id, nextTryAtMs: number) => void;
    /** Makes a missing transaction due no later than that; false when it is not missing there. */
    hurryMissing: (place: Place, id: Id, nextTryAtMs: number) => boolean;
    /** Adds items of a bundle and stores the bundle's progress. */
    addItems: (batch: ItemBatch) => ItemsAdded;
    /**
     * Adds blocks after the tip as `addBlock` does, then items of these and earlier blocks, as another gateway verified
     * them. Rows at the same places stay unchanged.
     */
    addImported: (blocks: readonly BlockRows[], items: readonly ImportedItemRow[]) => ItemsImported;
    /** Adds pending rows in arrival order; ids that have a row stay unchanged. Returns how many were added. */
    addPending: (rows: readonly PendingRow[]) => number;
    /** Removes pending rows by id. */
    removePending: (ids: readonly Id[]) => number;
    /** Removes pending rows that were ingested before a time. Unix seconds. */
    expirePending: (beforeSeconds: number) => number;
    /** Removes announced items that were ingested before a time and never arrived. Unix seconds. */
    expireAnnounced: (beforeSeconds: number) => number;
    /** Queues a bundle, or queues it again. A bundle that a reorganisation has removed from its place is `gone`. */
    queueBundle: (bundle: BundleRow) => "queued" | "gone";
    /**
     * Queues a bundle that an operator requests. A bundle that is done with these filters stays done; its failed nested
     * bundles are queued instead. As `queueBundle`, it has no effect on a bundle that is `gone`.
     */
    requestBundle: (bundle: BundleRow, filters: BundleFilters) => BundleRequestOutcome;
    /** Takes the bundle that is due first; undefined when none is due. After a crash it is queued again. */
    takeBundle: () => BundleJob | undefined;
    /** Takes at most `limit` due bundles. */
    takeBundles: (limit: number) => readonly BundleJob[];
    /** Records that the filter excluded a bundle. This call and the next three ignore a bundle that was removed. */
    skipBundle: (bundle: BundleRef, filters: BundleFilters) => void;
    /**
     * Records that all items of a bundle are indexed; a bundle that did not come as far is queued again.
     *
     * @param outcome - `itemCount`: entries of the bundle, valid or not.
     */
    finishBundle: (bundle: BundleRef, outcome: BundleFilters & Readonly<{ itemCount: number }>) => void;
    /** Records a failure and the time of the next attempt; null for a malformed bundle: never. */
    failBundle: (bundle: BundleRef, reason: string, nextTryAtMs: number | null) => void;
    /** Queues a taken bundle again from its next entry; one in another state stays as it is. */
    releaseBundle: (bundle: BundleRef) => void;
    /** Evaluates all bundles again, unless the filters are those of the last call (bundle-passes.ts). */
    bundleFiltersChanged: (filters: BundleFilters) => boolean;
    /** Evaluates the bundles of a range of heights again; false when too many ranges wait. */
    addBundleRange: (range: BundleRange) => boolean;
    /** Runs the next step of a pass. */
    stepBundlePass: (filters: BundleFilters, bounds: BundlePassBounds) => BundlePassStep;
    /** Removes item rows of stable heights by time of ingestion; their compact places and transactions stay. */
    pruneItems: (bounds: PruneBounds) => number;
    /** Records a partition of the columnar store; false when heights overlap or its last block is not on the chain. */
    addStoredPartition: (partition: StoredPartition) => boolean;
    /** As `pruneItems`, for items that the columnar store has. @param places - Upper and lower halves, alternating. */
    pruneStoredItems: (places: Uint32Array) => number;
    /** Removes some postings that earlier releases left (postings.ts). @returns Whether more may follow. */
    sweepPostings: () => boolean;
    /**
     * Returns some of the space of removed rows to the file system, unless an earlier release made the file.
     *
     * @returns Whether there is more.
     */
    releaseSpace: () => boolean;
    /** Folds the log into the file as far as possible without waiting for readers; called when idle. */
    checkpoint: () => void;
    close: () => void;
  }>;

type IndexWriterOptions = Readonly<{
  clock: Clock;
  /** Page cache, bytes; by default it grows with the index. */
  cacheBytes?: number;
  /** Thresholds for sealing rows into parts of the posting index, and for merging parts. */
  partSizes?: PartSizes;
  /** Bounds of the journal of changes. */
  journalSizes?: JournalSizes;
}>;

/** An eighth of the file, so that what a young index takes does not grow as fast as the index does. Bytes. */
const cacheSizes = { fileShare: 8, min: 2 * 2 ** 20, max: 64 * 2 ** 20 } as const;
/**
 * Pages of the log at which the writer folds it into the file itself: 64 MB. The thread of the merges has usually done
 * most of that by then; what is left takes few milliseconds, and lets the log begin anew.
 */
const checkpointPages = 8_000;
/** A rollback removes complete blocks, about this many rows at a time: bounds the write-ahead log. */
const rollbackRows = 20_000;

/**
 * Creates an index that is absent, and migrates one of an earlier release: then readers can be opened.
 *
 * @returns Closes the file.
 */
export function prepareIndex(path: string): () => void {
  const db = openForWriting(path, { migrations: indexMigrations, synchronous: "NORMAL", cacheBytes: cacheSizes.min });
  inTransaction(db, () => secretOf(db));
  return () => closeDatabase(db);
}

/**
 * Opens the index for writing; creates it when absent.
 *
 * @throws Error when the file is damaged or has a newer version.
 */
export function openIndexWriter(path: string, options: IndexWriterOptions): IndexWriter {
  const { clock, cacheBytes = cacheSizes.min, partSizes = partSizesDefault } = options;
  const db = openForWriting(path, { migrations: indexMigrations, synchronous: "NORMAL", cacheBytes, checkpointPages });
  const fitCache = options.cacheBytes === undefined ? createCacheFitting(db) : () => undefined;
  fitCache();
  const counts = createCounts(db);
  const owners = createOwners(db, counts);
  /** Runs one call as one transaction; discards cached changes when it fails. */
  const step = <Result>(work: () => Result): Result => {
    try {
      return inTransaction(db, () => {
        const result = work();
        counts.flush();
        journal.flush();
        return result;
      });
    } catch (error) {
      counts.discard();
      journal.discard();
      owners.discard();
      rows.discard();
      throw error;
    }
  };
  const keys = inTransaction(db, () => createFilterKeys(secretOf(db)));
  const journal = createJournal(db, clock, options.journalSizes);
  const rows = createRowTable({ db, keys, owners, counts, journal, partSizes });
  const chain = createChainTables({ db, keys, rows, counts, journal });
  const bundles = createBundles(db, counts, clock);
  const partitions = createStoredPartitions(db, counts);
  const pending = createPending({ db, keys, rows, chain, counts });
  step(bundles.resume);

  const passes = createBundlePasses(db, counts, clock);
  const names = prepareQuery<{ filter: string }>(db, "SELECT filter FROM parts WHERE filter IS NOT NULL");
  removeOtherFilters(filterFolderOf(path), new Set(names.all().map(({ filter }) => filter)));
  const parts: Parts = { db, keys, step, rows, chain, bundles, passes, pending, partitions, journal, clock };

  return {
    ...chainSteps(parts),
    ...bundleSteps(parts),
    addStoredPartition: (partition) =>
      step(() => {
        const isAdded = partitions.add(partition);
        // Its items are listed from now on; the writer has only their number.
        if (isAdded && partition.foreignItems > 0) journal.reset();
        return isAdded;
      }),
    pruneStoredItems: createStoredPruning(step, rows),
    ...mergeSteps(step, rows, fitCache),
    releaseSpace: () => releaseFreePages(db),
    checkpoint: () => {
      db.run("PRAGMA wal_checkpoint(PASSIVE)");
    },
    close: () => closeDatabase(db),
  };
}

/** Sets the page cache to its share of the file. */
function createCacheFitting(db: Database): () => void {
  const pages = prepareQuery<{ page_count: number }>(db, "PRAGMA page_count");
  return () => {
    const bytes = ((pages.get()?.page_count ?? 0) * pageBytes) / cacheSizes.fileShare;
    setCache(db, Math.min(cacheSizes.max, Math.max(cacheSizes.min, bytes)));
  };
}

function mergeSteps(
  step: <Result>(work: () => Result) => Result,
  { merges, sweep }: RowTable,
  fitCache: () => void,
): PartMerges & Pick<IndexWriter, "sweepPostings"> {
  return {
    beginMerge: (within) => {
      // Often, but not between all the steps of a merge.
      if (within === undefined) fitCache();
      return step(() => merges.beginMerge(within));
    },
    addMerged: (part, bodies) => step(() => merges.addMerged(part, bodies)),
    endMerge: (merge, merged, filter) => step(() => merges.endMerge(merge, merged, filter)),
    setFilter: (part, filter) => step(() => merges.setFilter(part, filter)),
    dropReplaced: () => step(merges.dropReplaced),
    sweepPostings: () => step(sweep),
  };
}

type Parts = Readonly<{
  db: Database;
  keys: FilterKeys;
  step: <Result>(work: () => Result) => Result;
  rows: RowTable;
  chain: ChainTables;
  bundles: Bundles;
  passes: BundlePasses;
  pending: Pending;
  partitions: StoredPartitions;
  journal: Journal;
  clock: Clock;
}>;

/** Adds imported items in the writer's transaction; none at the place of another item. */
function createImportedItems({ db, keys, rows, clock }: Parts): (items: readonly ImportedItemRow[]) => ItemsImported {
  const present = prepareQuery<{ id: Uint8Array }>(
    db,
    ["items", "duplicates"]
      .map((table) => `SELECT id FROM ${table} WHERE n = ${placeSql("?1", "?2")}`)
      .join(" UNION ALL "),
  );
  return (items) => {
    const taken = new Map<string, Id>();
    const free = items.map(storedImport).filter(({ high, low, id }) => {
      const place = `${high} ${low}`;
      const known = present.get(high, low)?.id;
      const occupant = known === undefined ? (taken.get(place) ?? id) : idFromBytes(known);
      taken.set(place, occupant);
      return occupant === id;
    });
    const outcome = rows.add(encodeRows(free, keys), unixSeconds(clock));
    rows.seal();
    return { ...outcome, occupied: items.length - free.length };
  };
}

type ChainSteps = Pick<
  IndexWriter,
  | "addBlock"
  | "addBlocks"
  | "addImported"
  | "addStrayBlock"
  | "rollback"
  | "addMissingTransaction"
  | "setWeaveLayout"
  | "postponeMissing"
  | "hurryMissing"
  | "addPending"
  | "removePending"
  | "expirePending"
  | "expireAnnounced"
>;

function rowsOf(given: BlockRows | SerializedRows): BlockRows {
  return isSerialized(given) ? readBlockRows(given) : given;
}

function chainSteps(parts: Parts): ChainSteps {
  const { db, step, rows, chain, bundles, pending, partitions, journal, clock } = parts;
  const tip = prepareQuery<{ height: number }>(
    db,
    "SELECT height FROM blocks WHERE followed = 1 ORDER BY height DESC LIMIT 1",
  );
  const nextRemoval = createRemovalSteps(db);
  const removeFrom = (height: number): Readonly<{ blocks: number; rows: number }> => {
    // The journal names the bundles of the items that are removed.
    const removed = chain.removeFrom(height);
    bundles.remove(packHeight(height), packHeight(pendingHeight) - 1n);
    partitions.cutAt(height);
    return removed;
  };
  const isFollowed = ({ height, hash }: BlockRef): boolean => {
    const known = chain.known(height);
    return known !== undefined && encodeBase64url(known.hash) === hash;
  };
  const addRows = ({ block, transactions, missing, bundles: queued }: BlockRows, followed: boolean): void => {
    chain.addBlock(block, followed);
    chain.addTransactions(block.height, transactions, unixSeconds(clock));
    for (const { txIndex, id } of missing) chain.addMissing({ height: block.height, txIndex, offset: -1 }, id, clock());
    bundles.queue(queued);
  };

  const addFollowed = (block: BlockRows): void => {
    const before = tip.get();
    const { height, hash, previous } = block.block;
    assert(before === undefined || before.height + 1 === height, "the height of a block is the tip's plus 1");
    // A reorganization may have removed a block that an operator added.
    if (chain.known(height) !== undefined && !isFollowed({ height, hash })) removeFrom(height);
    addRows(block, true);
    partitions.checkBlock(height, blockHashBytes(hash), previous === "" ? null : blockHashBytes(previous));
    rows.seal();
  };
  const addImportedItems = createImportedItems(parts);

  return {
    addBlock: (given) => step(() => addFollowed(rowsOf(given))),
    addBlocks: (given) =>
      step(() => {
        for (const block of given) addFollowed(rowsOf(block));
      }),
    addImported: (blocks, items) =>
      step(() => {
        journal.reset();
        for (const block of blocks) addFollowed(block);
        return addImportedItems(items);
      }),
    addStrayBlock: (block) => step(() => addRows(block, false)),
    rollback: (fromHeight) => {
      const removed = { blocks: 0, rows: 0 };
      for (;;) {
        const height = nextRemoval(fromHeight);
        if (height === undefined) return removed;
        const { blocks, rows } = step(() => removeFrom(height));
        removed.blocks += blocks;
        removed.rows += rows;
      }
    },
    addMissingTransaction: (block, row, queued) =>
      step(() => {
        const place = { height: block.height, txIndex: row.txIndex, offset: -1 };
        if (!isFollowed(block) || !chain.foundMissing(place, row.id)) return false;
        chain.addTransactions(block.height, [row], unixSeconds(clock));
        bundles.queue(queued);
        return true;
      }),
    setWeaveLayout: (block, layout, checks) =>
      step(() => {
        if (!isFollowed(block)) return false;
        chain.setWeaveLayout(block.height, layout);
        if (checks !== undefined) chain.setChecks(block.height, checks);
        return true;
      }),
    postponeMissing: (place, id, nextTryAtMs) => step(() => chain.postponeMissing(place, id, nextTryAtMs)),
    hurryMissing: (place, id, nextTryAtMs) => step(() => chain.hurryMissing(place, id, nextTryAtMs)),
    addPending: (added) => step(() => pending.add(added, unixSeconds(clock))),
    removePending: (ids) => step(() => pending.remove(ids)),
    expirePending: (beforeSeconds) => step(() => pending.expire(beforeSeconds)),
    expireAnnounced: (beforeSeconds) => step(() => pending.expireAnnounced(beforeSeconds)),
  };
}

type BundleSteps = Pick<
  IndexWriter,
  | "addItems"
  | "queueBundle"
  | "requestBundle"
  | "takeBundle"
  | "takeBundles"
  | "skipBundle"
  | "finishBundle"
  | "failBundle"
  | "releaseBundle"
  | "pruneItems"
  | "bundleFiltersChanged"
  | "addBundleRange"
  | "stepBundlePass"
>;

function bundleSteps({ db, keys, step, rows, bundles, passes, clock }: Parts): BundleSteps {
  return {
    addItems: (batch) =>
      step(() => {
        if (!bundles.has(batch.bundle, batch.firstEntry)) return { added: 0, duplicated: 0, repeated: 0, gone: true };
        const items = isSerialized(batch.rows) ? readBatch(batch.rows, keys) : encodeItems(batch.rows, keys);
        const outcome = rows.add(items, unixSeconds(clock));
        const { bundle, nextEntry, invalid = [], invalidCount = invalid.length } = batch;
        bundles.advance(bundle, { nextEntry, matched: items.count, invalid, invalidCount });
        bundles.queue(batch.bundles);
        rows.seal();
        return { ...outcome, gone: false };
      }),
    bundleFiltersChanged: (filters) => step(() => passes.filtersChanged(filters)),
    addBundleRange: (range) => step(() => passes.add(range)),
    stepBundlePass: (filters, bounds) => step(() => passes.step(filters, bounds)),
    queueBundle: (bundle) =>
      step(() => {
        if (!bundles.isThere(bundle)) return "gone";
        bundles.queue([bundle]);
        return "queued";
      }),
    requestBundle: (bundle, filters) => step(() => bundles.request(bundle, filters)),
    takeBundle: () => step(() => bundles.take(1)[0]),
    takeBundles: (limit) => step(() => bundles.take(limit)),
    skipBundle: (bundle, filters) => step(() => bundles.skip(bundle, filters)),
    finishBundle: (bundle, outcome) => step(() => bundles.finish(bundle, outcome, outcome.itemCount)),
    failBundle: (bundle, reason, nextTryAtMs) => step(() => bundles.fail(bundle, reason, nextTryAtMs)),
    releaseBundle: (bundle) => step(() => bundles.release(bundle)),
    pruneItems: createPruning(db, step, rows),
  };
}

/** Returns the first height of the next step of a rollback; undefined when no block is left. */
function createRemovalSteps(db: Database): (fromHeight: number) => number | undefined {
  const newest = prepareQuery<{ height: number; weight: number }>(
    db,
    `SELECT height, stored_count + item_count AS weight FROM blocks WHERE height >= ?
     ORDER BY height DESC LIMIT 1000`,
  );
  return (fromHeight) => {
    let height: number | undefined;
    let weight = 0;
    for (const block of newest.all(fromHeight)) {
      height = block.height;
      weight += block.weight;
      if (weight >= rollbackRows) break;
    }
    return height;
  };
}

function secretOf(db: Database): Uint8Array {
  const found = prepareQuery<{ value: Uint8Array }>(db, "SELECT value FROM meta WHERE name = 'filter_secret'").get();
  if (found !== undefined) return found.value;
  const secret = createFilterSecret();
  db.run("INSERT INTO meta VALUES ('filter_secret', ?)", [secret]);
  return secret;
}

function isSerialized(rows: object): rows is SerializedRows {
  return rows instanceof ArrayBuffer || rows instanceof SharedArrayBuffer;
}

function readBlockRows(serialized: SerializedRows): BlockRows {
  const rows: unknown = deserialize(serialized);
  assert(typeof rows === "object" && rows !== null && "block" in rows, "serialized rows of a block have it");
  return rows as BlockRows;
}

/** Which item rows are removed. Heights are inclusive. */
type PruneBounds = Readonly<{
  ingestedBeforeSeconds: number;
  startHeight: number;
  endHeight: number;
}>;

const prunedSql = "n BETWEEN ? AND ? AND sig > 0 AND ingested < ?";

/** Creates the pruning of one database; it returns how many rows were removed. @param step - Runs a transaction. */
function createPruning(
  db: Database,
  step: (work: () => number) => number,
  rows: Pick<RowTable, "prune" | "pruneDuplicates">,
): (bounds: PruneBounds) => number {
  const heightsWithItems = prepareQuery<{ height: number }>(
    db,
    "SELECT height FROM blocks WHERE item_count > 0 AND height BETWEEN ? AND ?",
  );
  return ({ ingestedBeforeSeconds, startHeight, endHeight }) => {
    const lastHeight = Math.min(endHeight, pendingHeight - 1);
    if (startHeight > lastHeight) return 0;
    const inSteps = (prune: RowTable["prune"], first: number, last: number): number => {
      const bounds = [packHeight(first), packHeight(last + 1) - 1n, ingestedBeforeSeconds];
      return removeInSteps((limit) => step(() => prune(prunedSql, bounds, limit)));
    };
    inSteps(rows.pruneDuplicates, startHeight, lastHeight);
    return heightsWithItems
      .all(startHeight, lastHeight)
      .reduce((sum, { height }) => sum + inSteps(rows.prune, height, height), 0);
  };
}

/** Rows of one transaction: bounds memory and the time that readers of the log wait. */
const storedRowsPerStep = 5_000;

/** Creates the pruning of rows that the columnar store has; it returns how many rows were removed. */
function createStoredPruning(
  step: (work: () => number) => number,
  rows: Pick<RowTable, "pruneStored">,
): (places: Uint32Array) => number {
  return (places) => {
    let removed = 0;
    for (let at = 0; at < places.length; at += 2 * storedRowsPerStep) {
      const halves = places.subarray(at, at + 2 * storedRowsPerStep);
      const some = Array.from({ length: halves.length / 2 }, (_, pair) => ({
        high: halves[pair * 2] ?? 0,
        low: halves[pair * 2 + 1] ?? 0,
      }));
      removed += step(() => rows.pruneStored(some));
    }
    return removed;
  };
}
