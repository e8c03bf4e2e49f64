/**
 * Passes over the bundles that are in the index already, newest first, for the writer: each bundle that the filters in
 * force may treat otherwise is queued again. A changed filter begins a pass over all bundles, an operator one over a
 * range of heights.
 *
 * A pass is a row: it goes on after a restart where it was. Each step reads and queues a bounded number of bundles.
 * @module
 */
import type { Database } from "bun:sqlite";
import { type Clock, unixSeconds } from "../../lib/clock.ts";
import { prepare, prepareQuery } from "../sqlite.ts";
import type { Counts } from "./counts.ts";
import { packHeight, pendingHeight } from "./place.ts";
import type { BundleFilters } from "./rows.ts";

/** Heights whose bundles are evaluated again; both ends included. */
export type BundleRange = Readonly<{
  startHeight: number;
  endHeight: number;
  /** Whether they are unbundled whatever the filters say. */
  bypassFilter: boolean;
}>;

/** How much one step does. */
export type BundlePassBounds = Readonly<{
  /** Nothing is queued while so many bundles wait. */
  waitingMax: number;
  /** Bundles that are read. */
  readMax: number;
}>;

/** What a step did. */
export type BundlePassStep = Readonly<{
  queued: number;
  /** Whether there is more to read now: false when no pass is left, or when enough bundles wait. */
  goesOn: boolean;
}>;

/** The passes of one database, for the writer, inside its transaction. */
export type BundlePasses = Readonly<{
  /** Begins a pass over all bundles unless the filters are those of the last call; it replaces one under way. */
  filtersChanged: (filters: BundleFilters) => boolean;
  /** Begins a pass over a range; false when too many are under way. */
  add: (range: BundleRange) => boolean;
  step: (filters: BundleFilters, bounds: BundlePassBounds) => BundlePassStep;
}>;

/** Passes of operators that are under way at once. */
const passesMax = 100;

type PassRow = Readonly<{ pass: number; kind: string; first: string; next: string; bypass: number }>;
type BundleHit = Readonly<{ high: number; low: number; state: string; isWanted: number }>;

/** Of each bundle below a place: whether it is to be queued again. ?1, ?2: filters in force; ?3: bypass. */
const readSql = (isOperators: boolean): string => `SELECT n >> 31 AS high, n & 0x7fffffff AS low, state,
    CASE WHEN state IN ('queued', 'unbundling') THEN ?3 AND NOT bypass_filter
      WHEN state = 'failed' THEN ${isOperators ? 1 : 0}
      WHEN state = 'skipped' THEN ?3 OR unbundle_filter_id IS NOT ?1
      WHEN bypass_filter THEN 0
      WHEN matched_data_item_count IS data_item_count THEN 0
      ELSE ?3 OR unbundle_filter_id IS NOT ?1 OR index_filter_id IS NOT ?2 END AS isWanted
  FROM bundles WHERE n BETWEEN ?4 AND ?5 ORDER BY n DESC LIMIT ?6`;

