/**
 * Compact places of data items whose rows were pruned, for the writer. Their bytes are still served by id; no query
 * lists them.
 *
 * A compact place is removed when the item is indexed again at that place, and when its block is rolled back.
 * @module
 */
import type { Database } from "bun:sqlite";
import { prepare, prepareQuery } from "../sqlite.ts";
import type { Halves, TableRow } from "./canonical-places.ts";
import { contentTags, writeContentTags } from "./content-tags.ts";
import { decodeTagBlob } from "./tag-blob.ts";

/** Compact places of one database, for the writer, inside its transaction. */
export type PrunedItems = Readonly<{
  /** Copies what stays of rows that are about to be removed from a table. */
  keep: (table: "items" | "duplicates", rows: readonly TableRow[]) => void;
  /** Removes the compact places that rows were written to. */
  replaced: (rows: readonly Halves[]) => void;
}>;

/** Opens the compact places of one database. */
export function createPrunedItems(db: Database): PrunedItems {
  const columns = "n, fine, id, owner, head, size, sig, parent, digest";
  const copyFrom = (table: string) =>
    prepare(
      db,
      `INSERT OR REPLACE INTO pruned_items (${columns}, type)
       SELECT ${columns}, ? FROM ${table} WHERE n = (? << 31) | ?`,
    );
  const copy = { items: copyFrom("items"), duplicates: copyFrom("duplicates") };
  const addType = prepareQuery<{ type: number }>(
    db,
    `INSERT INTO content_types (text) VALUES (?) ON CONFLICT DO UPDATE SET text = excluded.text RETURNING type`,
  );
  const drop = prepare(db, "DELETE FROM pruned_items WHERE n = (? << 31) | ?");
  const first = prepareQuery<{ n: number }>(db, "SELECT 1 AS n FROM pruned_items LIMIT 1");
  // Most indexes are never pruned: then a row that is added costs no look-up here.
  let mayHaveSome = first.get() !== undefined;

  const typeOf = (row: TableRow): number | null => {
    const text = writeContentTags(contentTags(decodeTagBlob(row.tags)));
    return text === null ? null : (addType.get(text)?.type ?? null);
  };

  return {
    keep: (table, rows) => {
      if (rows.length > 0) mayHaveSome = true;
      for (const row of rows) copy[table].run(typeOf(row), row.high, row.low);
    },
    replaced: (rows) => {
      if (mayHaveSome) for (const { high, low } of rows) drop.run(high, low);
    },
  };
}
