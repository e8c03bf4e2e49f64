/**
 * Rows of the index with their postings, for the writer: adding and removing.
 * @module
 */
import type { Database, SQLQueryBindings } from "bun:sqlite";
import { prepare, type Query } from "../sqlite.ts";
import {
  type CanonicalPlaces,
  createCanonicalPlaces,
  findableRow,
  type Halves,
  prepareStored,
  type TableRow,
} from "./canonical-places.ts";
import type { Counts } from "./counts.ts";
import type { FilterKeys } from "./filter-key.ts";
import { createFindableRows, type FindableRows } from "./findable-rows.ts";
import type { Owners } from "./owners.ts";
import type { PartSizes } from "./parts/table.ts";
import { createPrunedItems, type PrunedItems } from "./pruned-items.ts";
import { createTallies, type RowTally } from "./row-tally.ts";
import { rowColumns, rowValues, type StoredRow } from "./stored-row.ts";
import { encodeTagBlob } from "./tag-blob.ts";

/** What became of rows that were added. */
export type RowsAdded = Readonly<{ added: number; duplicated: number; repeated: number }>;

/** The rows of one database, for the writer, inside its transaction. */
export type RowTable = Readonly<{
  /**
   * Adds rows, each at the canonical place of its id or among the duplicates.
   *
   * @param ingested - Unix seconds.
   */
  add: (rows: readonly StoredRow[], ingested: number) => RowsAdded;
  /** The canonical places of those ids that have a row, by the id's text. */
  find: (rows: readonly Pick<StoredRow, "id">[]) => ReadonlyMap<string, Halves>;
  /**
   * Removes rows and duplicates that meet a condition; the ids' other places take over.
   *
   * @param condition - SQL over `rowColumns`, ours alone, never text from outside.
   * @param limit - At most so many canonical rows; call again until fewer go.
   * @returns Canonical rows that went.
   */
  remove: (condition: string, parameters: readonly SQLQueryBindings[], limit: number) => number;
  /** As `remove`, but compact places of what goes stay (pruned-items.ts). Prune the duplicates first. */
  prune: (condition: string, parameters: readonly SQLQueryBindings[], limit: number) => number;
  /** The same of duplicates, so that none of them takes over when `prune` goes step by step. */
  pruneDuplicates: (condition: string, parameters: readonly SQLQueryBindings[], limit: number) => number;
  /** Packs rows that are stable by now more densely; answers whether there were enough of them. */
  seal: () => boolean;
}>;

/** What the table works with; all of one database. */
export type RowTableParts = Readonly<{
  db: Database;
  keys: FilterKeys;
  owners: Owners;
  counts: Counts;
  partSizes: PartSizes;
}>;

/** Opens the rows of one database. */
export function createRowTable({ db, keys, owners, counts, partSizes }: RowTableParts): RowTable {
  const unsealed = prepareStored(
    db,
    "items",
    "r.n IN (SELECT n FROM unsealed WHERE n < ? ORDER BY n LIMIT ?) ORDER BY r.n",
  );
  const findable = createFindableRows(db, keys, partSizes, (below, limit) =>
    unsealed.all(below, limit).map(findableRow),
  );
  const places = createCanonicalPlaces(db, keys, findable);
  const beginTally = createTallies(db, counts);
  const values = `(${rowColumns}) VALUES ((? << 31) | ?, ${"?, ".repeat(12)}?)`;
  const insert = prepare(db, `INSERT INTO items ${values}`);
  const insertDuplicate = prepare(db, `INSERT OR IGNORE INTO duplicates ${values}`);
  const pruned = createPrunedItems(db);

  const write = (statement: typeof insert, row: StoredRow, ingested: number): number => {
    const owner = owners.numberOf(row.ownerAddress, row.ownerKey);
    return statement.run(...rowValues(row, owner, encodeTagBlob(row.tags), ingested)).changes;
  };
  const addOne = (
    row: StoredRow,
    standing: Halves | undefined,
    ingested: number,
    tally: RowTally,
  ): "added" | "duplicated" | "repeated" => {
    const order = standing === undefined ? 1 : compareHalves(standing, row);
    if (order === 0) return "repeated";
    if (order < 0) {
      tally.duplicates(write(insertDuplicate, row, ingested));
      return "duplicated";
    }
    if (standing !== undefined) places.demote(standing, tally);
    write(insert, row, ingested);
    tally.row({ ...row, ingested }, 1);
    return "added";
  };
  return {
    add: (rows, ingested) => {
      const ordered = rows.toSorted(compareHalves);
      const standing = places.find(ordered);
      const tally = beginTally();
      const fresh: StoredRow[] = [];
      let duplicated = 0;
      for (const row of ordered) {
        const outcome = addOne(row, standing.get(row.idText), ingested, tally);
        if (outcome === "duplicated") duplicated += 1;
        if (outcome !== "added") continue;
        standing.set(row.idText, row);
        fresh.push(row);
      }
      pruned.replaced(ordered);
      findable.add(fresh);
      tally.flush();
      return { added: fresh.length, duplicated, repeated: rows.length - fresh.length - duplicated };
    },
    find: places.find,
    ...createRemovals({ db, places, findable, pruned, beginTally }),
    seal: findable.seal,
  };
}

