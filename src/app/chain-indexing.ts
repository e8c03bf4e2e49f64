/**
 * Indexing by the settings: the chain is followed, the bundles of the queue are unbundled, and parts of the index are
 * merged.
 * @module
 */
import { type Indexing, type IndexingHooks, openIndexing } from "../indexing/indexing.ts";
import { openPartMerges } from "../indexing/part-merges.ts";
import { systemClock } from "../lib/clock.ts";
import type { IndexReader } from "../store/index/index-types.ts";
import type { AppContext, Base } from "./base.ts";
import { systemRandom } from "./random.ts";

/** Starts indexing; the caller closes it, and then `closers` the merges. */
export function openChainIndexing(
  { config, folder, log, closers }: AppContext,
  { filters, threads, reader, index, sources }: Base,
  hooks: IndexingHooks,
): Indexing {
  const common = { clock: systemClock, random: systemRandom, log };
  const merges = openPartMerges({ path: folder.index, index, merges: threads.merges, ...common });
  closers.add("merges of the index", merges.close);
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
    ...common,
  });
}

/** The first height after imported partitions; undefined without one. */
function importedEnd({ storedPartitions }: IndexReader): number | undefined {
  const next = storedPartitions.nextHeight();
  return next === 0 ? undefined : next;
}
