/**
 * The statements of the queue of bundles (bundle-table.ts): each reads one state or writes the next.
 * Source: docs/reference/index-layout.md#bundles.
 * @module
 */
import type { Database } from "bun:sqlite";
import { prepare, prepareQuery } from "../../sqlite.ts";
import { halvesSql, placeSql, rootSql } from "../place-sql.ts";

/** A bundle that is due. */
export type DueRow = Readonly<{
  high: number;
  low: number;
  fine: number;
  id: Uint8Array;
  parent: number | null;
  head: number;
  size: number;
  depth: number;
  bypass: number;
  state: string;
  next: number;
  matched: number;
  attempts: number;
  root: Uint8Array | null;
}>;

/** Counts of a range of bundles. */
export type Sums = Readonly<{
  bundles: number;
  queued: number;
  failed: number;
  items: number;
  matched: number;
}>;

/** Prepared statements; `n` is bound in two halves. */
export type BundleSteps = ReturnType<typeof prepareBundleSteps>;

/** Whether a bundle that is queued again continues at its entry: not when it now bypasses filters that were applied. */
const isContinued = "state IN ('queued', 'unbundling') AND bypass_filter >= excluded.bypass_filter";
const at = `WHERE n = ${placeSql()}`;
/** Copies a filter's number to its `previous_…` column when another filter replaces it. */
const setFilters = ["unbundle", "index"]
  .map(
    (name, index) => `previous_${name}_filter_id = CASE WHEN ${name}_filter_id IS NOT ?${index + 1}
      THEN ${name}_filter_id ELSE previous_${name}_filter_id END, ${name}_filter_id = ?${index + 1}`,
  )
  .join(", ");

