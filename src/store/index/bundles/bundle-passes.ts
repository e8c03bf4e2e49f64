/**
 * Passes over the indexed bundles, newest first, for the writer. A pass queues each bundle again that the current
 * filters may treat differently. Changed filters begin a pass over all bundles; an operator begins a pass over a range
 * of heights.
 *
 * A pass is a row, so it continues after a restart. Each step reads and queues a bounded number of bundles.
 * @module
 */
import type { Database } from "bun:sqlite";
import { type Clock, unixSeconds } from "../../../lib/clock.ts";
import { prepare, prepareQuery } from "../../sqlite.ts";
import type { Counts } from "../index-counters.ts";
import type { BundleFilters, BundlePass } from "../index-types.ts";
import { packHalves, packHeight, pendingHeight } from "../place.ts";
import { halvesSql, heightSql, placeSql } from "../place-sql.ts";

/** Heights whose bundles are evaluated again; both ends included. */
export type BundleRange = Readonly<{
  startHeight: number;
  endHeight: number;
  /** Whether the bundles are unbundled regardless of the filters. */
  bypassFilter: boolean;
}>;

/** Limits of one step. */
export type BundlePassBounds = Readonly<{
  /** Nothing is queued while this many bundles wait. */
  waitingMax: number;
  /** Maximum of bundles to read. */
  readMax: number;
}>;

/** Outcome of a step. */
export type BundlePassStep = Readonly<{
  queued: number;
  /** Whether to continue now: false when no pass is left, or when enough bundles wait. */
  hasMore: boolean;
}>;

/** The passes of one database. Calls run inside the writer's transaction. */
export type BundlePasses = Readonly<{
  /** Begins a pass over all bundles, unless the filters are those of the last call; replaces a pass in progress. */
  filtersChanged: (filters: BundleFilters) => boolean;
  /** Begins a pass over a range; false when too many are in progress. */
  add: (range: BundleRange) => boolean;
  step: (filters: BundleFilters, bounds: BundlePassBounds) => BundlePassStep;
}>;

/** Limit of concurrent passes of operators. */
const passesMax = 100;

type PassRow = Readonly<{ pass: number; kind: string; first: string; next: string; bypass: number }>;
type ReadBundle = Readonly<{ high: number; low: number; state: string; isWanted: number }>;

/** Selects bundles below a place, and whether each is queued again. ?1, ?2: current filters; ?3: bypass. */
const readSql = (isOperators: boolean): string => `SELECT ${halvesSql("n")}, state,
    CASE WHEN state IN ('queued', 'unbundling') THEN ?3 AND NOT bypass_filter
      WHEN state = 'failed' THEN ${isOperators ? 1 : 0}
      WHEN state = 'skipped' THEN ?3 OR unbundle_filter_id IS NOT ?1
      WHEN bypass_filter THEN 0
      WHEN matched_data_item_count IS data_item_count THEN 0
      ELSE ?3 OR unbundle_filter_id IS NOT ?1 OR index_filter_id IS NOT ?2 END AS isWanted
  FROM bundles WHERE n BETWEEN ?4 AND ?5 ORDER BY n DESC LIMIT ?6`;

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
    operator: prepareQuery<ReadBundle>(db, readSql(true)),
    filters: prepareQuery<ReadBundle>(db, readSql(false)),
  };
  const queue = prepare(
    db,
    `UPDATE bundles SET state = CASE state WHEN 'unbundling' THEN state ELSE 'queued' END,
       due_at = CASE state WHEN 'unbundling' THEN NULL WHEN 'queued' THEN min(due_at, ?1) ELSE ?1 END,
       last_queued_at = ?2, next_entry = 0, next_matched = 0, next_invalid = 0, bypass_filter = max(bypass_filter, ?3)
     WHERE n = ${placeSql("?4", "?5")}`,
  );
  const begin = (kind: string, { startHeight, endHeight, bypassFilter }: BundleRange): void => {
    const last = packHeight(Math.min(endHeight, pendingHeight - 1) + 1) - 1n;
    insert.run(kind, packHeight(Math.min(startHeight, pendingHeight)), last, last, bypassFilter ? 1 : 0);
  };
  const queueAgain = (bundle: ReadBundle, rank: number, bypass: number): void => {
    // The newest bundle first; all of them after the bundles that already wait.
    queue.run(clock() + rank, unixSeconds(clock), bypass, bundle.high, bundle.low);
    if (bundle.state === "failed") counts.add("bundlesFailed", -1);
    if (bundle.state !== "queued" && bundle.state !== "unbundling") counts.add("bundlesQueued", 1);
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
      if (pass === undefined || quota <= 0) return { queued: 0, hasMore: false };
      const { unbundle, index } = filterId(filters);
      const query = pass.kind === "operator" ? read.operator : read.filters;
      const rows = query.all(unbundle, index, pass.bypass, BigInt(pass.first), BigInt(pass.next), readMax);
      const wanted = rows.filter((row) => row.isWanted === 1).slice(0, quota);
      for (const [rank, bundle] of wanted.entries()) queueAgain(bundle, waitingCount + rank, pass.bypass);
      const isFull = wanted.length === quota;
      const last = isFull ? wanted.at(-1) : rows.at(-1);
      if (last === undefined || (!isFull && rows.length < readMax)) drop.run(pass.pass);
      else advance.run(packHalves(last) - 1n, pass.pass);
      return { queued: wanted.length, hasMore: !isFull };
    },
  };
}

function createFilterIds(db: Database): (filters: BundleFilters) => Readonly<{ unbundle: number; index: number }> {
  const find = prepareQuery<{ filter: number }>(db, "SELECT filter FROM filters WHERE canonical = ?");
  // A filter without a number was never applied to a bundle, so it differs from the filter of every bundle.
  const idOf = (canonical: string): number => find.get(canonical)?.filter ?? -1;
  return ({ unbundleFilter, indexFilter }) => ({ unbundle: idOf(unbundleFilter), index: idOf(indexFilter) });
}

export function createBundlePassReads(db: Database): () => readonly BundlePass[] {
  const all = prepareQuery<Readonly<{ kind: string; first: number; last: number; next: number; bypass: number }>>(
    db,
    `SELECT kind, ${heightSql("first")} AS first, ${heightSql("last")} AS last, ${heightSql("next")} AS next, bypass
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
