/**
 * Rows of the index, for the writer: adding and removing rows, and updating their postings and counters.
 *
 * Each id has one canonical place: its lowest. Rows at other places are in `duplicates`, where no filter finds them.
 * When the canonical row is removed, the lowest duplicate replaces it in the same transaction.
 *
 * Pruned data items leave compact places. Their bytes are still served by id, but no query lists them. A compact
 * place is removed when the item is indexed again at that place, and when its block is rolled back.
 *
 * Source: docs/reference/index-layout.md#one-place-an-id.
 * @module
 */
import type { Database, SQLQueryBindings } from "bun:sqlite";
import { encodeBase64url } from "../../../lib/base64url.ts";
import { prepare, prepareQuery, type Query } from "../../sqlite.ts";
import type { FilterKeys } from "../filter-key.ts";
import { createIdPlaces, type IdPlaces } from "../id-places.ts";
import type { Counts } from "../index-counters.ts";
import type { Journal } from "../journal/journal.ts";
import type { RemovedRow } from "../journal/journal-places.ts";
import { createPartReads } from "../parts/part-reads.ts";
import type { PartMerges, PartSizes } from "../parts/parts.ts";
import { compareHalves, type PlaceHalves, pendingHeight, transactionsPerBlockMax } from "../place.ts";
import { halvesSql, placeSql } from "../place-sql.ts";
import { createFindableRows, type FindableRow, type FindableRows } from "../postings.ts";
import type { Owners } from "./owner-numbers.ts";
import { type BatchRow, hasVerified, type RowBatch, rowOf, sortedIdKeys } from "./row-batch.ts";
import { placesJson } from "./row-reads.ts";
import { createRowWriting, type RowWriting } from "./row-writing.ts";
import { rowColumns } from "./stored-row.ts";
import { contentTags, decodeTagBlob, writeContentTags } from "./tag-blob.ts";

/** Outcome of an addition. */
export type RowsAdded = Readonly<{
  /** Rows that are new to the index, at their canonical place. */
  added: number;
  /** Rows whose id is already at a lower place; stored as duplicates. */
  duplicated: number;
  /** Rows that were already at the same place: a repeated step. */
  repeated: number;
}>;

/** The rows of one database. Calls run inside the writer's transaction. */
export type RowTable = Readonly<{
  /**
   * Adds rows, each at the canonical place of its id or among the duplicates. A verified row replaces an unverified
   * one at the same place, also one of another id.
   *
   * @param ingested - Unix seconds.
   */
  add: (batch: RowBatch, ingested: number) => RowsAdded;
  /** The canonical places of the ids that have a row, by the id's text. @param ids - 32 bytes each. */
  find: (ids: readonly Uint8Array[]) => ReadonlyMap<string, PlaceHalves>;
  /**
   * Removes rows and duplicates that meet a condition; other places of the ids become canonical.
   *
   * @param condition - SQL over `rowColumns`; a constant, never text from outside.
   * @param limit - Maximum of canonical rows; fewer with many tags. Call again until none is removed.
   * @returns Number of removed canonical rows.
   */
  remove: (condition: string, parameters: readonly SQLQueryBindings[], limit: number) => number;
  /** As `remove`, but compact places remain, and the journal gets no change. The duplicates must be pruned first. */
  prune: (condition: string, parameters: readonly SQLQueryBindings[], limit: number) => number;
  /** As `prune`, for rows that the columnar store has: queries still list them. Places without an item are ignored. */
  pruneStored: (places: readonly PlaceHalves[]) => number;
  /** Prunes duplicates, so that they cannot become canonical when `prune` runs in steps. */
  pruneDuplicates: (condition: string, parameters: readonly SQLQueryBindings[], limit: number) => number;
  /** Moves stable rows into a part of the posting index. @returns Whether there were enough of them. */
  seal: () => boolean;
  merges: PartMerges;
  /** As `FindableRows.sweep`. */
  sweep: () => boolean;
  /** Drops what is cached: a transaction failed. */
  discard: () => void;
}>;

/** Rows removed at a time: bounds memory. */
const rowsPerRemoval = 5_000;

