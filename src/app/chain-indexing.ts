/**
 * Indexing by the settings: the chain is followed, and the bundles of the queue are unbundled.
 * @module
 */
import { type Indexing, type IndexingHooks, openIndexing } from "../indexing/indexing.ts";
import { systemClock } from "../lib/clock.ts";
import type { IndexReader } from "../store/index/index-types.ts";
import type { AppContext, Base } from "./base.ts";
import { systemRandom } from "./random.ts";

/** Starts indexing; the caller closes it. */
export function openChainIndexing(
  { config, log }: AppContext,
  { filters, threads, reader, index, sources }: Base,
  hooks: IndexingHooks,
): Indexing {
  return openIndexing({
    nodes: sources.nodes,
    verify: threads.verify,
    unbundle: threads.unbundle,
    index,
    reader,
    content: sources.content,
    // A gateway that begins with imported heights follows the chain from their end.
    start: config.START_HEIGHT === "latest" ? (importedEnd(reader) ?? "latest") : config.START_HEIGHT,
    stop: config.STOP_HEIGHT,
    unbundleFilter: filters.unbundle.filter,
    indexFilter: filters.index.filter,
    reevaluateOnChange: config.FILTER_CHANGE_REPROCESS,
    isMempoolWatched: config.ENABLE_MEMPOOL_WATCHER,
    hooks,
    times: { followMs: config.FOLLOW_INTERVAL_MS },
    clock: systemClock,
    random: systemRandom,
    log,
  });
}

/** The first height after imported partitions; undefined without one. */
function importedEnd({ storedPartitions }: IndexReader): number | undefined {
  const next = storedPartitions.nextHeight();
  return next === 0 ? undefined : next;
}
