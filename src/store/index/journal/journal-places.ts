/**
 * Looks up where rows are, for the journal: their block, and the bundle that contains them.
 * Source: docs/reference/index-layout.md#journal.
 * @module
 */
import type { Database } from "bun:sqlite";
import { prepareQuery } from "../../sqlite.ts";
import { parentLow, pendingHeight } from "../place.ts";
import { placeSql } from "../place-sql.ts";
import { heightOfHigh, type JournalBlock, type JournalPlace, type JournalRow } from "./change-record.ts";

/** A row that is no longer in its table. */
export type RemovedRow = Pick<JournalRow, "high" | "low" | "id">;

/** Places of the rows of one transaction. Rows of one bundle share one object. */
export type PlaceLookup = Readonly<{
  /** Undefined for a pending row. */
  of: (row: JournalRow) => JournalPlace | undefined;
  /** Notes the id of a removed row: it may contain items that are removed after it. */
  remember: (row: RemovedRow) => void;
  clear: () => void;
}>;

export function createPlaceLookup(db: Database): PlaceLookup {
  const block = prepareQuery<JournalBlock>(db, "SELECT height, hash, previous, timestamp FROM blocks WHERE height = ?");
  // A bundle that the index filter excluded has only a row in `bundles`.
  const idAt = prepareQuery<{ id: Uint8Array }>(
    db,
    ["items", "duplicates", "bundles", "pruned_items"]
      .map((table) => `SELECT id FROM ${table} WHERE n = ${placeSql("?1", "?2")}`)
      .join(" UNION ALL "),
  );
  const blocks = new Map<number, JournalBlock | undefined>();
  const places = new Map<string, JournalPlace>();
  const removed = new Map<string, Uint8Array>();

  return {
    of: (row) => {
      const height = heightOfHigh(row.high);
      if (height === pendingHeight) return undefined;
      const low = row.sig < 0 ? undefined : parentLow(row.parent);
      const key = low === undefined ? `${height}` : keyOf(row.high, low);
      return places.getOrInsertComputed(key, () => ({
        height,
        block: blocks.getOrInsertComputed(height, () => block.get(height) ?? undefined),
        bundle: low === undefined ? undefined : (idAt.get(row.high, low)?.id ?? removed.get(key)),
      }));
    },
    remember: ({ high, low, id }) => {
      removed.set(keyOf(high, low), id);
    },
    clear: () => {
      blocks.clear();
      places.clear();
      removed.clear();
    },
  };
}

function keyOf(high: number, low: number): string {
  return `${high} ${low}`;
}