/**
 * Tags that are read at a time, unless one row has more: 2,048 rows of two hundred bytes of tags have less. A hostile
 * item has 2,048 tags, each of which becomes a key. Bytes.
 */
const tagBytesPerStep = 2 ** 20;

/** Repeats a removal until it removes no row. @returns The number of removed rows. */
export function removeInSteps(remove: (limit: number) => number): number {
  let removed = 0;
  let count: number;
  do {
    count = remove(rowsPerRemoval);
    removed += count;
  } while (count > 0);
  return removed;
}

/** Dependencies, all of one database. */
type RowTableParts = Readonly<{
  db: Database;
  keys: FilterKeys;
  owners: Owners;
  counts: Counts;
  journal: Journal;
  partSizes: PartSizes;
}>;

export function createRowTable({ db, keys, owners, counts, journal, partSizes }: RowTableParts): RowTable {
  const unsealed = prepareSome(db, "items", "r.n IN (SELECT n FROM unsealed WHERE n < ? ORDER BY n LIMIT ?)");
  const findable = createFindableRows(db, keys, partSizes, (below, limit) =>
    unsealed([below, limit], limit).map(findableRow),
  );
  const partReads = createPartReads(db);
  const ids = createIdPlaces(db, keys, partReads);
  const places = createCanonicalPlaces({ db, findable, journal });
  const beginTally = createTallies(db, counts);
  const writing = createRowWriting(db, owners);
  const pruned = createPrunedItems(db, counts);
  const evictOthers = createEviction({ db, places, journal });

  const addOne = (
    row: BatchRow,
    existing: PlaceHalves | undefined,
    { write, ingested, tally }: Addition,
  ): "added" | "duplicated" | "repeated" => {
    const order = existing === undefined ? 1 : compareHalves(existing, row);
    if (order === 0 && (row.trusted === 1 || places.dropUnverified(row, tally) === undefined)) return "repeated";
    if (order < 0) {
      if (row.trusted === 0) places.dropUnverifiedDuplicate(row, tally);
      tally.duplicates(write.duplicate(row));
      return "duplicated";
    }
    if (existing !== undefined && order > 0) places.demote(existing, tally);
    write.item(row);
    journal.came(row);
    tally.row(row, ingested, 1);
    return "added";
  };
  return {
    add: (batch, ingested) => {
      const tally = beginTally();
      evictOthers(batch, tally);
      const existing = placesOfBatch(batch, ids);
      const write = writing(batch, ingested);
      const addition: Addition = { write, ingested, tally };
      const fresh: number[] = [];
      let duplicated = 0;
      for (let index = 0; index < batch.count; index += 1) {
        const row = rowOf(batch, index);
        const id = existing.size === 0 ? "" : encodeBase64url(row.id);
        const outcome = addOne(row, existing.get(id), addition);
        if (outcome === "duplicated") duplicated += 1;
        if (outcome !== "added") continue;
        if (existing.has(id)) existing.set(id, row);
        fresh.push(index);
      }
      write.end();
      pruned.replaced(batch);
      findable.addBatch(batch, fresh);
      tally.flush();
      return { added: fresh.length, duplicated, repeated: batch.count - fresh.length - duplicated };
    },
    find: ids.findMany,
    ...createRemovals({ db, places, findable, pruned, journal, beginTally }),
    seal: findable.seal,
    merges: findable.merges,
    sweep: findable.sweep,
    discard: partReads.discard,
  };
}

/** How the rows of one batch are written. */
type Addition = Readonly<{ write: RowWriting; ingested: number; tally: RowTally }>;

/** The places of a batch's ids that have a row, and undefined for ids that only occur twice in it; by the id's text. */
function placesOfBatch(batch: RowBatch, ids: IdPlaces): Map<string, PlaceHalves | undefined> {
  const order = Array.from(batch.idOrder);
  const sought = sortedIdKeys(batch);
  const idAt = (index: number): Uint8Array => rowOf(batch, order[index] ?? 0).id;
  const places = new Map<string, PlaceHalves | undefined>(ids.findSorted(sought, idAt, batch.tested));
  for (let index = 1; index < sought.length; index += 1) {
    if (sought[index] !== sought[index - 1]) continue;
    for (const id of [idAt(index - 1), idAt(index)].map(encodeBase64url)) places.set(id, places.get(id));
  }
  return places;
}

