/**
 * The rule that an id has one canonical place, its lowest: finding it, and moving rows in and out of it.
 *
 * Rows at other places stand in `duplicates`, are found by no filter, and take over in the same transaction in which
 * the canonical row goes.
 * Source: docs/reference/index-layout.md#one-place-an-id.
 * @module
 */
import type { Database } from "bun:sqlite";
import { encodeBase64url } from "../../lib/base64url.ts";
import { prepare, prepareQuery, type Query } from "../sqlite.ts";
import type { FilterKeys } from "./filter-key.ts";
import type { FindableRow, FindableRows } from "./findable-rows.ts";
import type { RowTally } from "./row-tally.ts";
import { rowColumns, type StoredRow } from "./stored-row.ts";
import { decodeTagBlob } from "./tag-blob.ts";

/** A place in its upper 32 and lower 31 bits. */
export type Halves = Readonly<{ high: number; low: number }>;

/** What keys and counts need of a row that is stored. */
export type TableRow = Halves &
  Readonly<{
    id: Uint8Array;
    target: Uint8Array | null;
    sig: number;
    parent: number | null;
    tags: Uint8Array;
    ingested: number;
    /** The owner's, 32 bytes. */
    address: Uint8Array;
  }>;

/** Canonical places of one database, for the writer, inside its transaction. */
export type CanonicalPlaces = Readonly<{
  /** Places of those ids that have a row, by the id's text. */
  find: (rows: readonly Pick<StoredRow, "id">[]) => Map<string, Halves>;
  /** Moves a canonical row to the duplicates: a lower place was found. */
  demote: (place: Halves, tally: RowTally) => void;
  /** Makes the lowest duplicate of an id canonical; nothing happens when it has none. */
  promote: (id: Uint8Array, tally: RowTally) => void;
}>;

/** Ids looked up in one statement. */
const idsPerLookup = 2_000;

const place = "n >> 31 AS high, n & 0x7fffffff AS low";

/** Opens the canonical places of one database. */
export function createCanonicalPlaces(db: Database, keys: FilterKeys, findable: FindableRows): CanonicalPlaces {
  const findMany = prepareQuery<Halves & Readonly<{ id: Uint8Array }>>(
    db,
    `SELECT i.n >> 31 AS high, i.n & 0x7fffffff AS low, i.id
     FROM json_each(?) j CROSS JOIN postings p ON p.key = j.value CROSS JOIN items i ON i.n = p.n`,
  );
  const item = prepareStored(db, "items", "r.n = (? << 31) | ?");
  const duplicate = prepareStored(db, "duplicates", "r.n = (? << 31) | ?");
  const lowestDuplicate = prepareQuery<Halves>(db, `SELECT ${place} FROM duplicates WHERE id = ? ORDER BY n LIMIT 1`);
  const toDuplicates = prepareMove(db, "items", "duplicates");
  const toItems = prepareMove(db, "duplicates", "items");

  return {
    find: (rows) => {
      const places = new Map<string, Halves>();
      // In key order, so that one page of postings serves its neighbours.
      const sought = Float64Array.from(rows, (row) => keys.id(row.id)).sort();
      for (let start = 0; start < sought.length; start += idsPerLookup) {
        const part = `[${sought.subarray(start, start + idsPerLookup).join(",")}]`;
        for (const found of findMany.all(part)) places.set(encodeBase64url(found.id), found);
      }
      return places;
    },
    demote: ({ high, low }, tally) => {
      const row = item.get(high, low);
      if (row === undefined) return;
      findable.remove([findableRow(row)]);
      toDuplicates(row);
      tally.row(row, -1);
      tally.duplicates(1);
    },
    promote: (id, tally) => {
      const next = lowestDuplicate.get(id);
      const row = next === undefined ? undefined : duplicate.get(next.high, next.low);
      if (row === undefined) return;
      toItems(row);
      findable.add([findableRow(row)]);
      tally.row(row, 1);
      tally.duplicates(-1);
    },
  };
}

/** What filters find a stored row by. */
export function findableRow(row: TableRow): FindableRow {
  return { ...row, owner: row.address, tags: decodeTagBlob(row.tags) };
}

/**
 * Prepares the reading of kept rows.
 *
 * @param condition - SQL over the columns of `r`, ours alone, never text from outside.
 */
export function prepareStored(db: Database, table: "items" | "duplicates", condition: string): Query<TableRow> {
  return prepareQuery<TableRow>(
    db,
    `SELECT r.n >> 31 AS high, r.n & 0x7fffffff AS low, r.id, r.target, r.sig, r.parent, r.tags, r.ingested,
       o.address
     FROM ${table} r JOIN owners o USING (owner) WHERE ${condition}`,
  );
}

function prepareMove(db: Database, from: string, to: string): (place: Halves) => void {
  const copy = prepare(db, `INSERT INTO ${to} SELECT ${rowColumns} FROM ${from} WHERE n = (? << 31) | ?`);
  const drop = prepare(db, `DELETE FROM ${from} WHERE n = (? << 31) | ?`);
  return ({ high, low }) => {
    copy.run(high, low);
    drop.run(high, low);
  };
}
