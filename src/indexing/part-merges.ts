/**
 * Merges parts of the index in the background: a thread makes each merge, and the writer stores it in short steps
 * between its other calls. The thread also folds the writer's log into the file, which waits for the disk.
 * Source: docs/reference/index-layout.md#merges.
 * @module
 */
import { statSync } from "node:fs";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { type Loop, openLoop } from "../lib/loop.ts";
import type { IndexWriterCalls } from "../store/index/index-writer-calls.ts";
import type { MergedBodies, PartMerge } from "../store/index/parts/part-merge.ts";
import type { Pool, Workers } from "../threads/pool.ts";

type PartMergeOptions = Readonly<{
  /** The index file. */
  path: string;
  index: Pick<
    IndexWriterCalls,
    "beginMerge" | "addMerged" | "endMerge" | "setFilter" | "dropReplaced" | "sweepPostings"
  >;
  /** Threads of `workers/index-merges.ts`; its pool has one thread. */
  merges: Pick<Pool<Workers["index-merges"]>, "run">;
  /** Wait when no merge is due, milliseconds; 250 by default. */
  intervalMs?: number;
  clock: Clock;
  random: () => number;
  log: Log;
}>;

/** While an index is built, a merge is due about every second. */
const intervalMsDefault = 250;

/**
 * The thread takes 12 MiB. It is not started while the file and the log of the index are smaller: then no filter is a
 * file, and folding the log is not worth it (merge-connection.ts). Bytes.
 */
const smallIndexBytes = 8 * 2 ** 20;

/**
 * A merge with all those within it takes minutes, on a slow disk much longer, and one that is ended begins anew. Each
 * of its calls has a time-out of its own; this is for what they miss.
 */
const stepTimeoutMs = 12 * 60 * 60_000;

/** Starts the merges. */
export function openPartMerges(options: PartMergeOptions): Loop {
  const { path, index, merges, intervalMs = intervalMsDefault, clock, random, log } = options;
  let areFiltersChecked = false;

  const repairFilters = async (signal: AbortSignal): Promise<void> => {
    while (!areFiltersChecked) {
      const repaired = await merges.run("repairFilter", { path }, { signal });
      if (repaired === undefined) areFiltersChecked = true;
      else await index.setFilter(repaired.part, repaired.filter);
    }
  };
  /** Stores a step, and drops something of what earlier merges replaced: both of them short calls. */
  const store = async (part: number, bodies: MergedBodies): Promise<void> => {
    await index.addMerged(part, bodies);
    await index.dropReplaced();
  };
  const perform = async (merge: PartMerge, signal: AbortSignal): Promise<void> => {
    let step = await merges.run("begin", { path, merge }, { signal });
    while ("bodies" in step) {
      // The thread makes the next step while the writer stores this one.
      const [following] = await Promise.all([merges.run("next", { path }, { signal }), store(merge.part, step.bodies)]);
      step = following;
      // While many rows are merged, small parts become many, and each look-up of an id would test them all.
      if ("bodies" in step) await performWithin(merge, signal);
    }
    await index.endMerge(merge, step.merged, step.filter);
  };

  /** Makes the much smaller merges that are due between two steps of a merge. */
  const performWithin = async (merge: PartMerge, signal: AbortSignal): Promise<void> => {
    for (let small = await index.beginMerge(merge); small !== undefined; small = await index.beginMerge(merge))
      await perform(small, signal);
  };

  return openLoop({
    name: "merges of the index",
    step: async (signal) => {
      const isSmall = Math.max(bytesOf(path), bytesOf(`${path}-wal`)) < smallIndexBytes;
      if (!isSmall) await repairFilters(signal);
      const merge = await index.beginMerge();
      if (merge !== undefined) {
        await perform(merge, signal);
        return "again";
      }
      if (!isSmall) await merges.run("checkpoint", { path }, { signal });
      return (await index.dropReplaced()) || (await index.sweepPostings()) ? "again" : "rest";
    },
    intervalMs,
    stepTimeoutMs,
    clock,
    random,
    log,
  });
}

/** Size of a file; 0 without one: the last connection to close removes the log. */
function bytesOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