type RemovalParts = Readonly<{
  db: Database;
  places: CanonicalPlaces;
  findable: FindableRows;
  pruned: PrunedItems;
  journal: Journal;
  beginTally: () => RowTally;
}>;

function createRemovals({
  db,
  places,
  findable,
  pruned,
  journal,
  beginTally,
}: RemovalParts): Pick<RowTable, "remove" | "prune" | "pruneStored" | "pruneDuplicates"> {
  const drop = prepare(db, `DELETE FROM items WHERE n = ${placeSql()}`);
  const dropDuplicate = prepare(db, `DELETE FROM duplicates WHERE n = ${placeSql()}`);
  const dropDuplicates = createDuplicateRemoval(db);
  const meeting = createMeeting(db, "items");
  const meetingDuplicates = createMeeting(db, "duplicates");
  const atPlaces = prepareSome(db, "items", "r.sig > 0 AND r.n IN (SELECT value FROM json_each(?))");
  /** Returns the rows that became canonical instead. */
  const dropRows = (gone: readonly TableRow[], tally: RowTally): TableRow[] => {
    findable.remove(gone, findableRow);
    for (const row of gone) {
      drop.run(row.high, row.low);
      tally.row(row, row.ingested, -1);
    }
    const promoted = gone.flatMap(({ id }) => places.promote(id, tally) ?? []);
    tally.flush();
    return promoted;
  };
  return {
    remove: (condition, parameters, limit) => {
      const tally = beginTally();
      // Duplicates first: a row that meets the condition must not become canonical.
      for (let dropped = limit; dropped === limit; ) {
        const duplicates = dropDuplicates(condition).all(...parameters, limit);
        for (const row of duplicates) journal.duplicateLeft(row);
        dropped = duplicates.length;
        tally.duplicates(-dropped);
      }
      const gone = meeting(condition)(parameters, limit);
      for (const row of gone) journal.left(row);
      for (const row of dropRows(gone, tally)) journal.came(row);
      return gone.length;
    },
    prune: (condition, parameters, limit) => {
      const gone = meeting(condition)(parameters, limit);
      pruned.add("items", gone, 0);
      dropRows(gone, beginTally());
      return gone.length;
    },
    pruneStored: (places) => {
      const all = placesJson(places);
      return removeInSteps((limit) => {
        const gone = atPlaces([all], limit);
        pruned.add("items", gone, 1);
        dropRows(gone, beginTally());
        return gone.length;
      });
    },
    pruneDuplicates: (condition, parameters, limit) => {
      const tally = beginTally();
      const gone = meetingDuplicates(condition)(parameters, limit);
      pruned.add("duplicates", gone, 0);
      for (const { high, low } of gone) dropDuplicate.run(high, low);
      tally.duplicates(-gone.length);
      tally.flush();
      return gone.length;
    },
  };
}

/** Returns the query of some rows that meet a condition. Each of the few conditions is prepared once. */
function createMeeting(db: Database, table: "items" | "duplicates"): (condition: string) => SomeRows {
  const known = new Map<string, SomeRows>();
  return (condition) => known.getOrInsertComputed(condition, () => prepareSome(db, table, condition));
}

/** Returns the query that removes some duplicates that meet a condition, and returns them. Each is prepared once. */
function createDuplicateRemoval(db: Database): (condition: string) => Query<RemovedRow> {
  const known = new Map<string, Query<RemovedRow>>();
  return (condition) =>
    known.getOrInsertComputed(condition, () =>
      prepareQuery<RemovedRow>(
        db,
        `DELETE FROM duplicates WHERE n IN (SELECT n FROM duplicates WHERE ${condition} LIMIT ?)
         RETURNING ${place}, id`,
      ),
    );
}

