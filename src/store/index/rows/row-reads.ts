/**
 * Reads the rows at places: first their own columns, then, for those that a page returns, the records that rows share.
 *
 * Owners, blocks and parents are read once for all rows of a page that have them. Joining them to each row costs twice
 * the time of a page (measured), because SQLite returns a copy of their bytes for each row.
 * Source: docs/reference/index-layout.md#pages-of-results.
 * @module
 */
import type { Database } from "bun:sqlite";
import { assert } from "../../../lib/assert.ts";
import { prepareQuery } from "../../sqlite.ts";
import type { PageColumns } from "../index-types.ts";
import type { EncodedAmounts, EncodedBlock, EncodedOwner, EncodedRow, StoredColumns } from "../pages/encoded-types.ts";
import { compareHalves, heightOfHigh, type PlaceHalves, packHalves, parentLow, pendingHeight } from "../place.ts";
import { halvesSql } from "../place-sql.ts";

/** The columns of a row in `items`, and the number of its owner. */
export type ItemColumns = StoredColumns & Readonly<{ owner: number }>;

/** Rows of one connection. */
export type RowReads = Readonly<{
  /** The rows at places, in order. */
  at: (places: readonly PlaceHalves[], wantsTags: boolean, order: "asc" | "desc") => readonly ItemColumns[];
  /** Adds the selected records to rows. */
  complete: (rows: readonly ItemColumns[], columns: PageColumns) => EncodedRow[];
  /** The address of an owner, 32 bytes. */
  address: (owner: number) => Uint8Array;
}>;

export function createRowReads(db: Database): RowReads {
  const itemsWith = (tags: string) =>
    prepareQuery<ItemColumns>(
      db,
      `SELECT ${halvesSql("i.n")}, i.fine, i.id, i.owner, i.target, i.anchor, i.head, i.size,
         i.sig, i.parent, i.ingested, ${tags} AS tags
       FROM json_each(?) j CROSS JOIN items i ON i.n = j.value`,
    );
  const withTags = itemsWith("i.tags");
  const withoutTags = itemsWith("NULL");
  const address = prepareQuery<{ address: Uint8Array }>(db, "SELECT address FROM owners WHERE owner = ?");
  const ownersOf = createOwnerReads(db);
  const blocksOf = createBlockReads(db);
  const parentsOf = createParentReads(db);
  const amountsOf = createAmountReads(db);
  return {
    at: (places, wantsTags, order) => {
      if (places.length === 0) return [];
      const rows = (wantsTags ? withTags : withoutTags).all(placesJson(places));
      return rows.sort(order === "asc" ? compareHalves : (a, b) => compareHalves(b, a));
    },
    complete: (rows, columns) => {
      const owners = ownersOf(rows, columns.ownerKey);
      const blocks = columns.block ? blocksOf(rows) : undefined;
      const parents = columns.parent ? parentsOf(rows) : undefined;
      const amounts = amountsOf(rows);
      return rows.map((stored, index) => {
        const owner = owners.get(stored.owner);
        assert(owner !== undefined, "a row has an owner");
        return {
          stored,
          owner,
          block: blocks?.get(heightOfHigh(stored.high)),
          parentId: parents?.[index],
          amounts: stored.sig < 0 ? amounts?.get(placeText(stored)) : undefined,
        };
      });
    },
    address: (owner) => {
      const found = address.get(owner);
      assert(found !== undefined, "a row has an owner");
      return found.address;
    },
  };
}

/** Places as a JSON list of packed numbers. */
export function placesJson(places: readonly PlaceHalves[]): string {
  return `[${places.map(placeText).join(",")}]`;
}

function placeText(place: PlaceHalves): string {
  return String(packHalves(place));
}

function createOwnerReads(db: Database) {
  type Row = Readonly<{ owner: number; address: Uint8Array; key: Uint8Array | null }>;
  const ownersWith = (key: string) =>
    prepareQuery<Row>(
      db,
      `SELECT o.owner, o.address, ${key} AS key FROM json_each(?) j CROSS JOIN owners o ON o.owner = j.value`,
    );
  const withKeys = ownersWith("o.key");
  const withoutKeys = ownersWith("NULL");
  return (rows: readonly ItemColumns[], wantsKeys: boolean): ReadonlyMap<number, EncodedOwner> => {
    const numbers = new Set(rows.map(({ owner }) => owner));
    const found = (wantsKeys ? withKeys : withoutKeys).all(`[${[...numbers].join(",")}]`);
    return new Map(found.map((row) => [row.owner, row]));
  };
}

function createBlockReads(db: Database) {
  const blocks = prepareQuery<EncodedBlock>(
    db,
    `SELECT b.height, b.hash, b.previous, b.timestamp FROM json_each(?) j CROSS JOIN blocks b ON b.height = j.value`,
  );
  return (rows: readonly PlaceHalves[]): ReadonlyMap<number, EncodedBlock> => {
    const heights = new Set(rows.map(({ high }) => heightOfHigh(high)));
    return new Map(blocks.all(`[${[...heights].join(",")}]`).map((block) => [block.height, block]));
  };
}

/** Tables that may have the parent of an item; the index filter may have excluded its row. */
const parentTables = ["items", "duplicates", "bundles", "pruned_items"];

function createParentReads(db: Database) {
  const ids = parentTables.map((table) => `(SELECT id FROM ${table} WHERE n = j.value)`).join(", ");
  const query = prepareQuery<Readonly<{ at: number; id: Uint8Array | null }>>(
    db,
    `SELECT j.key AS at, coalesce(${ids}) AS id FROM json_each(?) j`,
  );
  return (rows: readonly ItemColumns[]): readonly (Uint8Array | undefined)[] => {
    const places: PlaceHalves[] = [];
    // Most rows have the parent of the row before.
    let last: PlaceHalves | undefined;
    const numbers = rows.map((row) => {
      if (row.sig < 0 || heightOfHigh(row.high) === pendingHeight) return -1;
      const { high } = row;
      const low = parentLow(row.parent);
      if (last?.high !== high || last.low !== low) {
        last = { high, low };
        places.push(last);
      }
      return places.length - 1;
    });
    if (places.length === 0) return [];
    const found: (Uint8Array | undefined)[] = [];
    for (const { at, id } of query.all(placesJson(places))) found[at] = id ?? undefined;
    return numbers.map((number) => found[number]);
  };
}

function createAmountReads(db: Database) {
  const query = prepareQuery<PlaceHalves & EncodedAmounts>(
    db,
    `SELECT ${halvesSql("t.n")}, t.quantity, t.reward, t.format
     FROM json_each(?) j CROSS JOIN transactions t ON t.n = j.value`,
  );
  return (rows: readonly ItemColumns[]): ReadonlyMap<string, EncodedAmounts> | undefined => {
    const transactions = rows.filter(({ sig }) => sig < 0);
    if (transactions.length === 0) return undefined;
    return new Map(query.all(placesJson(transactions)).map((row) => [placeText(row), row]));
  };
}
