/**
 * Writes the posting index: for each key of a row (filter-key.ts) the row's place, sorted by key, then place.
 *
 * Rows that may still be forked away are in a B-tree. Stable rows are sealed into parts (parts.ts), where a row takes a
 * fifth of the time and half of the bytes (measured, bench/index/index.ts). A part may name a row that was removed or
 * replaced: readers check each row.
 *
 * Entries of the B-tree are sorted before they are written, so that neighbours share a page (1.5 times faster:
 * measured).
 * Source: docs/reference/index-layout.md#recent-rows.
 * @module
 */
import type { Database } from "bun:sqlite";
import { prepare, prepareQuery } from "../sqlite.ts";
import { type FilterKeys, filterKeyBits } from "./filter-key.ts";
import { stableDepth } from "./index-types.ts";
import { columnsOf } from "./parts/part-image.ts";
import { createParts, type PartMerges, type PartSizes } from "./parts/parts.ts";
import { type PlaceHalves, packHeight, transactionsPerBlockMax } from "./place.ts";
import { placeSql } from "./place-sql.ts";
import { hasTransactions, keysOfBatchRow, type RowBatch, rowOf } from "./rows/row-batch.ts";
import { filterKeysOfRow, type KeyedRow } from "./rows/stored-row.ts";

/** A row at its place, as upper 32 and lower 31 bits. */
export type FindableRow = KeyedRow & Readonly<{ high: number; low: number }>;

/** The filter index of rows. Calls run inside the writer's transaction. */
export type FindableRows = Readonly<{
  /** @param rows - In place order, at places that have no row yet. */
  add: (rows: readonly FindableRow[]) => void;
  /** Adds rows of a batch. @param fresh - Their numbers, in order. */
  addBatch: (batch: RowBatch, fresh: readonly number[]) => void;
  /** @param findable - Is called for the rows that are in the B-tree, one after another. */
  remove: <Row extends PlaceHalves>(rows: readonly Row[], findable: (row: Row) => FindableRow) => void;
  /** Seals stable rows of the B-tree when there are many. @returns Whether it did. */
  seal: () => boolean;
  merges: PartMerges;
  /** Removes some postings of rows that are in parts, which earlier releases left. @returns Whether more may follow. */
  sweep: () => boolean;
}>;

/**
 * Opens the findable rows of one database.
 *
 * @param readRows - Reads the first `limit` rows of `unsealed` below a packed place.
 */
export function createFindableRows(
  db: Database,
  keys: FilterKeys,
  sizes: PartSizes,
  readRows: (below: bigint, limit: number) => readonly FindableRow[],
): FindableRows {
  const postings = createPostings(db);
  const parts = createParts(db, sizes);
  const border = createBorder(db);
  const noteUnsealed = prepare(db, `INSERT OR IGNORE INTO unsealed VALUES (${placeSql()})`);
  const dropUnsealed = prepare(db, `DELETE FROM unsealed WHERE n = ${placeSql()}`);
  const stableRows = prepareQuery<{ count: number }>(
    db,
    "SELECT count(*) AS count FROM (SELECT 1 FROM unsealed WHERE n < ? LIMIT ?)",
  );
  /** Rows added to the B-tree since stable rows were last counted; a new writer counts at once. */
  let unsealedSince = Number.POSITIVE_INFINITY;
  /** Rows added to the B-tree since rows were last moved to a part. */
  let addedSince = 0;

  const keyed = (row: FindableRow): KeyedPlace => ({
    high: row.high,
    low: row.low,
    keys: [keys.id(row.id), ...filterKeysOfRow(keys, row)],
    isTransaction: row.sig < 0,
  });
  const keyedOfBatch = (batch: RowBatch, index: number): KeyedPlace => {
    const { high, low, sig } = rowOf(batch, index);
    return { high, low, keys: keysOfBatchRow(batch, index), isTransaction: sig < 0 };
  };
  const sealed = (row: KeyedPlace): KeyedPlace =>
    row.isTransaction ? { ...row, keys: [...row.keys, keys.transaction()] } : row;
  const becomesPart = (count: number, lastHigh: number): boolean =>
    count >= sizes.rowsMin && lastHigh < border() * transactionsPerBlockMax;
  const add = (rows: readonly KeyedPlace[]): void => {
    if (becomesPart(rows.length, rows.at(-1)?.high ?? 0)) {
      parts.add(columnsOf(rows.map(sealed)));
      return;
    }
    postings.add(rows);
    for (const { high, low } of rows) noteUnsealed.run(high, low);
    unsealedSince += rows.length;
    addedSince += rows.length;
  };

  return {
    add: (rows) => add(rows.map(keyed)),
    addBatch: (batch, fresh) => {
      // All rows of a batch of items become a part as they are.
      const isWhole = fresh.length === batch.count && !hasTransactions(batch);
      if (isWhole && becomesPart(batch.count, batch.high[batch.count - 1] ?? 0)) parts.add(batch);
      else add(fresh.map((index) => keyedOfBatch(batch, index)));
    },
    remove: (rows, findable) => {
      const unsealed = rows.filter(({ high, low }) => dropUnsealed.run(high, low).changes > 0);
      postings.remove(unsealed.map((row) => keyed(findable(row))));
    },
    seal: () => {
      if (unsealedSince * 4 < sizes.sealRows) return false;
      unsealedSince = 0;
      const below = packHeight(border());
      if ((stableRows.get(below, sizes.sealRows)?.count ?? 0) < sizes.sealRows) return false;
      // A step is smaller where rows have many tags: no fewer are moved than were added.
      const least = Math.min(addedSince, sizes.sealRows);
      for (let moved = 0; moved === 0 || moved < least; ) {
        const rows = readRows(below, sizes.sealRows).map(keyed);
        parts.add(columnsOf(rows.map(sealed)));
        postings.remove(rows);
        for (const { high, low } of rows) dropUnsealed.run(high, low);
        moved += rows.length;
      }
      addedSince = 0;
      unsealedSince = Number.POSITIVE_INFINITY;
      return true;
    },
    merges: parts,
    sweep: createSweep(db),
  };
}

