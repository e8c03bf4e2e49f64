/**
 * Writing the posting index: for each key of a row (filter-key.ts) the row's place, sorted by key, then place.
 *
 * Entries are sorted before they are written, because neighbours then share a page (1.5 times faster: measured).
 * Source: docs/reference/index-layout.md.
 * @module
 */
import type { Database } from "bun:sqlite";
import { prepare } from "../sqlite.ts";
import { filterKeyBits } from "./filter-key.ts";

/** One row's place, in halves, and its keys. */
export type PostingRow = Readonly<{ high: number; low: number; keys: readonly number[] }>;

/** The posting index, for the writer. Both calls may repeat what is done already. */
export type Postings = Readonly<{
  /** @param rows - In place order. */
  add: (rows: readonly PostingRow[]) => void;
  remove: (rows: readonly PostingRow[]) => void;
}>;

/** Bits left beside a key for the row's number in one sort. */
const ordinalBits = 64 - filterKeyBits;
const rowsPerSortMax = 2 ** ordinalBits;
/** Bits of the key that share the lower word with the ordinal. */
const keyLowScale = 2 ** (32 - ordinalBits);

/** Opens the posting index of one database. */
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

/** Entries `key << 17 | ordinal`, sorted. Written as two words: a bigint each would cost more than the sort. */
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
