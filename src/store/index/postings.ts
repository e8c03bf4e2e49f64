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
import { assert } from "../../lib/assert.ts";
import { prepare, prepareQuery } from "../sqlite.ts";
import { type FilterKeys, filterKeyBits } from "./filter-key.ts";
import { stableDepth } from "./index-types.ts";
import {
  gatherPart,
  imageOfPart,
  mergeParts,
  type NewPartRow,
  ordinalsPerChunk,
  type PartImage,
  type PartRows,
  type PlaceList,
  readOrdinals,
  readPlaces,
} from "./part-image.ts";
import { packHeight, transactionsPerBlockMax } from "./place.ts";
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
type PostingRow = Readonly<{ high: number; low: number; keys: readonly number[] }>;

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

/** Thresholds for making and merging parts. */
export type PartSizes = Readonly<{
  /** Minimum of new rows that become a part directly. */
  rowsMin: number;
  /** This many stable rows in no part become one. */
  sealRows: number;
  /** Minimum of rows of a part of the second level; eight times as many of the third, and so on. */
  levelRows: number;
  /** Parts of a level that are merged. */
  fanIn: number;
  /** Limit of the rows of one merge: bounds memory (100 bytes a row) and the time that other writes wait. */
  mergedRowsMax: number;
}>;

/** The largest merge takes a quarter of a second; 10 million rows make about 50 parts. */
export const partSizesDefault: PartSizes = {
  rowsMin: 32,
  sealRows: 4_096,
  levelRows: 512,
  fanIn: 8,
  mergedRowsMax: 2 ** 18,
};

/** The parts of one database. Calls run inside the writer's transaction. */
export type Parts = Readonly<{
  /** @param rows - In place order. */
  add: (rows: readonly NewPartRow[]) => void;
}>;

export function createParts(db: Database, sizes: PartSizes): Parts {
  const store = createPartStore(db, sizes);
  const load = createPartLoader(db);
  const drop = createPartRemoval(db);
  const crowded = prepareQuery<{ level: number }>(
    db,
    "SELECT level FROM parts WHERE count < ? GROUP BY level HAVING count(*) >= ? ORDER BY level LIMIT 1",
  );
  const ofLevel = prepareQuery<{ part: number; count: number }>(
    db,
    "SELECT part, count FROM parts WHERE level = ? AND count < ? ORDER BY first LIMIT ?",
  );
  // A part of half the limit is never merged.
  const mergeableRows = sizes.mergedRowsMax / 2;

  const mergeDue = (): void => {
    for (;;) {
      const level = crowded.get(mergeableRows, sizes.fanIn)?.level;
      if (level === undefined) return;
      let total = 0;
      const chosen = ofLevel.all(level, mergeableRows, sizes.fanIn).filter(({ count }) => {
        const fits = total + count <= sizes.mergedRowsMax;
        if (fits) total += count;
        return fits;
      });
      const merged = mergeParts(chosen.map(({ part }) => load(part)));
      for (const { part } of chosen) drop(part);
      store(merged);
    }
  };
  return {
    add: (rows) => {
      if (rows.length === 0) return;
      store(gatherPart(rows));
      mergeDue();
    },
  };
}

function levelOf(count: number, { levelRows, fanIn }: PartSizes): number {
  if (count < levelRows) return 0;
  return 1 + Math.floor(Math.log(count / levelRows) / Math.log(fanIn));
}

function createPartStore(db: Database, sizes: PartSizes): (rows: PartRows) => void {
  const addPart = prepareQuery<{ part: number }>(
    db,
    `INSERT INTO parts (level, count, entries, buckets, first, last, starts)
     VALUES (?, ?, ?, ?, (? << 31) | ?, (? << 31) | ?, ?) RETURNING part`,
  );
  const body = (table: string) => prepare(db, `INSERT INTO ${table} VALUES ((? << 24) | ?, ?)`);
  const addPlaces = body("part_places");
  const addRare = body("part_rare");
  const addList = body("part_lists");
  const addKey = prepare(db, "INSERT INTO part_keys VALUES (?, ?, ?, ?, ?)");
  return (rows) => {
    const image: PartImage = imageOfPart(rows);
    const { high, low } = rows.places;
    const last = high.length - 1;
    const added = addPart.get(
      ...[levelOf(image.count, sizes), image.count, rows.entries.length, image.rare.length],
      ...[high[0] ?? 0, low[0] ?? 0, high[last] ?? 0, low[last] ?? 0, image.starts],
    );
    assert(added !== undefined, "a part that was added has a number");
    const { part } = added;
    for (const [number, places] of image.places.entries()) addPlaces.run(part, number, places);
    for (const [number, bucket] of image.rare.entries()) addRare.run(part, number, bucket);
    for (const [number, list] of image.lists.entries()) {
      addList.run(part, number, list.body);
      addKey.run(part, list.key, list.chunk, list.count, number);
    }
  };
}

function createPartRemoval(db: Database): (part: number) => void {
  const bodies = ["part_places", "part_rare", "part_lists"].map((table) =>
    prepare(db, `DELETE FROM ${table} WHERE n BETWEEN (?1 << 24) AND (?1 << 24) | 0xffffff`),
  );
  const keys = prepare(db, "DELETE FROM part_keys WHERE part = ?");
  const row = prepare(db, "DELETE FROM parts WHERE part = ?");
  return (part) => {
    for (const statement of [...bodies, keys, row]) statement.run(part);
  };
}

/** Returns a function that reads a complete part. */
export function createPartLoader(db: Database): (part: number) => PartRows {
  const info = prepareQuery<{ count: number; entries: number }>(db, "SELECT count, entries FROM parts WHERE part = ?");
  const bodies = (table: string) =>
    prepareQuery<{ body: Uint8Array }>(
      db,
      `SELECT body FROM ${table} WHERE n BETWEEN (?1 << 24) AND (?1 << 24) | 0xffffff ORDER BY n`,
    );
  const places = bodies("part_places");
  const rare = bodies("part_rare");
  const lists = prepareQuery<{ key: number; chunk: number; count: number; body: Uint8Array }>(
    db,
    `SELECT key, chunk, count, body FROM part_keys k JOIN part_lists l ON l.n = (k.part << 24) | k.list
     WHERE k.part = ?`,
  );
  return (part) => {
    const found = info.get(part);
    assert(found !== undefined, "the row of a part exists");
    const entries = new BigUint64Array(found.entries);
    const words = new Uint32Array(entries.buffer);
    const bytes = new Uint8Array(entries.buffer);
    let at = 0;
    for (const { body } of rare.all(part)) {
      bytes.set(body, at * 4);
      at += body.length / 4;
    }
    for (const { key, chunk, count, body } of lists.all(part)) {
      const base = (key % 256) * 2 ** 24 + chunk * ordinalsPerChunk;
      const high = Math.floor(key / 256);
      for (const ordinal of readOrdinals(body, count)) {
        words[at] = base + ordinal;
        words[at + 1] = high;
        at += 2;
      }
    }
    assert(at === words.length, "a part has as many entries as its row states");
    const all = joinPlaces(places.all(part), found.count);
    return { places: all, entries };
  };
}

function joinPlaces(blocks: readonly Readonly<{ body: Uint8Array }>[], count: number): PlaceList {
  const high = new Uint32Array(count);
  const low = new Uint32Array(count);
  let at = 0;
  for (const { body } of blocks) {
    const block = readPlaces(body);
    high.set(block.high, at);
    low.set(block.low, at);
    at += block.high.length;
  }
  assert(at === count, "a part has as many places as its row states");
  return { high, low };
}
