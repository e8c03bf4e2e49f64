/**
 * Reads of the index, in any thread, through a read-only connection.
 *
 * Each call sees one state of the database. Calls are synchronous and short, except for `page` and `count`, which
 * belong in the query threads. Counts of the complete index are stored sums minus the rows of the newest blocks.
 * @module
 */
import type { Database } from "bun:sqlite";
import { type Id, idBytes, idFromBytes } from "../../arweave/id.ts";
import { assert } from "../../lib/assert.ts";
import {
  checkIntegrity,
  closeDatabase,
  inSnapshot,
  inSnapshotAcrossWaits,
  openForReading,
  prepareQuery,
} from "../sqlite.ts";
import { createBundlePassReads } from "./bundles/bundle-passes.ts";
import { createChainReads, createItemsWithin, createLocations } from "./chain/chain-reads.ts";
import { createFinalTexts } from "./chain/final-texts.ts";
import { createFilterKeys, filterSecretOf } from "./filter-key.ts";
import { createIdPlaces, type IdPlaces } from "./id-places.ts";
import { type CounterName, createCountsReader } from "./index-counters.ts";
import {
  type BundleRow,
  type BundleStatus,
  type HeightCounts,
  type IndexReader,
  type InvalidItemPage,
  type Located,
  stableDepth,
} from "./index-types.ts";
import { createJournalReads } from "./journal/journal.ts";
import { type WindowSizes, windowSizesDefault } from "./pages/page-sql.ts";
import { createPages } from "./pages/row-pages.ts";
import { createPartReads } from "./parts/part-reads.ts";
import { heightOfHigh, lastLow, type PlaceHalves, pendingHeight, placeHigh, placeLow, stepOf } from "./place.ts";
import { highSql, offsetSql, placeSql, rootSql } from "./place-sql.ts";
import { createStoredPartitionReads } from "./stored-partitions.ts";

export type IndexReaderOptions = Readonly<{
  /** Page cache, bytes. */
  cacheBytes?: number;
  /** Sizes of the steps of `page` and `count`. */
  windows?: WindowSizes;
}>;

/**
 * Small, because each thread has a reader and each fills its cache: the operating system has the pages in memory once
 * for all of them. Pages of ten kinds of queries take no more CPU than with 32 MiB (measured with 600,000 items).
 */
const cacheBytesDefault = 2 * 2 ** 20;
const integrityFaultsMax = 20;

/**
 * Opens the index for reading.
 *
 * @throws Error when the file does not exist yet (the writer creates it), or is damaged in its first pages.
 */
export function openIndexReader(path: string, options: IndexReaderOptions = {}): IndexReader {
  const db = openForReading(path, options.cacheBytes ?? cacheBytesDefault);
  const filterSecret = filterSecretOf(db, path);
  const keys = createFilterKeys(filterSecret);
  const chain = createChainReads(db);
  const parts = createPartReads(db);
  const ids = createIdPlaces(db, keys, parts);
  const locations = createLocations(db, ids);
  const pages = createPages({ db, keys, parts, ids }, options.windows ?? windowSizesDefault);
  const itemsWithin = createItemsWithin(db);
  const pendingSignature = prepareQuery<{ signature: Uint8Array }>(
    db,
    `SELECT signature FROM pending_signatures WHERE n = ${placeSql()}`,
  );
  const version = prepareQuery<{ data_version: number }>(db, "PRAGMA data_version");
  const { bundleRowAt, ...bundleReads } = createBundleReads(db);

  return {
    path,
    filterSecret,
    tip: chain.tip,
    block: chain.block,
    blockText: chain.blockText,
    blocks: chain.blocks,
    heightsWithItems: chain.heightsWithItems,
    ...createRecordReads(db, chain, ids),
    ...createFinalTexts(db, ids),
    pendingSignature: (place) => pendingSignature.get(placeHigh(place), placeLow(place))?.signature,
    locate: (id) => inSnapshot(db, () => locations.locate(id)),
    placeOf: locations.placeOf,
    placesOf: (id) => inSnapshot(db, () => locations.placesOf(id)),
    ownerKey: locations.ownerKey,
    row: pages.row,
    page: pages.page,
    encodedRow: pages.encodedRow,
    encodedPage: pages.encodedPage,
    count: pages.count,
    snapshot: (work) => inSnapshotAcrossWaits(db, work),
    itemsWithin: (root, start, end, limit) => inSnapshot(db, () => itemsWithin(root, start, end, limit)),
    version: () => version.get()?.data_version ?? 0,
    transactionAt: chain.transactionAt,
    weaveSpan: (id) => {
      const place = locations.placeOf(id);
      return place?.offset === -1 ? chain.weaveSpanAt(place) : undefined;
    },
    transactionsOfBlock: chain.transactionsOfBlock,
    dueMissing: chain.dueMissing,
    ...bundleReads,
    bundlePasses: createBundlePassReads(db),
    journal: createJournalReads(db),
    storedPartitions: createStoredPartitionReads(db, ids),
    bundleRow: (id) =>
      inSnapshot(db, () => {
        const located = locations.locate(id);
        return located === undefined ? undefined : bundleRowAt(located);
      }),
    ...sumsInSnapshot(db),
    integrity: () => checkIntegrity(db, integrityFaultsMax),
    close: () => closeDatabase(db),
  };
}