/** Counts the changes of one call. */
type RowTally = Readonly<{
  /** A canonical row was added (1) or removed (−1). @param ingested - Unix seconds. */
  row: (row: Pick<TableRow, "high" | "sig" | "parent">, ingested: number, change: 1 | -1) => void;
  duplicates: (change: number) => void;
  /** Passes the changes to the counters. Must be called once, after the rows are written. */
  flush: () => void;
}>;

/** Returns a function that begins a tally. */
function createTallies(db: Database, counts: Counts): () => RowTally {
  const change = prepare(
    db,
    `UPDATE blocks SET item_count = item_count + ?1,
       last_item_at = nullif(max(coalesce(last_item_at, 0), ?2), 0)
     WHERE height = ?3`,
  );
  return () => {
    const byHeight = new Map<number, BlockItems>();
    let items = 0;
    let nested = 0;
    let duplicates = 0;
    return {
      row: ({ high, sig, parent }, ingested, by) => {
        const height = Math.floor(high / transactionsPerBlockMax);
        const isItem = sig > 0;
        if (height === pendingHeight) {
          counts.add(isItem ? "pendingItems" : "pendingTransactions", by);
          return;
        }
        if (!isItem) return;
        items += by;
        if (parent !== null) nested += by;
        tallyBlock(byHeight, height, ingested, by);
      },
      duplicates: (by) => {
        duplicates += by;
      },
      flush: () => {
        for (const [height, block] of byHeight) change.run(block.items, block.latest, height);
        counts.add("items", items);
        counts.add("nestedItems", nested);
        counts.add("duplicates", duplicates);
      },
    };
  };
}

/** Change of a block's item count, and the newest time among the added items. */
type BlockItems = { items: number; latest: number };

function tallyBlock(byHeight: Map<number, BlockItems>, height: number, ingested: number, by: 1 | -1): void {
  const block = byHeight.get(height) ?? { items: 0, latest: 0 };
  block.items += by;
  if (by > 0) block.latest = Math.max(block.latest, ingested);
  byHeight.set(height, block);
}

/** The columns of a stored row that keys and counters need. */
export type TableRow = PlaceHalves &
  Readonly<{
    id: Uint8Array;
    target: Uint8Array | null;
    sig: number;
    size: number;
    parent: number | null;
    tags: Uint8Array;
    ingested: number;
    /** The owner's address, 32 bytes. */
    address: Uint8Array;
  }>;

/** Canonical places of one database. Calls run inside the writer's transaction. */
type CanonicalPlaces = Readonly<{
  /** Moves a canonical row to the duplicates, because a lower place was found. */
  demote: (place: PlaceHalves, tally: RowTally) => void;
  /** Removes a row that this process has not verified, and returns it. */
  dropUnverified: (place: PlaceHalves, tally: RowTally) => TableRow | undefined;
  /** As `dropUnverified`, of a duplicate. */
  dropUnverifiedDuplicate: (place: PlaceHalves, tally: RowTally) => void;
  /**
   * Makes the lowest duplicate of an id canonical; has no effect without duplicates.
   *
   * @returns The row. The caller adds it to the journal, unless the row before was pruned.
   */
  promote: (id: Uint8Array, tally: RowTally) => TableRow | undefined;
}>;

const place = halvesSql("n");

type CanonicalParts = Readonly<{ db: Database; findable: FindableRows; journal: Journal }>;

