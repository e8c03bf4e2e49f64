/**
 * The queue of bundles, for the writer: queued → unbundling → indexed, skipped, or failed and due again.
 *
 * Each step reads one state and writes the next. A bundle that was being unbundled when the process ended is queued
 * again when the index is opened, and continues at its next entry. A request may bypass the filters of a bundle that is
 * being unbundled with them. Then the outcome is dropped, and the bundle is read again from its first entry.
 * Source: docs/reference/index-layout.md#bundles.
 * @module
 */
import type { Database } from "bun:sqlite";
import { canonical } from "../../../arweave/filter.ts";
import { idBytes, idFromBytes } from "../../../arweave/id.ts";
import { assert } from "../../../lib/assert.ts";
import { type Clock, unixSeconds } from "../../../lib/clock.ts";
import type { CounterName, Counts } from "../index-counters.ts";
import type { BundleFilters, BundleJob, BundleRef, BundleRow, InvalidItem } from "../index-types.ts";
import { lastLow, placeHigh, placeLow, placeOfRow, stepOf } from "../place.ts";
import { type BundleSteps, type DueRow, prepareBundleSteps, type Sums } from "./bundle-statements.ts";

/** The queue. Calls run inside the writer's transaction. */
type Queueing = Readonly<{
  /** Returns how many were not in the queue before. */
  queue: (bundles: readonly BundleRow[]) => number;
  /** Whether a bundle is at its place: a reorganisation may have removed it after its row was read. */
  isThere: (bundle: Pick<BundleRow, "place" | "id">) => boolean;
  /** Queues a requested bundle. When it is done, its failed nested bundles are queued instead. */
  request: (bundle: BundleRow, filters: BundleFilters) => BundleRequestOutcome;
  /** Takes at most `limit` due bundles. */
  take: (limit: number) => BundleJob[];
  /**
   * Whether the bundle is still at this place, and this is its next entry: a reorganization may have removed the bundle
   * with its items and added it again.
   */
  has: (bundle: BundleRef, firstEntry: number) => boolean;
  /** Queues the bundles again that were being unbundled when the process ended. */
  resume: () => void;
  /** Removes the bundles of a range of packed places, both inclusive. */
  remove: (first: bigint, last: bigint) => void;
}>;

/** Outcomes of bundles. Calls run inside the writer's transaction. */
type Outcomes = Readonly<{
  skip: (bundle: BundleRef, filters: BundleFilters) => void;
  /** Records that the entries before `nextEntry` are read: how many are indexed, and which are invalid. */
  advance: (place: BundleRef, progress: BundleProgress) => void;
  finish: (bundle: BundleRef, filters: BundleFilters, itemCount: number) => void;
  fail: (bundle: BundleRef, reason: string, nextTryAtMs: number | null) => void;
  /** Queues a bundle again that was taken, from its next entry; one in another state stays as it is. */
  release: (bundle: BundleRef) => void;
}>;

export type Bundles = Queueing & Outcomes;

type BundleProgress = Readonly<{
  nextEntry: number;
  matched: number;
  /** The first invalid entries of the batch, in order, and the number of all. */
  invalid: readonly InvalidItem[];
  invalidCount: number;
}>;

/** Invalid entries that are stored for a bundle; the others are only counted. */
const invalidStoredMax = 1_000;

/** Outcome of a request; `done`: nothing is left to do with these filters; `gone`: it is not at its place any more. */
export type BundleRequestOutcome = "queued" | "done" | "gone";

/** The only supported format: ANS-104 binary. */
const formatId = 1;

/** The counter of bundles in each state. */
const countedStates: Readonly<Record<string, CounterName>> = {
  queued: "bundlesQueued",
  unbundling: "bundlesQueued",
  failed: "bundlesFailed",
};

