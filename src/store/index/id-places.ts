/**
 * Looks up the places of ids: of recent rows in the B-tree of postings, of all other rows in the parts.
 *
 * A key is a hash, and a part may name a row that was removed, so the id of the row at a place decides.
 * Source: docs/reference/index-layout.md#filters-of-parts.
 * @module
 */
import type { Database } from "bun:sqlite";
import { encodeBase64url } from "../../lib/base64url.ts";
import { prepareQuery } from "../sqlite.ts";
import type { FilterKeys } from "./filter-key.ts";
import type { PartReads, TestedIds } from "./parts/part-reads.ts";
import type { PlaceHalves } from "./place.ts";
import { halvesSql, placeSql } from "./place-sql.ts";

/** The places of ids in one database. Calls run inside a snapshot, or inside the writer's transaction. */
export type IdPlaces = Readonly<{
  /** The canonical place of an id of 32 bytes; undefined without a row. */
  find: (id: Uint8Array) => PlaceHalves | undefined;
  /** As `find`, for many ids; by the id's text. */
  findMany: (ids: readonly Uint8Array[]) => Map<string, PlaceHalves>;
  /** As `findMany`, for ids in the order of their keys. @param tested - What is known of them; by default nothing. */
  findSorted: (
    keys: readonly number[],
    idAt: (index: number) => Uint8Array,
    tested?: TestedIds,
  ) => Map<string, PlaceHalves>;
}>;

/** Ids looked up in one statement. */
const idsPerLookup = 2_000;

export function createIdPlaces(db: Database, keys: Pick<FilterKeys, "id">, parts: PartReads): IdPlaces {
  // A join takes ten times as long, also where no row has the key (measured).
  const recent = prepareQuery<PlaceHalves>(
    db,
    `SELECT ${halvesSql("n")}
     FROM postings p WHERE key = ? AND (SELECT id FROM items i WHERE i.n = p.n) = ?`,
  );
  const manyRecent = prepareQuery<PlaceHalves & Readonly<{ id: Uint8Array }>>(
    db,
    `SELECT ${halvesSql("i.n")}, i.id
     FROM json_each(?) j CROSS JOIN postings p ON p.key = j.value CROSS JOIN items i ON i.n = p.n`,
  );
  const isAt = prepareQuery<{ n: number }>(db, `SELECT 1 AS n FROM items WHERE n = ${placeSql()} AND id = ?`);

  const isOf = (id: Uint8Array, { high, low }: PlaceHalves): boolean => isAt.get(high, low, id) !== undefined;
  // Sorted by key, so that consecutive look-ups read the same page of postings, or the next block of a filter.
  const findSorted: IdPlaces["findSorted"] = (sought, idAt, tested) => {
    const places = new Map<string, PlaceHalves>();
    for (let start = 0; start < sought.length; start += idsPerLookup) {
      for (const { id, high, low } of manyRecent.all(`[${sought.slice(start, start + idsPerLookup).join(",")}]`))
        places.set(encodeBase64url(id), { high, low });
    }
    const candidates = tested ? parts.placesOfTestedIds(sought, tested) : parts.placesOfIds(sought);
    for (const { index, place } of candidates) {
      const id = idAt(index);
      if (isOf(id, place)) places.set(encodeBase64url(id), place);
    }
    return places;
  };
  return {
    find: (id) => {
      const key = keys.id(id);
      return recent.get(key, id) ?? parts.placesOfIds([key]).find(({ place }) => isOf(id, place))?.place;
    },
    findMany: (ids) => {
      const sought = ids.map((id) => ({ id, key: keys.id(id) })).sort((a, b) => a.key - b.key);
      return findSorted(
        sought.map(({ key }) => key),
        (index) => sought[index]?.id ?? new Uint8Array(0),
      );
    },
    findSorted,
  };
}