function createCanonicalPlaces({ db, findable, journal }: CanonicalParts): CanonicalPlaces {
  const item = prepareStored(db, "items", `r.n = ${placeSql()}`);
  const unverified = prepareStored(db, "items", `r.n = ${placeSql()} AND r.trusted = 1`);
  const drop = prepare(db, `DELETE FROM items WHERE n = ${placeSql()}`);
  const dropDuplicate = prepare(db, `DELETE FROM duplicates WHERE n = ${placeSql()} AND trusted = 1`);
  const duplicate = prepareStored(db, "duplicates", `r.n = ${placeSql()}`);
  const lowestDuplicate = prepareQuery<PlaceHalves>(
    db,
    `SELECT ${place} FROM duplicates WHERE id = ? ORDER BY n LIMIT 1`,
  );
  const toDuplicates = prepareMove(db, "items", "duplicates");
  const toItems = prepareMove(db, "duplicates", "items");

  return {
    demote: ({ high, low }, tally) => {
      const row = item.get(high, low);
      if (row === undefined) return;
      findable.remove([row], findableRow);
      journal.left(row);
      toDuplicates(row);
      tally.row(row, row.ingested, -1);
      tally.duplicates(1);
    },
    dropUnverified: ({ high, low }, tally) => {
      const row = unverified.get(high, low);
      if (row === undefined) return undefined;
      findable.remove([row], findableRow);
      journal.left(row);
      drop.run(high, low);
      tally.row(row, row.ingested, -1);
      return row;
    },
    dropUnverifiedDuplicate: ({ high, low }, tally) => {
      tally.duplicates(-dropDuplicate.run(high, low).changes);
    },
    promote: (id, tally) => {
      const next = lowestDuplicate.get(id);
      const row = next === undefined ? undefined : duplicate.get(next.high, next.low);
      if (row === undefined) return undefined;
      toItems(row);
      findable.add([findableRow(row)]);
      tally.row(row, row.ingested, 1);
      tally.duplicates(-1);
      return row;
    },
  };
}

type EvictionParts = Readonly<{ db: Database; places: CanonicalPlaces; journal: Journal }>;

/**
 * Returns a function that removes the rows of other ids that another gateway gave for the places of a batch's verified
 * rows. Usually there is no row between the first and the last place of a batch; else each of its places is looked up.
 */
function createEviction({ db, places, journal }: EvictionParts): (batch: RowBatch, tally: RowTally) => void {
  const inRange = ["items", "duplicates"].map(
    (table) => `EXISTS (SELECT 1 FROM ${table} WHERE n BETWEEN ${placeSql("?1", "?2")} AND ${placeSql("?3", "?4")})`,
  );
  const between = prepareQuery<{ found: number }>(db, `SELECT ${inRange.join(" OR ")} AS found`);
  const atPlaces = "n IN (SELECT value FROM json_each(?1)) AND trusted = 1";
  const unverified = prepareQuery<RemovedRow>(
    db,
    `SELECT ${place}, id FROM items WHERE ${atPlaces} UNION ALL SELECT ${place}, id FROM duplicates WHERE ${atPlaces}`,
  );
  const dropDuplicate = prepareQuery<RemovedRow>(
    db,
    `DELETE FROM duplicates WHERE n = ${placeSql()} AND trusted = 1 RETURNING ${place}, id`,
  );
  return (batch, tally) => {
    if (!hasVerified(batch)) return;
    const ends = [batch.high[0], batch.low[0], batch.high.at(-1), batch.low.at(-1)].map((half) => half ?? 0);
    if (between.get(...ends)?.found !== 1) return;
    const rows = verifiedRows(batch);
    const ids = new Map(rows.map(({ high, low, id }) => [`${high} ${low}`, id]));
    const found = unverified.all(placesJson(rows));
    const evicted = found.filter((row) => Buffer.compare(ids.get(`${row.high} ${row.low}`) ?? row.id, row.id) !== 0);
    // Duplicates first, so that none of them becomes canonical.
    for (const row of evicted.flatMap(({ high, low }) => dropDuplicate.all(high, low))) {
      journal.duplicateLeft(row);
      tally.duplicates(-1);
    }
    for (const at of evicted) {
      const gone = places.dropUnverified(at, tally);
      const promoted = gone === undefined ? undefined : places.promote(gone.id, tally);
      if (promoted !== undefined) journal.came(promoted);
    }
  };
}

function verifiedRows(batch: RowBatch): BatchRow[] {
  return Array.from({ length: batch.count }, (_, index) => rowOf(batch, index)).filter(({ trusted }) => trusted === 0);
}

/** A stored row with the columns that determine its keys. */
export function findableRow(row: TableRow): FindableRow {
  return { ...row, owner: row.address, tags: decodeTagBlob(row.tags) };
}