function createRecordReads(
  db: Database,
  chain: Pick<ReturnType<typeof createChainReads>, "block" | "tip" | "textAt">,
  ids: IdPlaces,
): Pick<IndexReader, "transactionStatus" | "transactionText" | "transactionRecord"> {
  const at = <Result>(id: Id, read: (place: PlaceHalves) => Result | undefined): Result | undefined =>
    inSnapshot(db, () => {
      const place = ids.find(idBytes(id));
      return place === undefined ? undefined : read(place);
    });
  /** Undefined for an item, and for what is in no block: only a transaction of a block has a lower half of 0. */
  const ofBlock = <Result>(id: Id, read: (place: PlaceHalves) => Result | undefined): Result | undefined =>
    at(id, (place) => (place.low === 0 ? read(place) : undefined));
  const statusAt = ({ high }: PlaceHalves): ReturnType<IndexReader["transactionStatus"]> => {
    const tip = chain.tip();
    const block = chain.block(heightOfHigh(high));
    // A block above the tip has only single transactions that an operator requested.
    if (block === undefined || tip === undefined || block.height > tip.height) return undefined;
    return { height: block.height, hash: block.hash, confirmations: tip.height - block.height + 1 };
  };
  return {
    transactionStatus: (id) => ofBlock(id, statusAt),
    transactionText: (id) => at(id, chain.textAt),
    transactionRecord: (id) =>
      ofBlock(id, (place) => {
        const status = statusAt(place);
        const stored = status === undefined ? undefined : chain.textAt(place);
        return status === undefined || stored === undefined ? undefined : { ...status, ...stored };
      }),
  };
}

function sumsInSnapshot(db: Database): Pick<IndexReader, "counts" | "times"> {
  const sums = createSums(db);
  return { counts: () => inSnapshot(db, sums.counts), times: () => inSnapshot(db, sums.times) };
}

/** Columns of the status record, as the specification names them. */
const statusColumns = [
  "formatId",
  "unbundleFilterId",
  "indexFilterId",
  "previousUnbundleFilterId",
  "previousIndexFilterId",
  "dataItemCount",
  "matchedDataItemCount",
  "importAttemptCount",
  "retryAttemptCount",
  "firstQueuedAt",
  "lastQueuedAt",
  "firstSkippedAt",
  "lastSkippedAt",
  "firstUnbundledAt",
  "lastUnbundledAt",
  "firstFullyIndexedAt",
  "lastFullyIndexedAt",
  "firstRetriedAt",
  "lastRetriedAt",
] as const;

type StatusRow = Omit<BundleStatus, "id" | "rootTransactionId"> & Readonly<{ root: Uint8Array | null }>;

/** Items of a bundle that also have a lower place; NULL before the bundle is done, like every count of items. */
const duplicatedCount = `CASE WHEN data_item_count IS NULL THEN NULL ELSE (
    SELECT count(*) FROM duplicates d WHERE d.sig > 0 AND ${highSql("d.n")} = ${highSql("b.n")}
      AND d.parent IS CASE WHEN b.depth > 0 THEN ${offsetSql("b.n", "b.fine")} END
  ) END AS duplicatedDataItemCount`;