/** Postings read in one step of the sweep. */
const sweptPerStep = 5_000;

/**
 * Creates the sweep of `postings`: earlier releases had the ids of all rows there. Steps go by key, so that neighbours
 * share pages. It begins when every part has its ids, and is repeated from the start when a process ended meanwhile.
 */
function createSweep(db: Database): () => boolean {
  const from = prepareQuery<{ value: number }>(db, "SELECT value FROM meta WHERE name = 'old_ids_from'");
  const old = prepareQuery<{ part: number }>(db, "SELECT part FROM parts WHERE level >= 0 AND keys IS NULL LIMIT 1");
  const edge = prepareQuery<{ key: number | null; count: number }>(
    db,
    "SELECT max(key) AS key, count(*) AS count FROM (SELECT key FROM postings WHERE key >= ? ORDER BY key LIMIT ?)",
  );
  const sweep = prepare(db, "DELETE FROM postings WHERE key BETWEEN ? AND ? AND n NOT IN (SELECT n FROM unsealed)");
  const next = prepare(db, "UPDATE meta SET value = ? WHERE name = 'old_ids_from'");
  const end = prepare(db, "DELETE FROM meta WHERE name = 'old_ids_from'");
  return () => {
    const start = from.get()?.value;
    if (start === undefined || old.get() !== undefined) return false;
    const { key, count } = edge.get(start, sweptPerStep) ?? { key: null, count: 0 };
    if (key !== null) sweep.run(start, key);
    if (key === null || count < sweptPerStep) {
      end.run();
      return false;
    }
    next.run(key + 1);
    return true;
  };
}

/** Returns the lowest height that is not stable. */
function createBorder(db: Database): () => number {
  const tip = prepareQuery<{ height: number }>(
    db,
    "SELECT height FROM blocks WHERE followed = 1 ORDER BY height DESC LIMIT 1",
  );
  return () => Math.max(0, (tip.get()?.height ?? 0) - stableDepth + 1);
}

/** The place of a row, in halves, and its keys. */
type PostingRow = Readonly<{ high: number; low: number; keys: readonly number[] }>;

/** Transactions have one more key in a part. */
type KeyedPlace = PostingRow & Readonly<{ isTransaction: boolean }>;

/** The B-tree. Both calls are idempotent. */
export type Postings = Readonly<{
  /** @param rows - In place order. */
  add: (rows: readonly PostingRow[]) => void;
  remove: (rows: readonly PostingRow[]) => void;
}>;

/** Bits beside a key for the row's number in one sort. */
const ordinalBits = 64 - filterKeyBits;
const rowsPerSortMax = 2 ** ordinalBits;
/** Scale of the key's bits that share the lower word with the ordinal. */
const keyLowScale = 2 ** (32 - ordinalBits);

function createPostings(db: Database): Postings {
  const insert = prepare(db, `INSERT OR IGNORE INTO postings VALUES (?, ${placeSql()})`);
  const remove = prepare(db, `DELETE FROM postings WHERE key = ? AND n = ${placeSql()}`);
  return {
    add: (rows) => visitSorted(rows, (key, row) => insert.run(key, row.high, row.low)),
    remove: (rows) => visitSorted(rows, (key, row) => remove.run(key, row.high, row.low)),
  };
}

/** Visits every (key, row) by key, and by the order of `rows` within a key. */
function visitSorted(rows: readonly PostingRow[], visit: (key: number, row: PostingRow) => void): void {
  for (let start = 0; start < rows.length; start += rowsPerSortMax) {
    const part = rows.slice(start, start + rowsPerSortMax);
    const entries = sortedEntries(part);
    const words = new Uint32Array(entries.buffer);
    for (let at = 0; at < words.length; at += 2) {
      const low = words[at] ?? 0;
      const row = part[low % rowsPerSortMax];
      if (row !== undefined) visit((words[at + 1] ?? 0) * keyLowScale + Math.floor(low / rowsPerSortMax), row);
    }
  }
}

/** Entries `key << 17 | ordinal`, sorted. Written as two words, because bigints would cost more than the sort. */
function sortedEntries(rows: readonly PostingRow[]): BigUint64Array {
  const count = rows.reduce((sum, row) => sum + row.keys.length, 0);
  const entries = new BigUint64Array(count);
  const words = new Uint32Array(entries.buffer);
  let at = 0;
  rows.forEach((row, ordinal) => {
    for (const key of row.keys) {
      words[at] = (key % keyLowScale) * rowsPerSortMax + ordinal;
      words[at + 1] = Math.floor(key / keyLowScale);
      at += 2;
    }
  });
  return entries.sort();
}
