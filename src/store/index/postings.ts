/**
 * Writes the posting index: for each key of a row (filter-key.ts) the row's place, sorted by key, then place.
 *
 * The id of every row is in the B-tree, because ids are looked up one by one. Owner, recipient and tags are there too
 * while the row may still be forked away. Stable rows are sealed into parts, where a row takes a fifth of the time and
 * half of the bytes (measured, bench/index.ts). A part may name a row that was removed or replaced: readers check each
 * row.
 *
 * Entries of the B-tree are sorted before they are written, so that neighbours share a page (1.5 times faster:
 * measured). Eight parts of a level are merged into one of the next, so a row is written again at most four times.
 * Source: docs/reference/index-layout.md#recent-rows; docs/reference/index-layout.md.
 * @module
 */
import type { Database } from "bun:sqlite";
import { prepare, prepareQuery } from "../sqlite.ts";
import { type FilterKeys, filterKeyBits } from "./filter-key.ts";
import type { NewPartRow } from "./parts/part-image.ts";
import { createParts, type PartSizes } from "./parts/part-table.ts";
import { packHeight, transactionsPerBlockMax } from "./place.ts";
import { stableDepth } from "./rows.ts";
import { filterKeysOfRow, type KeyedRow } from "./stored-row.ts";

/** A row at its place, as upper 32 and lower 31 bits. */
export type FindableRow = KeyedRow & Readonly<{ high: number; low: number }>;

/** The filter index of rows. Calls run inside the writer's transaction. */
export type FindableRows = Readonly<{
  /** @param rows - In place order, at places that have no row yet. */
  add: (rows: readonly FindableRow[]) => void;
  remove: (rows: readonly FindableRow[]) => void;
  /** Seals stable rows of the B-tree when there are many. @returns Whether it did. */
  seal: () => boolean;
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
  const noteUnsealed = prepare(db, "INSERT OR IGNORE INTO unsealed VALUES ((? << 31) | ?)");
  const dropUnsealed = prepare(db, "DELETE FROM unsealed WHERE n = (? << 31) | ?");
  const stableRows = prepareQuery<{ count: number }>(
    db,
    "SELECT count(*) AS count FROM (SELECT 1 FROM unsealed WHERE n < ? LIMIT ?)",
  );
  /** Rows added to the B-tree since stable rows were last counted; a new writer counts at once. */
  let unsealedSince = Number.POSITIVE_INFINITY;

  const idOf = (row: FindableRow) => ({ high: row.high, low: row.low, keys: [keys.id(row.id)] });
  const filtersOf = (row: FindableRow) => ({
    high: row.high,
    low: row.low,
    keys: filterKeysOfRow(keys, row),
  });
  const sealedOf = (row: FindableRow): NewPartRow => {
    const filters = filtersOf(row);
    return row.sig < 0 ? { ...filters, keys: [...filters.keys, keys.transaction()] } : filters;
  };

  return {
    add: (rows) => {
      postings.add(rows.map(idOf));
      const last = rows.at(-1);
      const isStable = last !== undefined && last.high < border() * transactionsPerBlockMax;
      if (isStable && rows.length >= sizes.rowsMin) {
        parts.add(rows.map(sealedOf));
        return;
      }
      postings.add(rows.map(filtersOf));
      for (const { high, low } of rows) noteUnsealed.run(high, low);
      unsealedSince += rows.length;
    },
    remove: (rows) => {
      postings.remove(rows.map(idOf));
      const unsealed = rows.filter(({ high, low }) => dropUnsealed.run(high, low).changes > 0);
      postings.remove(unsealed.map(filtersOf));
    },
    seal: () => {
      if (unsealedSince * 4 < sizes.sealRows) return false;
      unsealedSince = 0;
      const below = packHeight(border());
      if ((stableRows.get(below, sizes.sealRows)?.count ?? 0) < sizes.sealRows) return false;
      const rows = readRows(below, sizes.sealRows);
      parts.add(rows.map(sealedOf));
      postings.remove(rows.map(filtersOf));
      for (const { high, low } of rows) dropUnsealed.run(high, low);
      unsealedSince = Number.POSITIVE_INFINITY;
      return true;
    },
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
export type PostingRow = Readonly<{ high: number; low: number; keys: readonly number[] }>;

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

export function createPostings(db: Database): Postings {
  const insert = prepare(db, "INSERT OR IGNORE INTO postings VALUES (?, (? << 31) | ?)");
  const remove = prepare(db, "DELETE FROM postings WHERE key = ? AND n = (? << 31) | ?");
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