/** Prepares the statements of one database. */
export function prepareBundleSteps(db: Database) {
  const due = prepareQuery<DueRow>(
    db,
    `SELECT ${halvesSql("n")}, fine, id, parent, head, size, depth, bypass_filter AS bypass,
       state, next_entry AS next, next_matched AS matched, import_attempt_count AS attempts,
       coalesce((SELECT id FROM items i WHERE i.n = ${rootSql("b.n")}),
                (SELECT id FROM duplicates d WHERE d.n = ${rootSql("b.n")})) AS root
     FROM bundles b WHERE due_at <= ?
       AND EXISTS (SELECT 1 FROM transactions t WHERE t.n = ${rootSql("b.n")})
     ORDER BY due_at, n LIMIT ?`,
  );
  const queue = prepare(
    db,
    `INSERT INTO bundles (n, fine, id, parent, head, size, depth, bypass_filter, state, due_at, format_id,
       first_queued_at, last_queued_at)
     VALUES (${placeSql("?1", "?2")}, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'queued', ?10, ?11, ?12, ?12)
     ON CONFLICT DO UPDATE SET
       bypass_filter = max(bypass_filter, excluded.bypass_filter), last_queued_at = excluded.last_queued_at,
       due_at = CASE state WHEN 'unbundling' THEN NULL WHEN 'queued' THEN min(due_at, excluded.due_at)
                ELSE excluded.due_at END,
       next_entry = CASE WHEN ${isContinued} THEN next_entry ELSE 0 END,
       next_matched = CASE WHEN ${isContinued} THEN next_matched ELSE 0 END,
       next_invalid = CASE WHEN ${isContinued} THEN next_invalid ELSE 0 END,
       state = CASE state WHEN 'unbundling' THEN state ELSE 'queued' END`,
  );
  return {
    due,
    queue,
    state: prepareQuery<{ state: string; id: Uint8Array; bypass: number }>(
      db,
      `SELECT state, id, bypass_filter AS bypass FROM bundles ${at}`,
    ),
    // Pruned items are not in the index, so their bundle is not done.
    done: prepareQuery<{ isDone: number }>(
      db,
      `SELECT 1 AS isDone FROM bundles b WHERE n = ${placeSql("?1", "?2")} AND id = ?3 AND state = 'indexed'
         AND (bypass_filter OR NOT ?6
           AND unbundle_filter_id IS (SELECT filter FROM filters WHERE canonical = ?4)
           AND index_filter_id IS (SELECT filter FROM filters WHERE canonical = ?5))
         AND NOT EXISTS (SELECT 1 FROM pruned_items p WHERE p.n BETWEEN b.n AND ${placeSql("?1", "?7")})`,
    ),
    queueFailed: prepare(
      db,
      `UPDATE bundles SET state = 'queued', due_at = ?1, last_queued_at = ?2, next_entry = 0, next_matched = 0,
         next_invalid = 0
       WHERE n BETWEEN ${placeSql("?3", "?4")} AND ${placeSql("?3", "?5")} AND state = 'failed'`,
    ),
    noteSkip: prepare(
      db,
      `UPDATE bundles SET last_skipped_at = ?1, first_skipped_at = coalesce(first_skipped_at, ?1)
       WHERE n = ${placeSql("?2", "?3")}`,
    ),
    repeat: prepare(
      db,
      `UPDATE bundles SET state = 'queued', due_at = ?, reason = NULL, next_entry = 0, next_matched = 0,
         next_invalid = 0 ${at}`,
    ),
    take: prepare(
      db,
      `UPDATE bundles SET state = 'unbundling', due_at = NULL, reason = NULL,
         import_attempt_count = import_attempt_count + 1 ${at}`,
    ),
    retry: prepare(
      db,
      `UPDATE bundles SET retry_attempt_count = retry_attempt_count + 1, last_retried_at = ?1,
         first_retried_at = coalesce(first_retried_at, ?1) WHERE n = ${placeSql("?2", "?3")}`,
    ),
    skip: prepare(
      db,
      `UPDATE bundles SET state = 'skipped', due_at = NULL, ${setFilters}, last_skipped_at = ?3,
         first_skipped_at = coalesce(first_skipped_at, ?3) WHERE n = ${placeSql("?4", "?5")}`,
    ),
    advance: prepare(
      db,
      `UPDATE bundles SET next_entry = ?, next_matched = next_matched + ?, next_invalid = next_invalid + ? ${at}`,
    ),
    found: prepareQuery<{ state: string; items: number; matched: number; nextEntry: number; nextMatched: number }>(
      db,
      `SELECT state, coalesce(data_item_count, 0) AS items, coalesce(matched_data_item_count, 0) AS matched,
         next_entry AS nextEntry, next_matched AS nextMatched FROM bundles ${at}`,
    ),
    finish: prepare(
      db,
      `UPDATE bundles SET state = 'indexed', due_at = NULL, reason = NULL, ${setFilters},
         first_unbundled_at = coalesce(first_unbundled_at, ?3), last_unbundled_at = ?3,
         first_fully_indexed_at = coalesce(first_fully_indexed_at, ?3), last_fully_indexed_at = ?3,
         data_item_count = ?4, matched_data_item_count = next_matched, invalid_item_count = next_invalid,
         next_entry = 0, next_matched = 0, next_invalid = 0
       WHERE n = ${placeSql("?5", "?6")}`,
    ),
    fail: prepare(db, `UPDATE bundles SET state = 'failed', reason = ?, due_at = ? ${at}`),
    release: prepare(db, `UPDATE bundles SET state = 'queued', due_at = ? ${at}`),
    resume: prepare(db, "UPDATE bundles SET state = 'queued', due_at = ? WHERE state = 'unbundling'"),
    ...prepareInvalidSteps(db),
    there: preparePresence(db),
    remove: prepare(db, "DELETE FROM bundles WHERE n BETWEEN ? AND ?"),
    sums: prepareQuery<Sums>(
      db,
      `SELECT count(*) AS bundles, coalesce(sum(state IN ('queued', 'unbundling')), 0) AS queued,
         coalesce(sum(state = 'failed'), 0) AS failed, coalesce(sum(data_item_count), 0) AS items,
         coalesce(sum(matched_data_item_count), 0) AS matched
       FROM bundles WHERE n BETWEEN ? AND ?`,
    ),
    filter: prepareQuery<{ filter: number }>(
      db,
      `INSERT INTO filters (canonical) VALUES (?) ON CONFLICT DO UPDATE SET canonical = excluded.canonical
       RETURNING filter`,
    ),
  };
}

function preparePresence(db: Database) {
  return prepareQuery<{ found: number }>(
    db,
    ["items", "duplicates", "pruned_items", "bundles"]
      .map((table) => `SELECT 1 AS found FROM ${table} WHERE n = ${placeSql("?1", "?2")} AND id = ?3`)
      .join(" UNION ALL "),
  );
}

function prepareInvalidSteps(db: Database) {
  return {
    addInvalid: prepare(db, `INSERT OR REPLACE INTO invalid_items VALUES (${placeSql()}, ?, ?, ?, ?)`),
    removeInvalid: prepare(db, "DELETE FROM invalid_items WHERE n BETWEEN ? AND ?"),
    removeInvalidOf: prepare(db, `DELETE FROM invalid_items ${at}`),
    invalidStored: prepareQuery<{ count: number }>(db, `SELECT count(*) AS count FROM invalid_items ${at}`),
  };
}
