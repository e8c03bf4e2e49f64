/**
 * The ranges of heights whose data items are also in the columnar store.
 *
 * The index decides which heights queries read from the store, in the snapshot of the query: a partition is read from
 * the moment that it is recorded, and no longer than its blocks are on the chain. Heights are recorded once: those that
 * a rollback took from a partition stay in the index. Only rows of recorded partitions may be pruned as stored rows.
 * Source: docs/reference/columnar.md.
 * @module
 */
import type { Database } from "bun:sqlite";
import { type Id, idBytes } from "../../arweave/id.ts";
import { prepare, prepareQuery } from "../sqlite.ts";
import type { IdPlaces } from "./id-places.ts";
import type { Counts } from "./index-counters.ts";
import { compareHalves, type Place, type PlaceHalves, packHeight, placeHigh, placeLow } from "./place.ts";
import { halvesSql, heightSql, placeSql } from "./place-sql.ts";

/** Heights of the store that queries read, both inclusive. */
export type StoredHeights = Readonly<{ first: number; last: number }>;

/** A partition that the columnar store has loaded. */
export type StoredPartition = StoredHeights &
  Readonly<{
    /** Hash of the block at `last`; null when unknown. */
    lastBlock: Uint8Array | null;
    /** Items of the partition that this index never had: those of another gateway's export. */
    foreignItems: number;
  }>;

/** The partitions of one database, for the writer. Calls run inside the writer's transaction. */
export type StoredPartitions = Readonly<{
  /** Returns false, and changes nothing, when heights overlap or the chain has another block at `last`. */
  add: (partition: StoredPartition) => boolean;
  /** Ends partitions below a height. */
  cutAt: (height: number) => void;
  /** Empties the partition that ends with another block than a new one, or than the one before it. */
  checkBlock: (height: number, hash: Uint8Array, previous: Uint8Array | null) => void;
}>;

export function createStoredPartitions(db: Database, counts: Counts): StoredPartitions {
  const overlapping = prepareQuery<{ first: number }>(
    db,
    "SELECT first FROM stored_partitions WHERE first <= ? AND written_last >= ? LIMIT 1",
  );
  const blockAt = prepareQuery<{ hash: Uint8Array }>(db, "SELECT hash FROM blocks WHERE height = ?");
  const add = prepare(db, "INSERT INTO stored_partitions VALUES (?1, ?2, ?2, ?3, ?4)");
  const cut = prepare(db, "UPDATE stored_partitions SET last = ?1 - 1, last_block = NULL WHERE last >= ?1");
  const empty = prepare(
    db,
    "UPDATE stored_partitions SET last = first - 1 WHERE last = ? AND last_block IS NOT NULL AND last_block <> ?",
  );
  const foreign = prepareQuery<{ items: number }>(
    db,
    "SELECT items FROM stored_partitions WHERE last < first AND items > 0",
  );
  const forget = prepare(db, "UPDATE stored_partitions SET items = 0 WHERE last < first");
  const uncountEmpty = (): void => {
    for (const { items } of foreign.all()) counts.add("storedItems", -items);
    forget.run();
  };
  return {
    add: ({ first, last, lastBlock, foreignItems }) => {
      if (first > last || overlapping.get(last, first) !== undefined) return false;
      const block = blockAt.get(last);
      if (block !== undefined && lastBlock !== null && Buffer.compare(block.hash, lastBlock) !== 0) return false;
      add.run(first, last, lastBlock, foreignItems);
      counts.add("storedItems", foreignItems);
      return true;
    },
    cutAt: (height) => {
      cut.run(height);
      uncountEmpty();
    },
    checkBlock: (height, hash, previous) => {
      const ended = empty.run(height, hash).changes + (previous === null ? 0 : empty.run(height - 1, previous).changes);
      if (ended > 0) uncountEmpty();
    },
  };
}

/** The reader's calls for partitions. */
export type StoredPartitionReads = Readonly<{
  /** Heights that queries read from the columnar store, in order. */
  heights: () => readonly StoredHeights[];
  /** Heights of all partitions as they were loaded, in order: no other partition can have one of them. */
  loadedHeights: () => readonly StoredHeights[];
  /** The first height above all partitions; 0 without one. */
  nextHeight: () => number;
  /** Whether a row of the store is listed: not when the index has the row, or the id has a lower place. */
  isListed: (id: Id, place: Place) => boolean;
  /** Whether all transactions of a range are known and no bundle of it waits to be unbundled. */
  isSettled: (heights: StoredHeights) => boolean;
}>;

export function createStoredPartitionReads(db: Database, ids: IdPlaces): StoredPartitionReads {
  const pruned = prepareQuery<PlaceHalves>(db, `SELECT ${halvesSql("p.n")} FROM ${prunedOfId} ORDER BY p.n LIMIT 1`);
  const heights = prepareQuery<StoredHeights>(
    db,
    "SELECT first, last FROM stored_partitions WHERE first <= last ORDER BY first",
  );
  const loaded = prepareQuery<StoredHeights>(
    db,
    "SELECT first, written_last AS last FROM stored_partitions ORDER BY first",
  );
  const end = prepareQuery<{ last: number | null }>(db, "SELECT max(written_last) AS last FROM stored_partitions");
  const unsettled = prepareQuery<{ n: number }>(
    db,
    `SELECT 1 AS n FROM bundles WHERE n BETWEEN ?1 AND ?2 AND state IN ('queued', 'unbundling')
     UNION ALL SELECT 1 FROM missing WHERE n BETWEEN ?1 AND ?2 LIMIT 1`,
  );
  return {
    heights: () => heights.all(),
    loadedHeights: () => loaded.all(),
    nextHeight: () => (end.get()?.last ?? -1) + 1,
    isListed: (id, place) => {
      const bytes = idBytes(id);
      const inIndex = ids.find(bytes);
      const inStore = pruned.get(bytes);
      if (inStore === undefined) return inIndex === undefined;
      if (inIndex !== undefined && compareHalves(inIndex, inStore) < 0) return false;
      return compareHalves(inStore, { high: placeHigh(place), low: placeLow(place) }) === 0;
    },
    isSettled: ({ first, last }) => unsettled.get(packHeight(first), packHeight(last + 1) - 1n) === undefined,
  };
}

/** The pruned rows of an id (?1) that queries read from the store. */
const prunedOfId = `pruned_items p WHERE substr(p.id, 1, 8) = substr(?1, 1, 8) AND p.id = ?1 AND p.stored = 1
  AND EXISTS (SELECT 1 FROM stored_partitions s WHERE ${heightSql("p.n")} BETWEEN s.first AND s.last)`;

/**
 * Returns a test of whether a row of the index is hidden, because the store has the row of its id at a lower place.
 * Without partitions no row is.
 */
export function createHiddenTest(db: Database): () => (row: PlaceHalves & Readonly<{ id: Uint8Array }>) => boolean {
  const some = prepareQuery<{ first: number }>(db, "SELECT first FROM stored_partitions LIMIT 1");
  const lower = prepareQuery<{ n: number }>(
    db,
    `SELECT 1 AS n FROM ${prunedOfId} AND p.n < ${placeSql("?2", "?3")} LIMIT 1`,
  );
  return () => (some.get() === undefined ? () => false : ({ id, high, low }) => lower.get(id, high, low) !== undefined);
}