type Parts = Readonly<{
  steps: BundleSteps;
  counts: Counts;
  clock: Clock;
  /** The state of a bundle; undefined when it is not at its place. */
  stateOf: (bundle: BundleRef) => string | undefined;
  /** Whether a request bypassed the bundle's filters after it was taken; then its work is repeated. */
  isOutdated: (bundle: BundleRef) => boolean;
  /** Decrements the counter of a state. */
  leave: (state: string) => void;
  seconds: () => number;
}>;

export function createBundles(db: Database, counts: Counts, clock: Clock): Bundles {
  const steps = prepareBundleSteps(db);
  const rowOf = (bundle: BundleRef) => {
    const row = steps.state.get(placeHigh(bundle), placeLow(bundle));
    const isOther = row !== undefined && bundle.id !== undefined && idFromBytes(row.id) !== bundle.id;
    return isOther ? undefined : row;
  };
  const parts: Parts = {
    steps,
    counts,
    clock,
    stateOf: (bundle) => rowOf(bundle)?.state,
    isOutdated: (bundle) => bundle.bypassFilter === false && rowOf(bundle)?.bypass === 1,
    leave: (state) => {
      const name = countedStates[state];
      if (name !== undefined) counts.add(name, -1);
    },
    seconds: () => unixSeconds(clock),
  };
  return { ...queueing(parts), ...outcomes(parts) };
}

function queueing({ steps, counts, clock, stateOf, leave, seconds }: Parts): Queueing {
  const queueOne = (row: BundleRow): boolean => {
    const { place, id, parentOffset, headerSize, size, depth, bypassFilter } = row;
    const state = stateOf(place);
    counts.raise("bundleQueuedAt", seconds());
    // An operator's requests come before all other bundles.
    const dueAt = bypassFilter ? 0 : clock();
    const fine = place.offset === -1 ? 0 : place.offset % 64;
    steps.queue.run(
      ...[placeHigh(place), placeLow(place), fine, idBytes(id), parentOffset, headerSize, size, depth],
      ...[bypassFilter ? 1 : 0, dueAt, formatId, seconds()],
    );
    if (state === "queued" || state === "unbundling") return false;
    if (state === undefined) counts.add("bundles", 1);
    else leave(state);
    counts.add("bundlesQueued", 1);
    return true;
  };
  const isThere: Queueing["isThere"] = ({ place, id }) =>
    steps.there.get(placeHigh(place), placeLow(place), idBytes(id)) !== undefined;
  return {
    isThere,
    queue: (bundles) => bundles.reduce((sum, row) => sum + (queueOne(row) ? 1 : 0), 0),
    request: (row, { unbundleFilter, indexFilter }) => {
      if (!isThere(row)) return "gone";
      const at = [placeHigh(row.place), placeLow(row.place)] as const;
      const isFilterFree = unbundleFilter === alwaysFilter && indexFilter === alwaysFilter;
      const done = steps.done.get(
        ...[...at, idBytes(row.id), unbundleFilter, indexFilter, row.bypassFilter && !isFilterFree ? 1 : 0],
        ...[lastPlaceLow(row)],
      );
      if (done === undefined) {
        queueOne(row);
        return "queued";
      }
      const again = steps.queueFailed.run(clock(), seconds(), ...at, lastPlaceLow(row)).changes;
      counts.add("bundlesFailed", -again);
      counts.add("bundlesQueued", again);
      if (again > 0) return "queued";
      counts.raise("bundleSkippedAt", seconds());
      steps.noteSkip.run(seconds(), ...at);
      return "done";
    },
    take: (limit) =>
      steps.due.all(clock(), limit).map((row) => {
        if (row.state === "failed") {
          counts.add("bundlesFailed", -1);
          counts.add("bundlesQueued", 1);
          steps.retry.run(seconds(), row.high, row.low);
        }
        steps.take.run(row.high, row.low);
        return jobOf(row);
      }),
    has: (bundle, firstEntry) =>
      stateOf(bundle) !== undefined && steps.found.get(placeHigh(bundle), placeLow(bundle))?.nextEntry === firstEntry,
    resume: () => {
      steps.resume.run(clock());
    },
    remove: (first, last) => {
      const gone = steps.sums.get(first, last);
      if (gone !== undefined) for (const [name, sum] of removedSums(gone)) counts.add(name, -sum);
      steps.remove.run(first, last);
      steps.removeInvalid.run(first, last);
    },
  };
}

