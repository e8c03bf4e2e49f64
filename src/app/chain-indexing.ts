/**
 * Indexing by the settings: the chain is followed, the bundles of the queue are unbundled, and parts of the index are
 * merged. Health and metrics show its state.
 * @module
 */
import { addGatewayMetrics } from "../gateway/gateway-metrics.ts";
import { type Indexing, type IndexingHooks, openIndexing } from "../indexing/indexing.ts";
import { openPartMerges } from "../indexing/part-merges.ts";
import { systemClock } from "../lib/clock.ts";
import type { IndexReader } from "../store/index/index-types.ts";
import type { AppContext, Base, CheckList } from "./base.ts";
import { systemRandom } from "./random.ts";
import { loadsOf } from "./threads.ts";

/** Starts indexing; `closers` close it. @param concerns - The reasons for which it lags are added to these. */
export function openChainIndexing(
  app: AppContext,
  base: Base,
  hooks: IndexingHooks,
  concerns: Pick<CheckList, "add">,
): Indexing {
  const indexing = startIndexing(app, base, hooks);
  app.closers.add("indexing", indexing.close);
  concerns.add(() => indexing.status().reasons);
  const { metrics, threads, reader, sources } = base;
  addGatewayMetrics(metrics, {
    reader,
    follow: () => indexing.status().follow,
    nodes: sources.nodes,
    cache: sources.extents.stats,
    fetches: sources.content.stats,
    jobs: () => loadsOf(threads, "open"),
    threads: () => loadsOf(threads, "threads"),
  });
  return indexing;
}

function startIndexing(
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
