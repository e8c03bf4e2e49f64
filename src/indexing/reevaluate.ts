/**
 * Bundles that are in the index already are evaluated again, in the background, when the filters have changed or an
 * operator asks for a range of heights. Bundles of new blocks wait behind a few hundred of them at most.
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { type Loop, openLoop } from "../lib/loop.ts";
import type { BundlePassBounds } from "../store/index/bundle-passes.ts";
import type { BundleFilters } from "../store/index/rows.ts";
import type { IndexWriterCalls } from "../store/index/thread.ts";
import type { IndexReader } from "../store/index/types.ts";

/** What the evaluation works with. */
export type ReevaluateOptions = Readonly<{
  index: Pick<IndexWriterCalls, "bundleFiltersChanged" | "stepBundlePass">;
  reader: Pick<IndexReader, "bundlePasses">;
  filters: BundleFilters;
  /** Whether changed filters begin a pass; ranges of an operator are evaluated all the same. */
  onFilterChange: boolean;
  /** Called when bundles were queued. */
  onQueued: () => void;
  /** Between two looks, milliseconds. */
  intervalMs: number;
  clock: Clock;
  random: () => number;
  log: Log;
}>;

/** A step reads for about 20 ms. */
const bounds: BundlePassBounds = { waitingMax: 256, readMax: 5_000 };

/** Starts the evaluation. */
export function openReevaluation(options: ReevaluateOptions): Loop {
  const { index, reader, filters, onFilterChange, onQueued, intervalMs, clock, random, log } = options;
  let isCompared = !onFilterChange;
  return openLoop({
    name: "evaluation of bundles",
    step: async () => {
      if (!isCompared && (await index.bundleFiltersChanged(filters)))
        log.info("the filters are new to this index: its bundles are evaluated again");
      isCompared = true;
      if (reader.bundlePasses().length === 0) return "rest";
      const { queued, goesOn } = await index.stepBundlePass(filters, bounds);
      if (queued > 0) onQueued();
      return goesOn ? "again" : "rest";
    },
    intervalMs,
    backoff: { firstMs: 100, longestMs: 30_000 },
    stepTimeoutMs: 10 * 60_000,
    clock,
    random,
    log,
  });
}
