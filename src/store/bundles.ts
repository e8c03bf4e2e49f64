/**
 * Bundles and their states: queued → unbundling → indexed, or skipped, or failed and due again. For the writer.
 *
 * Each step reads one state and writes the next. A bundle that was being unbundled when the process ended is queued
 * again when the index is opened, and goes on at its next entry.
 * Source: design.md §6 "Unbundle"; specification, bundle status record.
 * @module
 */
import type { Database } from "bun:sqlite";
import { idBytes, idFromBytes } from "../arweave/id.ts";
import { assert } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import type { CounterName, Counts } from "./counts.ts";
import { type Place, placeHigh, placeLow, placeOfHalves } from "./place.ts";
import type { BundleFilters, BundleJob, BundleRow } from "./rows.ts";
import { prepareQuery } from "./sqlite.ts";

/** The bundles of one database, for the writer, inside its transaction. */
export type Bundles = Readonly<{
  /** Answers how many were not waiting already. */
  queue: (bundles: readonly BundleRow[]) => number;
  take: () => BundleJob | undefined;
  skip: (place: Place, filters: BundleFilters) => void;
  /** Notes that the entries before `nextEntry` are in the index. */
  advance: (place: Place, nextEntry: number, matched: number, duplicated: number) => void;
  finish: (place: Place, filters: BundleFilters, itemCount: number) => void;
  fail: (place: Place, reason: string, nextTryAtMs: number | null) => void;
  /** Queues again what was being unbundled when the process ended. */
  resume: () => void;
  /** Removes the bundles of a range of packed places, both inclusive. */
  remove: (first: bigint, last: bigint) => void;
}>;

/** The only format there is a reader for: ANS-104 binary. */
const formatId = 1;

/** The number in which a bundle of that state counts. */
const countedStates: Readonly<Record<string, CounterName>> = {
  queued: "bundlesQueued",
  unbundling: "bundlesQueued",
  failed: "bundlesFailed",
};