/** Prepares a query of stored rows. @param condition - SQL over the columns of `r`; never text from outside. */
function prepareStored(db: Database, table: "items" | "duplicates", condition: string): Query<TableRow> {
  return prepareQuery<TableRow>(
    db,
    `SELECT ${halvesSql("r.n")}, r.id, r.target, r.sig, r.size, r.parent, r.tags, r.ingested,
       o.address
     FROM ${table} r JOIN owners o USING (owner) WHERE ${condition}`,
  );
}

/** Reads at most `limit` rows by place, and no more than `tagBytesPerStep` of tags unless the first row has more. */
type SomeRows = (parameters: readonly SQLQueryBindings[], limit: number) => TableRow[];

/** @param condition - As of `prepareStored`. */
function prepareSome(db: Database, table: "items" | "duplicates", condition: string): SomeRows {
  const inOrder = `${condition} ORDER BY r.n LIMIT ?`;
  const sizes = prepareQuery<{ bytes: number }>(db, `SELECT length(r.tags) AS bytes FROM ${table} r WHERE ${inOrder}`);
  const rows = prepareStored(db, table, inOrder);
  return (parameters, limit) => {
    let bytes = 0;
    const all = sizes.all(...parameters, limit);
    const beyond = all.findIndex((row, index) => {
      bytes += row.bytes;
      return index > 0 && bytes > tagBytesPerStep;
    });
    return rows.all(...parameters, beyond === -1 ? all.length : beyond);
  };
}

function prepareMove(db: Database, from: string, to: string): (place: PlaceHalves) => void {
  const copy = prepare(db, `INSERT INTO ${to} SELECT ${rowColumns} FROM ${from} WHERE n = ${placeSql()}`);
  const drop = prepare(db, `DELETE FROM ${from} WHERE n = ${placeSql()}`);
  return ({ high, low }) => {
    copy.run(high, low);
    drop.run(high, low);
  };
}

/** Compact places of one database. Calls run inside the writer's transaction. */
type PrunedItems = Readonly<{
  /**
   * Stores the compact places of rows that are about to be removed from a table.
   *
   * @param stored - 1 when the columnar store has the rows.
   */
  add: (table: "items" | "duplicates", rows: readonly TableRow[], stored: 0 | 1) => void;
  /** Removes the compact places of rows that were added. */
  replaced: (rows: Pick<RowBatch, "high" | "low">) => void;
}>;

function createPrunedItems(db: Database, counts: Counts): PrunedItems {
  const columns = "n, fine, id, owner, head, size, sig, parent, digest";
  const copyFrom = (table: string) =>
    prepare(
      db,
      `INSERT OR REPLACE INTO pruned_items (${columns}, type, stored)
       SELECT ${columns}, ?, ? FROM ${table} WHERE n = ${placeSql()}`,
    );
  const copy = { items: copyFrom("items"), duplicates: copyFrom("duplicates") };
  const addType = prepareQuery<{ type: number }>(
    db,
    `INSERT INTO content_types (text) VALUES (?) ON CONFLICT DO UPDATE SET text = excluded.text RETURNING type`,
  );
  const drop = prepareQuery<{ stored: number }>(
    db,
    `DELETE FROM pruned_items WHERE n = ${placeSql()} RETURNING stored`,
  );
  const first = prepareQuery<{ n: number }>(db, "SELECT 1 AS n FROM pruned_items LIMIT 1");
  // Most indexes are never pruned: then adding a row needs no look-up here.
  let mayHaveSome = first.get() !== undefined;

  const typeOf = (row: TableRow): number | null => {
    const text = writeContentTags(contentTags(decodeTagBlob(row.tags)));
    return text === null ? null : (addType.get(text)?.type ?? null);
  };

  return {
    add: (table, rows, stored) => {
      if (rows.length > 0) mayHaveSome = true;
      for (const row of rows) copy[table].run(typeOf(row), stored, row.high, row.low);
      if (stored === 1) counts.add("storedItems", rows.length);
    },
    replaced: ({ high, low }) => {
      if (!mayHaveSome) return;
      high.forEach((each, index) => {
        if (drop.get(each, low[index] ?? 0)?.stored === 1) counts.add("storedItems", -1);
      });
    },
  };
}