type RemovalParts = Readonly<{
  db: Database;
  places: CanonicalPlaces;
  findable: FindableRows;
  pruned: PrunedItems;
  beginTally: () => RowTally;
}>;

function createRemovals({
  db,
  places,
  findable,
  pruned,
  beginTally,
}: RemovalParts): Pick<RowTable, "remove" | "prune" | "pruneDuplicates"> {
  const drop = prepare(db, "DELETE FROM items WHERE n = (? << 31) | ?");
  const dropDuplicate = prepare(db, "DELETE FROM duplicates WHERE n = (? << 31) | ?");
  const meeting = createMeeting(db, "items");
  const meetingDuplicates = createMeeting(db, "duplicates");
  const dropRows = (gone: readonly TableRow[], tally: RowTally): number => {
    findable.remove(gone.map(findableRow));
    for (const row of gone) {
      drop.run(row.high, row.low);
      tally.row(row, -1);
    }
    for (const row of gone) places.promote(row.id, tally);
    tally.flush();
    return gone.length;
  };
  return {
    remove: (condition, parameters, limit) => {
      const tally = beginTally();
      // Duplicates first: what meets the condition must not take over.
      removeDuplicates(db, condition, parameters, tally);
      return dropRows(meeting(condition).all(...parameters, limit), tally);
    },
    prune: (condition, parameters, limit) => {
      const gone = meeting(condition).all(...parameters, limit);
      pruned.keep("items", gone);
      return dropRows(gone, beginTally());
    },
    pruneDuplicates: (condition, parameters, limit) => {
      const tally = beginTally();
      const gone = meetingDuplicates(condition).all(...parameters, limit);
      pruned.keep("duplicates", gone);
      for (const { high, low } of gone) dropDuplicate.run(high, low);
      tally.duplicates(-gone.length);
      tally.flush();
      return gone.length;
    },
  };
}

/** Answers the query of the rows that meet a condition; there are few conditions, each is prepared once. */
function createMeeting(db: Database, table: "items" | "duplicates"): (condition: string) => Query<TableRow> {
  const known = new Map<string, Query<TableRow>>();
  return (condition) => {
    const query = known.get(condition) ?? prepareStored(db, table, `${condition} ORDER BY r.n LIMIT ?`);
    known.set(condition, query);
    return query;
  };
}

function compareHalves(a: Halves, b: Halves): number {
  return a.high - b.high || a.low - b.low;
}

function removeDuplicates(
  db: Database,
  condition: string,
  parameters: readonly SQLQueryBindings[],
  tally: RowTally,
): void {
  tally.duplicates(-db.run(`DELETE FROM duplicates WHERE ${condition}`, [...parameters]).changes);
}