/** Bundles nest at most ten deep; a longer chain of parents means that the index is damaged. */
const parentsMax = 64;

function createBundleReads(
  db: Database,
): Pick<IndexReader, "bundleStatus" | "invalidItems" | "nextBundleAt" | "entriesUnder"> &
  Readonly<{ bundleRowAt: (located: Located) => BundleRow | undefined }> {
  const columns = statusColumns.map((name) => `${snakeCase(name)} AS ${name}`).join(", ");
  const status = prepareQuery<StatusRow>(
    db,
    `SELECT ${columns}, ${duplicatedCount},
       coalesce((SELECT id FROM items i WHERE i.n = ${rootSql("b.n")}),
                (SELECT id FROM duplicates d WHERE d.n = ${rootSql("b.n")})) AS root
     FROM bundles b WHERE id = ? ORDER BY n LIMIT 1`,
  );
  const next = prepareQuery<{ at: number | null }>(
    db,
    // As the writer takes them: one whose transaction is absent is not due.
    `SELECT due_at AS at FROM bundles b WHERE due_at IS NOT NULL
       AND EXISTS (SELECT 1 FROM transactions t WHERE t.n = ${rootSql("b.n")}) ORDER BY due_at LIMIT 1`,
  );
  // The condition excludes nested bundles of an earlier read of the root.
  const entries = prepareQuery<{ entries: number }>(
    db,
    `SELECT coalesce(sum(CASE state WHEN 'indexed' THEN data_item_count ELSE next_entry END), 0) AS entries
     FROM bundles WHERE n BETWEEN ${placeSql("?1", "0")} AND ${placeSql("?1", String(lastLow))}
       AND last_queued_at >= coalesce((SELECT last_queued_at FROM bundles WHERE n = ${placeSql("?1", "0")}), 0)`,
  );
  const invalid = prepareQuery<Readonly<{ entry: number; offset: number; itemId: Uint8Array; reason: string }>>(
    db,
    `SELECT entry, byte AS offset, id AS itemId, reason FROM invalid_items
     WHERE n = (SELECT min(n) FROM bundles WHERE id = ?1) AND entry >= ?2 ORDER BY entry LIMIT ?3`,
  );
  const invalidCounts = prepareQuery<Pick<InvalidItemPage, "itemCount" | "invalidCount">>(
    db,
    `SELECT data_item_count AS itemCount, invalid_item_count AS invalidCount
     FROM bundles WHERE id = ? ORDER BY n LIMIT 1`,
  );
  return {
    invalidItems: (id, from, limit) => {
      const counts = invalidCounts.get(idBytes(id));
      if (counts === undefined) return undefined;
      const rows = invalid.all(idBytes(id), from, limit);
      return { ...counts, items: rows.map(({ itemId, ...item }) => ({ ...item, id: idFromBytes(itemId) })) };
    },
    bundleStatus: (id) => {
      const found = status.get(idBytes(id));
      if (found === undefined) return undefined;
      const { root, ...rest } = found;
      return { id, rootTransactionId: root === null ? null : idFromBytes(root), ...rest };
    },
    entriesUnder: (root) => entries.get(placeHigh(root))?.entries ?? 0,
    nextBundleAt: () => next.get()?.at ?? undefined,
    bundleRowAt: createBundleRows(db),
  };
}

/** Describes an id in a block as a row of the queue; its depth follows from its parents. */
function createBundleRows(db: Database): (located: Located) => BundleRow | undefined {
  const tables = ["items", "duplicates", "bundles", "pruned_items"];
  const parentAt = prepareQuery<{ parent: number | null }>(
    db,
    tables.map((table) => `SELECT parent FROM ${table} WHERE n = ${placeSql("?1", "?2")}`).join(" UNION ALL "),
  );
  return ({ id, kind, place, headerSize, size }) => {
    if (place.height === pendingHeight) return undefined;
    const common = { id, place, headerSize, size, bypassFilter: false };
    if (kind === "transaction") return { ...common, parentOffset: null, depth: 0 };
    const high = placeHigh(place);
    const parentOffset = parentAt.get(high, placeLow(place))?.parent ?? null;
    let depth = 1;
    let above = parentOffset;
    while (above !== null) {
      depth += 1;
      assert(depth < parentsMax, "an item's parents end at its transaction");
      above = parentAt.get(high, stepOf(above))?.parent ?? null;
    }
    return { ...common, parentOffset, depth };
  };
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
}

