/**
 * Merges parts of the index in the background: a thread makes each merge, and the writer stores it in short steps
 * between its other calls. The thread also folds the writer's log into the file, which waits for the disk.
 * Source: docs/reference/index-layout.md#merges.
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { type Loop, openLoop } from "../lib/loop.ts";
import type { IndexWriterCalls } from "../store/index/index-writer-calls.ts";
import type { PartMerge } from "../store/index/part-merge.ts";
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

/** A merge takes up to a minute; a much longer one is begun again. */
const stepTimeoutMs = 30 * 60_000;

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
  const perform = async (merge: PartMerge, signal: AbortSignal): Promise<void> => {
    await merges.run("begin", { path, merge }, { signal });
    for (;;) {
      const step = await merges.run("next", { path }, { signal });
      await merges.run("checkpoint", { path }, { signal });
      if ("bodies" in step) await index.addMerged(merge.part, step.bodies);
      else {
        await index.endMerge(merge, step.merged, step.filter);
        return;
      }
    }
  };

  return openLoop({
    name: "merges of the index",
    step: async (signal) => {
      await repairFilters(signal);
      await merges.run("checkpoint", { path }, { signal });
      if (await index.dropReplaced()) return "again";
      const merge = await index.beginMerge();
      if (merge !== undefined) await perform(merge, signal);
      else if (!(await index.sweepPostings())) return "rest";
      return "again";
    },
    intervalMs,
    stepTimeoutMs,
    clock,
    random,
    log,
  });
}