type DueRow = Readonly<{
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

/** Opens the bundles of one database. */
export function createBundles(db: Database, counts: Counts, clock: Clock): Bundles {
  const steps = prepareSteps(db);
  const seconds = (): number => Math.floor(clock() / 1_000);
  const filterId = (canonical: string): number => {
    const row = steps.filter.get(canonical);
    assert(row !== undefined, "a filter that was added has a number");
    return row.filter;
  };
  const stateOf = (place: Place): string | undefined =>
    steps.state.get(placeHigh(place), placeLow(place))?.state;
  const leave = (state: string | undefined): void => {
    const name = state === undefined ? undefined : countedStates[state];
    if (name !== undefined) counts.add(name, -1);
  };

  const queueOne = (row: BundleRow): boolean => {
    const state = stateOf(row.place);
    const now = clock();
    counts.raise("bundleQueuedAt", seconds());
    // What an operator asks for goes before what waits already.
    const dueAt = row.bypassFilter ? 0 : now;
    const { place, id, parentOffset, headerSize, size, depth, bypassFilter } = row;
    const fine = place.offset === -1 ? 0 : place.offset % 64;
    steps.queue.run(
      ...[placeHigh(place), placeLow(place), fine, idBytes(id), parentOffset, headerSize, size, depth],
      ...[bypassFilter ? 1 : 0, dueAt, formatId, seconds()],
    );
    if (state === "queued" || state === "unbundling") return false;
    leave(state);
    counts.add("bundlesQueued", 1);
    if (state === undefined) counts.add("bundles", 1);
    return true;
  };

  return {
    queue: (bundles) => bundles.reduce((sum, row) => sum + (queueOne(row) ? 1 : 0), 0),
    take: () => {
      const row = steps.due.get(clock());
      if (row === undefined) return undefined;
      if (row.state === "failed") {
        counts.add("bundlesFailed", -1);
        counts.add("bundlesQueued", 1);
        steps.retry.run(seconds(), row.high, row.low);
      }
      steps.take.run(row.high, row.low);
      return jobOf(row);
    },
    skip: (place, filters) => {
      leave(stateOf(place));
      counts.raise("bundleSkippedAt", seconds());
      const ids = [filterId(filters.unbundleFilter), filterId(filters.indexFilter)];
      steps.skip.run(...ids, seconds(), placeHigh(place), placeLow(place));
    },
    advance: (place, nextEntry, matched, duplicated) => {
      steps.advance.run(nextEntry, matched, duplicated, placeHigh(place), placeLow(place));
    },
    finish: (place, filters, itemCount) => {
      const before = steps.found.get(placeHigh(place), placeLow(place));
      if (before === undefined) return;
      leave(before.state);
      counts.add("bundleItems", itemCount - before.items);
      counts.add("matchedItems", before.nextMatched - before.matched);
      counts.raise("bundleUnbundledAt", seconds());
      counts.raise("bundleFullyIndexedAt", seconds());
      const ids = [filterId(filters.unbundleFilter), filterId(filters.indexFilter)];
      steps.finish.run(...ids, seconds(), itemCount, placeHigh(place), placeLow(place));
    },
    fail: (place, reason, nextTryAtMs) => {
      const state = stateOf(place);
      if (state === undefined) return;
      leave(state);
      counts.add("bundlesFailed", 1);
      steps.fail.run(reason, nextTryAtMs, placeHigh(place), placeLow(place));
    },
    resume: () => {
      steps.resume.run(clock());
    },
    remove: (first, last) => {
      const gone = steps.sums.get(first, last);
      if (gone !== undefined) for (const [name, sum] of removedSums(gone)) counts.add(name, -sum);
      steps.remove.run(first, last);
    },
  };
}

type Sums = Readonly<{ bundles: number; queued: number; failed: number; items: number; matched: number }>;

function removedSums(gone: Sums): [CounterName, number][] {
  return [
    ["bundles", gone.bundles],
    ["bundlesQueued", gone.queued],
    ["bundlesFailed", gone.failed],
    ["bundleItems", gone.items],
    ["matchedItems", gone.matched],
  ];
}

function jobOf(row: DueRow): BundleJob {
  const { high, low, fine } = row;
  return {
    id: idFromBytes(row.id),
    place: placeOfHalves(high, low === 0 ? -1 : low * 64 + fine),
    rootId: idFromBytes(row.root ?? row.id),
    parentOffset: row.parent,
    headerSize: row.head,
    size: row.size,
    depth: row.depth,
    bypassFilter: row.bypass === 1,
    nextEntry: row.next,
    attempts: row.attempts,
    matchedCount: row.matched,
  };
}

const at = "WHERE n = (? << 31) | ?";
/** Moves a filter's number to its `previous_…` column when another takes its place. */
const setFilters = ["unbundle", "index"]
  .map(
    (name, index) => `previous_${name}_filter_id = CASE WHEN ${name}_filter_id IS NOT ?${index + 1}
      THEN ${name}_filter_id ELSE previous_${name}_filter_id END, ${name}_filter_id = ?${index + 1}`,
  )
  .join(", ");

function prepareSteps(db: Database) {
  const due = prepareQuery<DueRow>(
    db,
    `SELECT n >> 31 AS high, n & 0x7fffffff AS low, fine, id, parent, head, size, depth, bypass_filter AS bypass,
       state, next_entry AS next, next_matched AS matched, import_attempt_count AS attempts,
       coalesce((SELECT id FROM items i WHERE i.n = (b.n >> 31) << 31),
                (SELECT id FROM duplicates d WHERE d.n = (b.n >> 31) << 31)) AS root
     FROM bundles b WHERE due_at <= ? ORDER BY due_at, n LIMIT 1`,
  );
  const queue = db.prepare(
    `INSERT INTO bundles (n, fine, id, parent, head, size, depth, bypass_filter, state, due_at, format_id,
       first_queued_at, last_queued_at)
     VALUES ((?1 << 31) | ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'queued', ?10, ?11, ?12, ?12)
     ON CONFLICT DO UPDATE SET
       bypass_filter = max(bypass_filter, excluded.bypass_filter), last_queued_at = excluded.last_queued_at,
       due_at = CASE state WHEN 'unbundling' THEN NULL WHEN 'queued' THEN min(due_at, excluded.due_at)
                ELSE excluded.due_at END,
       next_entry = CASE WHEN state IN ('queued', 'unbundling') THEN next_entry ELSE 0 END,
       next_matched = CASE WHEN state IN ('queued', 'unbundling') THEN next_matched ELSE 0 END,
       next_duplicated = CASE WHEN state IN ('queued', 'unbundling') THEN next_duplicated ELSE 0 END,
       state = CASE state WHEN 'unbundling' THEN state ELSE 'queued' END`,
  );
  return {
    due,
    queue,
    state: prepareQuery<{ state: string }>(db, `SELECT state FROM bundles ${at}`),
    take: db.prepare(
      `UPDATE bundles SET state = 'unbundling', due_at = NULL, reason = NULL,
         import_attempt_count = import_attempt_count + 1 ${at}`,
    ),
    retry: db.prepare(
      `UPDATE bundles SET retry_attempt_count = retry_attempt_count + 1, last_retried_at = ?1,
         first_retried_at = coalesce(first_retried_at, ?1) WHERE n = (?2 << 31) | ?3`,
    ),
    skip: db.prepare(
      `UPDATE bundles SET state = 'skipped', due_at = NULL, ${setFilters}, last_skipped_at = ?3,
         first_skipped_at = coalesce(first_skipped_at, ?3) WHERE n = (?4 << 31) | ?5`,
    ),
    advance: db.prepare(
      `UPDATE bundles SET next_entry = ?, next_matched = next_matched + ?, next_duplicated = next_duplicated + ? ${at}`,
    ),
    found: prepareQuery<{ state: string; items: number; matched: number; nextMatched: number }>(
      db,
      `SELECT state, coalesce(data_item_count, 0) AS items, coalesce(matched_data_item_count, 0) AS matched,
         next_matched AS nextMatched FROM bundles ${at}`,
    ),
    finish: db.prepare(
      `UPDATE bundles SET state = 'indexed', due_at = NULL, reason = NULL, ${setFilters},
         first_unbundled_at = coalesce(first_unbundled_at, ?3), last_unbundled_at = ?3,
         first_fully_indexed_at = coalesce(first_fully_indexed_at, ?3), last_fully_indexed_at = ?3,
         data_item_count = ?4, matched_data_item_count = next_matched,
         duplicated_data_item_count = next_duplicated, next_entry = 0, next_matched = 0, next_duplicated = 0
       WHERE n = (?5 << 31) | ?6`,
    ),
    fail: db.prepare(`UPDATE bundles SET state = 'failed', reason = ?, due_at = ? ${at}`),
    resume: db.prepare("UPDATE bundles SET state = 'queued', due_at = ? WHERE state = 'unbundling'"),
    remove: db.prepare("DELETE FROM bundles WHERE n BETWEEN ? AND ?"),
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