type Height = Readonly<{ height: number }>;

export function createSums(db: Database): Pick<IndexReader, "counts" | "times"> {
  const sums = createCountsReader(db);
  const recent = prepareQuery<HeightCounts>(
    db,
    `SELECT count(*) AS blocks, coalesce(sum(tx_count), 0) AS blockTransactions,
       coalesce(sum(stored_count), 0) AS transactions, coalesce(sum(item_count), 0) AS items,
       min(height) AS minHeight, max(height) AS maxHeight,
       min(height) FILTER (WHERE item_count > 0) AS minItemHeight,
       max(height) FILTER (WHERE item_count > 0) AS maxItemHeight
     FROM blocks WHERE followed = 1 AND height > ?`,
  );
  const block = (order: "ASC" | "DESC") =>
    prepareQuery<Height>(
      db,
      `SELECT height FROM blocks WHERE followed = 1 AND height <= ? ORDER BY height ${order} LIMIT 1`,
    );
  const blockWithItems = (order: "ASC" | "DESC") =>
    prepareQuery<Height>(
      db,
      `SELECT height FROM blocks WHERE item_count > 0 AND height <= ? ORDER BY height ${order} LIMIT 1`,
    );
  const lowest = block("ASC");
  const highest = block("DESC");
  const lowestWithItems = blockWithItems("ASC");
  const highestWithItems = blockWithItems("DESC");
  type ItemTime = Readonly<{ at: number | null }>;
  const newestItemAbove = prepareQuery<ItemTime>(db, "SELECT max(last_item_at) AS at FROM blocks WHERE height > ?");
  // The index by time is forced: SQLite's own plan reads every block up to the height.
  const newestItemUpTo = prepareQuery<ItemTime>(
    db,
    `SELECT last_item_at AS at FROM blocks INDEXED BY blocks_by_item_time
     WHERE last_item_at IS NOT NULL AND height <= ? ORDER BY last_item_at DESC LIMIT 1`,
  );
  /** The highest stable height. */
  const border = (): number => (highest.get(Number.MAX_SAFE_INTEGER)?.height ?? -1) - stableDepth;

  return {
    counts: () => {
      const all = sums();
      const last = border();
      const fresh = recent.get(last) ?? noHeights;
      const stable: HeightCounts = {
        blocks: all.blocks - fresh.blocks,
        blockTransactions: all.blockTransactions - fresh.blockTransactions,
        transactions: all.transactions - fresh.transactions,
        items: all.items - fresh.items,
        minHeight: lowest.get(last)?.height ?? null,
        maxHeight: highest.get(last)?.height ?? null,
        minItemHeight: lowestWithItems.get(last)?.height ?? null,
        maxItemHeight: highestWithItems.get(last)?.height ?? null,
      };
      return { ...all, stable, recent: fresh };
    },
    times: () => {
      const all = sums();
      const at = (name: CounterName): number | null => (all[name] === 0 ? null : all[name]);
      const last = border();
      return {
        bundleQueuedAt: at("bundleQueuedAt"),
        bundleSkippedAt: at("bundleSkippedAt"),
        bundleUnbundledAt: at("bundleUnbundledAt"),
        bundleFullyIndexedAt: at("bundleFullyIndexedAt"),
        recentItemIndexedAt: newestItemAbove.get(last)?.at ?? null,
        stableItemIndexedAt: newestItemUpTo.get(last)?.at ?? null,
      };
    },
  };
}

const noHeights: HeightCounts = {
  blocks: 0,
  blockTransactions: 0,
  transactions: 0,
  items: 0,
  minHeight: null,
  maxHeight: null,
  minItemHeight: null,
  maxItemHeight: null,
};