/** Opens the passes of one database. */
export function createBundlePasses(db: Database, counts: Counts, clock: Clock): BundlePasses {
  const meta = prepareQuery<{ value: string }>(db, "SELECT value FROM meta WHERE name = 'filters_in_force'");
  const setMeta = prepare(db, "INSERT OR REPLACE INTO meta VALUES ('filters_in_force', ?)");
  const count = prepareQuery<{ n: number }>(db, "SELECT count(*) AS n FROM bundle_passes");
  const dropKind = prepare(db, "DELETE FROM bundle_passes WHERE kind = ?");
  const insert = prepare(db, "INSERT INTO bundle_passes (kind, first, last, next, bypass) VALUES (?, ?, ?, ?, ?)");
  const firstPass = prepareQuery<PassRow>(
    db,
    `SELECT pass, kind, CAST(first AS TEXT) AS first, CAST(next AS TEXT) AS next, bypass
     FROM bundle_passes ORDER BY pass LIMIT 1`,
  );
  const drop = prepare(db, "DELETE FROM bundle_passes WHERE pass = ?");
  const advance = prepare(db, "UPDATE bundle_passes SET next = ? WHERE pass = ?");
  const waiting = prepareQuery<{ value: number }>(db, "SELECT value FROM counters WHERE name = 'bundlesQueued'");
  const anyBundle = prepareQuery<{ n: number }>(db, "SELECT 1 AS n FROM bundles LIMIT 1");
  const filterId = createFilterIds(db);
  const read = {
    operator: prepareQuery<BundleHit>(db, readSql(true)),
    filters: prepareQuery<BundleHit>(db, readSql(false)),
  };
  const queue = prepare(
    db,
    `UPDATE bundles SET state = CASE state WHEN 'unbundling' THEN state ELSE 'queued' END,
       due_at = CASE state WHEN 'unbundling' THEN NULL WHEN 'queued' THEN min(due_at, ?1) ELSE ?1 END,
       last_queued_at = ?2, next_entry = 0, next_matched = 0, bypass_filter = max(bypass_filter, ?3)
     WHERE n = (?4 << 31) | ?5`,
  );
  const begin = (kind: string, { startHeight, endHeight, bypassFilter }: BundleRange): void => {
    const last = packHeight(Math.min(endHeight, pendingHeight - 1) + 1) - 1n;
    insert.run(kind, packHeight(Math.min(startHeight, pendingHeight)), last, last, bypassFilter ? 1 : 0);
  };
  const queueAgain = (hit: BundleHit, rank: number, bypass: number): void => {
    // The newest first; all behind what waits already.
    queue.run(clock() + rank, unixSeconds(clock), bypass, hit.high, hit.low);
    if (hit.state === "failed") counts.add("bundlesFailed", -1);
    if (hit.state !== "queued" && hit.state !== "unbundling") counts.add("bundlesQueued", 1);
    counts.raise("bundleQueuedAt", unixSeconds(clock));
  };

  return {
    filtersChanged: ({ unbundleFilter, indexFilter }) => {
      const text = JSON.stringify([unbundleFilter, indexFilter]);
      if (meta.get()?.value === text) return false;
      setMeta.run(text);
      dropKind.run("filters");
      if (anyBundle.get() === undefined) return false;
      begin("filters", { startHeight: 0, endHeight: pendingHeight, bypassFilter: false });
      return true;
    },
    add: (range) => {
      if ((count.get()?.n ?? 0) >= passesMax) return false;
      begin("operator", range);
      return true;
    },
    step: (filters, { waitingMax, readMax }) => {
      const waitingCount = waiting.get()?.value ?? 0;
      const quota = waitingMax - waitingCount;
      const pass = firstPass.get();
      if (pass === undefined || quota <= 0) return { queued: 0, goesOn: false };
      const { unbundle, index } = filterId(filters);
      const query = pass.kind === "operator" ? read.operator : read.filters;
      const rows = query.all(unbundle, index, pass.bypass, BigInt(pass.first), BigInt(pass.next), readMax);
      const responseCache = rows.filter((row) => row.isWanted === 1).slice(0, quota);
      for (const [rank, hit] of responseCache.entries()) queueAgain(hit, waitingCount + rank, pass.bypass);
      const isFull = responseCache.length === quota;
      const last = isFull ? responseCache.at(-1) : rows.at(-1);
      if (last === undefined || (!isFull && rows.length < readMax)) drop.run(pass.pass);
      else advance.run((BigInt(last.high) << 31n) + BigInt(last.low) - 1n, pass.pass);
      return { queued: responseCache.length, goesOn: !isFull };
    },
  };
}

function createFilterIds(db: Database): (filters: BundleFilters) => Readonly<{ unbundle: number; index: number }> {
  const find = prepareQuery<{ filter: number }>(db, "SELECT filter FROM filters WHERE canonical = ?");
  // A filter that no bundle was evaluated with has no number: then it is another one than every bundle's.
  const idOf = (canonical: string): number => find.get(canonical)?.filter ?? -1;
  return ({ unbundleFilter, indexFilter }) => ({ unbundle: idOf(unbundleFilter), index: idOf(indexFilter) });
}

/** A pass under way. */
export type BundlePass = Readonly<{
  reason: "filters changed" | "queued by height";
  startHeight: number;
  endHeight: number;
  /** Bundles above this height have been evaluated. */
  nextHeight: number;
  bypassFilter: boolean;
}>;

/** Opens the reading of passes over a reader's connection. */
export function createBundlePassReads(db: Database): () => readonly BundlePass[] {
  const all = prepareQuery<Readonly<{ kind: string; first: number; last: number; next: number; bypass: number }>>(
    db,
    `SELECT kind, first >> 41 AS first, last >> 41 AS last, next >> 41 AS next, bypass
     FROM bundle_passes ORDER BY pass`,
  );
  return () =>
    all.all().map(({ kind, first, last, next, bypass }) => ({
      reason: kind === "filters" ? "filters changed" : "queued by height",
      startHeight: first,
      endHeight: last,
      nextHeight: next,
      bypassFilter: bypass === 1,
    }));
}
