/**
 * Locations of ids: where the bytes of a transaction or data item are.
 * @module
 */
import type { Database } from "bun:sqlite";
import { type Id, idBytes, idFromBytes } from "../../arweave/id.ts";
import { prepareQuery } from "../sqlite.ts";
import type { FilterKeys } from "./filter-key.ts";
import { type Place, pendingHeight, placeHigh, placeOfHalves } from "./place.ts";
import { type Located, stableDepth } from "./rows.ts";
import { addressFromBytes, textOfStored } from "./stored-row.ts";
import { contentTags, decodeTagBlob, readContentTags } from "./tag-blob.ts";
import type { IndexReader } from "./types.ts";

/** The reader's calls for ids. */
export type Locations = Pick<IndexReader, "locate" | "placeOf" | "placesOf">;

type PlaceRow = Readonly<{ high: number; low: number; fine: number }>;

type LocatedRow = PlaceRow &
  Readonly<{
    sig: number;
    head: number;
    size: number;
    parent: number | null;
    /** Null for a pruned row. */
    tags: Uint8Array | null;
    /** For a pruned row: JSON of Content-Type and Content-Encoding. */
    type: string | null;
    digest: Uint8Array | null;
    trusted: number;
    address: Uint8Array;
    tip: number | null;
    format: 1 | 2 | null;
    dataRoot: Uint8Array | null;
    weaveStart: string | null;
  }>;

type RootRow = Readonly<{ id: Uint8Array; size: number }>;

/** Joins the transaction at the row's place or, for an item, at its root. */
const locatedSql = (own: string, from: string): string => `SELECT i.n >> 31 AS high, i.n & 0x7fffffff AS low,
    i.fine, i.sig, i.head, i.size, i.parent, i.digest, ${own}, o.address,
    (SELECT height FROM blocks WHERE followed = 1 ORDER BY height DESC LIMIT 1) AS tip,
    t.format, t.data_root AS dataRoot, CAST(t.weave_start AS TEXT) AS weaveStart
  FROM ${from} JOIN owners o USING (owner)
    LEFT JOIN transactions t ON t.n = CASE WHEN i.sig < 0 THEN i.n ELSE (i.n >> 31) << 31 END`;

const rowSql = `${locatedSql("i.tags, NULL AS type, i.trusted", "postings p CROSS JOIN items i ON i.n = p.n")}
  WHERE p.key = ? AND i.id = ?`;

const prunedSql = `${locatedSql(
  "NULL AS tags, (SELECT text FROM content_types c WHERE c.type = i.type) AS type, 0 AS trusted",
  "pruned_items i",
)} WHERE substr(i.id, 1, 8) = substr(?1, 1, 8) AND i.id = ?1 ORDER BY i.n LIMIT 1`;

export function createLocations(db: Database, keys: FilterKeys): Locations {
  const located = prepareQuery<LocatedRow>(db, rowSql);
  const pruned = prepareQuery<LocatedRow>(db, prunedSql);
  const canonical = prepareQuery<PlaceRow>(
    db,
    `SELECT i.n >> 31 AS high, i.n & 0x7fffffff AS low, i.fine
     FROM postings p CROSS JOIN items i ON i.n = p.n WHERE p.key = ? AND i.id = ?`,
  );
  const others = prepareQuery<PlaceRow>(
    db,
    "SELECT n >> 31 AS high, n & 0x7fffffff AS low, fine FROM duplicates WHERE id = ? ORDER BY n",
  );
  const at = (columns: string, tables: readonly string[]) =>
    prepareQuery<RootRow>(
      db,
      tables.map((table) => `SELECT ${columns} FROM ${table} WHERE n = (?1 << 31) | ?2`).join(" UNION ALL "),
    );
  const rootAt = at("id, size", ["items", "duplicates"]);
  const parentAt = at("id, 0 AS size", ["items", "duplicates", "bundles"]);

  return {
    placeOf: (id) => {
      const bytes = idBytes(id);
      const row = canonical.get(keys.id(bytes), bytes);
      return row === undefined ? undefined : placeOfRow(row);
    },
    placesOf: (id) => {
      const bytes = idBytes(id);
      return [...canonical.all(keys.id(bytes), bytes), ...others.all(bytes)].map(placeOfRow);
    },
    locate: (id) => {
      const bytes = idBytes(id);
      const found = located.get(keys.id(bytes), bytes);
      // A pruned item that was announced or uploaded again is still located in its block.
      const isElsewhere = found === undefined || (found.sig > 0 && isPending(found));
      const row = isElsewhere ? (pruned.get(bytes) ?? found) : found;
      if (row === undefined) return undefined;
      if (row.sig < 0 || isPending(row)) return locatedAlone(id, row);
      const root = rootAt.get(row.high, 0);
      const parent = row.parent === null ? root : parentAt.get(row.high, Math.floor(row.parent / 64));
      return locatedWithin(id, row, root, parent);
    },
  };
}

function placeOfRow({ high, low, fine }: PlaceRow): Place {
  return placeOfHalves(high, low === 0 ? -1 : low * 64 + fine);
}

function isPending({ high }: Readonly<{ high: number }>): boolean {
  return high >= placeHigh({ height: pendingHeight, txIndex: 0, offset: -1 });
}

type Common = Omit<Located, "kind" | "rootId" | "dataOffset" | "itemOffset" | "rootSize">;

function common(id: Id, row: LocatedRow): Common {
  const place = placeOfRow(row);
  const [contentType, contentEncoding] = contentTagsOf(row);
  return {
    id,
    place,
    size: row.size,
    headerSize: row.head,
    signatureType: row.sig,
    ownerAddress: addressFromBytes(row.address),
    ...(contentType === undefined ? {} : { contentType }),
    ...(contentEncoding === undefined ? {} : { contentEncoding }),
    ...(row.digest === null ? {} : { digest: row.digest }),
    verified: row.trusted === 0,
    stable: row.tip !== null && place.height <= row.tip - stableDepth,
    pending: isPending(row),
    ...(row.format === null ? {} : { rootFormat: row.format }),
    dataRoot: textOfStored(row.dataRoot),
    ...(row.weaveStart === null ? {} : { weaveStart: BigInt(row.weaveStart) }),
  };
}

/** The location of a transaction, or of a pending item, which has no root yet. */
function locatedAlone(id: Id, row: LocatedRow): Located {
  return {
    ...common(id, row),
    kind: row.sig < 0 ? "transaction" : "item",
    rootId: id,
    dataOffset: 0,
    itemOffset: 0,
    rootSize: row.size,
  };
}

function locatedWithin(id: Id, row: LocatedRow, root: RootRow | undefined, parent: RootRow | undefined): Located {
  const itemOffset = row.low * 64 + row.fine;
  return {
    ...common(id, row),
    kind: "item",
    rootId: root === undefined ? id : idFromBytes(root.id),
    dataOffset: itemOffset + row.head,
    itemOffset,
    rootSize: root?.size ?? 0,
    ...(parent === undefined ? {} : { parentId: idFromBytes(parent.id) }),
  };
}

function contentTagsOf({ tags, type }: LocatedRow): readonly (string | undefined)[] {
  return tags === null ? readContentTags(type) : contentTags(decodeTagBlob(tags));
}
