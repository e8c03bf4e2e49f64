/**
 * The statements behind the states of bundles.
 * @module
 */
import type { Database } from "bun:sqlite";
import { prepare, prepareQuery } from "../sqlite.ts";

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

/** What a range of bundles counts for. */
export type Sums = Readonly<{
  bundles: number;
  queued: number;
  failed: number;
  items: number;
  matched: number;
}>;

/** Prepared statements; `n` is bound as its upper and lower half. */
export type BundleSteps = ReturnType<typeof prepareBundleSteps>;

/** Whether a bundle that is queued again goes on where it was: not when it bypasses filters now that were applied. */
const goesOn = "state IN ('queued', 'unbundling') AND bypass_filter >= excluded.bypass_filter";
const at = "WHERE n = (? << 31) | ?";
/** Moves a filter's number to its `previous_…` column when another takes its place. */
const setFilters = ["unbundle", "index"]
  .map(
    (name, index) => `previous_${name}_filter_id = CASE WHEN ${name}_filter_id IS NOT ?${index + 1}
      THEN ${name}_filter_id ELSE previous_${name}_filter_id END, ${name}_filter_id = ?${index + 1}`,
  )
  .join(", ");

/** Prepares them for one database. */
export function prepareBundleSteps(db: Database) {
  const due = prepareQuery<DueRow>(
    db,
    `SELECT n >> 31 AS high, n & 0x7fffffff AS low, fine, id, parent, head, size, depth, bypass_filter AS bypass,
       state, next_entry AS next, next_matched AS matched, import_attempt_count AS attempts,
       coalesce((SELECT id FROM items i WHERE i.n = (b.n >> 31) << 31),
                (SELECT id FROM duplicates d WHERE d.n = (b.n >> 31) << 31)) AS root
     FROM bundles b WHERE due_at <= ?
       AND EXISTS (SELECT 1 FROM transactions t WHERE t.n = (b.n >> 31) << 31)
     ORDER BY due_at, n LIMIT ?`,
  );
  const queue = prepare(
    db,
    `INSERT INTO bundles (n, fine, id, parent, head, size, depth, bypass_filter, state, due_at, format_id,
       first_queued_at, last_queued_at)
     VALUES ((?1 << 31) | ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'queued', ?10, ?11, ?12, ?12)
     ON CONFLICT DO UPDATE SET
       bypass_filter = max(bypass_filter, excluded.bypass_filter), last_queued_at = excluded.last_queued_at,
       due_at = CASE state WHEN 'unbundling' THEN NULL WHEN 'queued' THEN min(due_at, excluded.due_at)
                ELSE excluded.due_at END,
       next_entry = CASE WHEN ${goesOn} THEN next_entry ELSE 0 END,
       next_matched = CASE WHEN ${goesOn} THEN next_matched ELSE 0 END,
       state = CASE state WHEN 'unbundling' THEN state ELSE 'queued' END`,
  );
  return {
    due,
    queue,
    state: prepareQuery<{ state: string; id: Uint8Array; bypass: number }>(
      db,
      `SELECT state, id, bypass_filter AS bypass FROM bundles ${at}`,
    ),
    // What was pruned of a bundle is not in the index, so the bundle is not done.
    done: prepareQuery<{ isDone: number }>(
      db,
      `SELECT 1 AS isDone FROM bundles b WHERE n = (?1 << 31) | ?2 AND id = ?3 AND state = 'indexed'
         AND (bypass_filter OR NOT ?6
           AND unbundle_filter_id IS (SELECT filter FROM filters WHERE canonical = ?4)
           AND index_filter_id IS (SELECT filter FROM filters WHERE canonical = ?5))
         AND NOT EXISTS (SELECT 1 FROM pruned_items p WHERE p.n BETWEEN b.n AND (?1 << 31) | ?7)`,
    ),
    queueFailed: prepare(
      db,
      `UPDATE bundles SET state = 'queued', due_at = ?1, last_queued_at = ?2, next_entry = 0, next_matched = 0
       WHERE n BETWEEN (?3 << 31) | ?4 AND (?3 << 31) | ?5 AND state = 'failed'`,
    ),
    noteSkip: prepare(
      db,
      `UPDATE bundles SET last_skipped_at = ?1, first_skipped_at = coalesce(first_skipped_at, ?1)
       WHERE n = (?2 << 31) | ?3`,
    ),
    repeat: prepare(
      db,
      `UPDATE bundles SET state = 'queued', due_at = ?, reason = NULL, next_entry = 0, next_matched = 0 ${at}`,
    ),
    take: prepare(
      db,
      `UPDATE bundles SET state = 'unbundling', due_at = NULL, reason = NULL,
         import_attempt_count = import_attempt_count + 1 ${at}`,
    ),
    retry: prepare(
      db,
      `UPDATE bundles SET retry_attempt_count = retry_attempt_count + 1, last_retried_at = ?1,
         first_retried_at = coalesce(first_retried_at, ?1) WHERE n = (?2 << 31) | ?3`,
    ),
    skip: prepare(
      db,
      `UPDATE bundles SET state = 'skipped', due_at = NULL, ${setFilters}, last_skipped_at = ?3,
         first_skipped_at = coalesce(first_skipped_at, ?3) WHERE n = (?4 << 31) | ?5`,
    ),
    advance: prepare(db, `UPDATE bundles SET next_entry = ?, next_matched = next_matched + ? ${at}`),
    found: prepareQuery<{ state: string; items: number; matched: number; nextMatched: number }>(
      db,
      `SELECT state, coalesce(data_item_count, 0) AS items, coalesce(matched_data_item_count, 0) AS matched,
         next_matched AS nextMatched FROM bundles ${at}`,
    ),
    finish: prepare(
      db,
      `UPDATE bundles SET state = 'indexed', due_at = NULL, reason = NULL, ${setFilters},
         first_unbundled_at = coalesce(first_unbundled_at, ?3), last_unbundled_at = ?3,
         first_fully_indexed_at = coalesce(first_fully_indexed_at, ?3), last_fully_indexed_at = ?3,
         data_item_count = ?4, matched_data_item_count = next_matched, next_entry = 0, next_matched = 0
       WHERE n = (?5 << 31) | ?6`,
    ),
    fail: prepare(db, `UPDATE bundles SET state = 'failed', reason = ?, due_at = ? ${at}`),
    resume: prepare(db, "UPDATE bundles SET state = 'queued', due_at = ? WHERE state = 'unbundling'"),
    remove: prepare(db, "DELETE FROM bundles WHERE n BETWEEN ? AND ?"),
    addInvalid: prepare(db, "INSERT OR REPLACE INTO invalid_items VALUES ((? << 31) | ?, ?, ?, ?, ?)"),
    removeInvalid: prepare(db, "DELETE FROM invalid_items WHERE n BETWEEN ? AND ?"),
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