/** A filter that accepts everything, in its canonical spelling. */
const alwaysFilter = canonical({ kind: "always" });

/** The lower half of the last place within a bundle. */
function lastPlaceLow({ place, headerSize, size }: BundleRow): number {
  return place.offset === -1 ? lastLow : stepOf(place.offset + headerSize + size);
}

function outcomes({ steps, counts, clock, stateOf, isOutdated, leave, seconds }: Parts): Outcomes {
  /** Queues a bundle with outdated work from its first entry. @returns Whether the work was outdated. */
  const repeat = (bundle: BundleRef): boolean => {
    const state = stateOf(bundle);
    if (state === undefined || !isOutdated(bundle)) return false;
    leave(state);
    counts.add("bundlesQueued", 1);
    steps.repeat.run(0, placeHigh(bundle), placeLow(bundle));
    return true;
  };
  const release: Outcomes["release"] = (bundle) => {
    if (stateOf(bundle) !== "unbundling" || repeat(bundle)) return;
    steps.release.run(clock(), placeHigh(bundle), placeLow(bundle));
  };
  const filterId = (canonical: string): number => {
    const row = steps.filter.get(canonical);
    assert(row !== undefined, "a filter that was added has a number");
    return row.filter;
  };
  return {
    advance: (place, { nextEntry, matched, invalid, invalidCount }) => {
      if (isOutdated(place)) return;
      const at = [placeHigh(place), placeLow(place)] as const;
      // A bundle that is read again: other rules may have applied to the first attempt.
      if (steps.found.get(...at)?.nextEntry === 0) steps.removeInvalidOf.run(...at);
      const stored = invalid.length === 0 ? 0 : (steps.invalidStored.get(...at)?.count ?? 0);
      for (const { entry, offset, id, reason } of invalid.slice(0, Math.max(0, invalidStoredMax - stored)))
        steps.addInvalid.run(...at, entry, offset, idBytes(id), reason);
      steps.advance.run(nextEntry, matched, invalidCount, ...at);
    },
    skip: (bundle, { unbundleFilter, indexFilter }) => {
      const state = stateOf(bundle);
      if (state === undefined || repeat(bundle)) return;
      leave(state);
      counts.raise("bundleSkippedAt", seconds());
      const filters = [filterId(unbundleFilter), filterId(indexFilter)];
      steps.skip.run(...filters, seconds(), placeHigh(bundle), placeLow(bundle));
    },
    finish: (bundle, { unbundleFilter, indexFilter }, itemCount) => {
      const state = stateOf(bundle);
      const before = steps.found.get(placeHigh(bundle), placeLow(bundle));
      if (state === undefined || before === undefined || repeat(bundle)) return;
      // A reorganization put the same bundle there again after its last batch.
      if (before.nextEntry !== itemCount) {
        release(bundle);
        return;
      }
      leave(state);
      counts.add("bundleItems", itemCount - before.items);
      counts.add("matchedItems", before.nextMatched - before.matched);
      counts.raise("bundleUnbundledAt", seconds());
      counts.raise("bundleFullyIndexedAt", seconds());
      const filters = [filterId(unbundleFilter), filterId(indexFilter)];
      steps.finish.run(...filters, seconds(), itemCount, placeHigh(bundle), placeLow(bundle));
    },
    fail: (bundle, reason, nextTryAtMs) => {
      const state = stateOf(bundle);
      if (state === undefined || repeat(bundle)) return;
      leave(state);
      counts.add("bundlesFailed", 1);
      steps.fail.run(reason, nextTryAtMs, placeHigh(bundle), placeLow(bundle));
    },
    release,
  };
}

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
  return {
    id: idFromBytes(row.id),
    place: placeOfRow(row),
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
