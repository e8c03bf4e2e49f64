/**
 * Metrics of the index and the content, under the names of ar-io-node's dashboards where these exist.
 *
 * Counts are totals of the index, so they continue after a restart; ar-io-node's start at zero.
 * Source: docs/metrics.md.
 * @module
 */
import type { Nodes } from "../chain/nodes.ts";
import type { FetchStats } from "../content/fetch-to-cache.ts";
import { type LookupStats, lookupOutcomes, lookupSources } from "../content/unindexed-lookup.ts";
import { Failure } from "../failures.ts";
import { faultReasons } from "../lib/http-client.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { ExtentStats } from "../store/extents/extents.ts";
import type { IndexReader } from "../store/index/index-types.ts";
import { isTaken, type PostResult } from "./spread.ts";
import type { Chunks, FoundChunk } from "./weave-chunks.ts";

export type GatewayMetrics = Readonly<{
  reader: Pick<IndexReader, "counts" | "tip" | "times">;
  /** Whether the chain is being followed. */
  follow: () => Readonly<{ running: boolean; theirHeight: number | undefined; lag: number | undefined }>;
  nodes: Pick<Nodes, "all" | "rests">;
  /** Content on this disk. */
  cache: () => ExtentStats;
  /** Fetches of content since the start, and those under way. */
  fetches: () => FetchStats;
  /** Jobs that wait or run, by the name of their threads. */
  jobs: () => Readonly<Record<string, number>>;
  /** Threads that live, by the same names. */
  threads: () => Readonly<Record<string, number>>;
}>;

export function addGatewayMetrics(metrics: Metrics, stats: GatewayMetrics): void {
  addIndexMetrics(metrics, stats);
  addContentMetrics(metrics, stats);
  addNodeMetrics(metrics, stats);
}

function addIndexMetrics(metrics: Metrics, { reader, follow, jobs, threads }: GatewayMetrics): void {
  const { counts } = reader;
  metrics.gaugeOf({
    name: "last_height_imported",
    help: "Height up to which the chain was followed; -1 before the first block.",
    read: () => reader.tip()?.height ?? -1,
  });
  metrics.gaugeOf({
    name: "block_importer_running",
    help: "1 while the chain is being followed.",
    read: () => Number(follow().running),
  });
  metrics.gaugeOf({
    name: "chain_tip_height",
    help: "Height of the nodes' chain; -1 before the first response.",
    read: () => follow().theirHeight ?? -1,
  });
  metrics.gaugeOf({
    name: "chain_lag_blocks",
    help: "Blocks that the index is behind the nodes; -1 while unknown.",
    read: () => follow().lag ?? -1,
  });
  const totals = [
    ["blocks_imported_total", "Blocks in the index.", () => counts().blocks],
    ["block_transactions_imported_total", "Transactions in the index.", () => counts().transactions],
    [
      "missing_block_transactions_total",
      "Transactions that a block names and that no source gave yet.",
      () => counts().missingTransactions,
    ],
    ["data_items_indexed_total", "Data items in the index.", () => counts().items],
    ["data_items_unbundled_total", "Entries of bundles that were unbundled.", () => counts().bundleItems],
    ["data_items_matched_total", "Of them, those that the index filter chose.", () => counts().matchedItems],
    ["bundles_total", "Bundles that were met.", () => counts().bundles],
    ["bundles_failed_total", "Bundles that failed and are tried again later.", () => counts().bundlesFailed],
  ] as const;
  // Totals of an index can shrink: a reorg removes blocks.
  for (const [name, help, read] of totals) metrics.gaugeOf({ name, help, read });
  metrics.gaugeOf({
    name: "data_item_last_indexed_timestamp_seconds",
    help: "When a data item was last indexed, in Unix seconds; 0 when none was.",
    read: () => Math.max(reader.times().recentItemIndexedAt ?? 0, reader.times().stableItemIndexedAt ?? 0),
  });
  metrics.gaugesOf({
    name: "queue_length",
    help: "What waits, by queue.",
    label: "queue_name",
    values: [...Object.keys(jobs()), "bundles"],
    read: () => ({ ...jobs(), bundles: counts().bundlesQueued }),
  });
  metrics.gaugesOf({
    name: "worker_threads",
    help: "Threads that live, by pool. Most pools have none after a minute without work.",
    label: "pool",
    values: Object.keys(threads()),
    read: threads,
  });
}

function addContentMetrics(metrics: Metrics, { cache, fetches }: GatewayMetrics): void {
  metrics.gaugeOf({
    name: "cache_size_bytes",
    help: "Bytes of content on this disk.",
    read: () => cache().bytes,
  });
  const sinceStart = [
    ["cache_evictions_total", "Transactions whose data was evicted.", () => cache().evictedRoots],
    ["files_cleaned_total", "Files of content that were removed for others.", () => cache().evictedRoots],
    ["cache_damaged_total", "Pieces found different from their checksum.", () => cache().damagedSteps],
    ["cache_refused_total", "Writes that were rejected for lack of space.", () => cache().rejectedWrites],
  ] as const;
  for (const [name, help, read] of sinceStart) metrics.countOf({ name, help, read });
  metrics.countOf({
    name: "get_data_stream_successes_total",
    help: "Pieces of content fetched from sources.",
    read: () => fetches().fetched,
  });
  metrics.countOf({
    name: "get_data_stream_errors_total",
    help: "Pieces of content that a source of which they were asked did not give.",
    read: () => fetches().failed,
  });
  metrics.countOf({
    name: "get_data_stream_bytes_total",
    help: "Bytes of content fetched from sources.",
    read: () => fetches().bytes,
  });
  metrics.gaugesOf({
    name: "content_fetches",
    help: "Fetches of content that run, and those that wait for a permit.",
    label: "state",
    values: ["running", "waiting"],
    read: () => ({ running: fetches().fetching, waiting: fetches().waiting }),
  });
}

function addNodeMetrics(metrics: Metrics, { nodes }: GatewayMetrics): void {
  metrics.gaugesOf({
    name: "circuit_breaker_state",
    help: "1 while other nodes are preferred to a node because it failed; else 0.",
    label: "breaker",
    values: nodes.all.map(({ url }) => url),
    read: () => Object.fromEntries(nodes.all.map((node) => [node.url, Number(nodes.rests(node))])),
  });
}

export function createLookupMetrics(metrics: Metrics): LookupStats {
  const lookups = metrics.counter({
    name: "root_tx_lookup_total",
    help: "Where ids that the index does not have were looked for, and what became of it.",
    labels: { source: lookupSources, status: lookupOutcomes },
  });
  return (source, status) => lookups.inc({ source, status });
}

export type ForkMetrics = Readonly<{
  onBlock: (height: number) => void;
  onRollback: (fromHeight: number) => void;
}>;

/** @param tip - Height of the newest block at the start; -1 without any. */
export function createForkMetrics(metrics: Metrics, tip: number): ForkMetrics {
  const forks = metrics.counter({ name: "forks_total", help: "Forks that were followed since the start." });
  const depth = metrics.gauge({ name: "last_fork_depth", help: "Blocks that the last fork took back." });
  let newest = tip;
  return {
    onBlock: (height) => {
      newest = height;
    },
    onRollback: (fromHeight) => {
      forks.inc();
      depth.set(Math.max(0, newest - fromHeight + 1));
      newest = fromHeight - 1;
    },
  };
}

/** Counts the nodes' responses to a post. */
export type PostMetrics = (path: string, results: readonly PostResult[]) => void;

/** @param nodes - Those that receive posts. */
export function createPostMetrics(metrics: Metrics, nodes: readonly Readonly<{ url: string }>[]): PostMetrics {
  const posts = metrics.counter({
    name: "arweave_chunk_post_total",
    help: "Chunks sent to nodes, by node and by how it went.",
    labels: {
      endpoint: nodes.map(({ url }) => url),
      status: ["success", "fail", "skipped", ...faultReasons],
      role: ["trusted"],
    },
  });
  const broadcasts = metrics.counter({
    name: "arweave_chunk_broadcast_total",
    help: "Chunks that were posted here, by whether a node took them.",
    labels: { status: ["success", "fail"] },
  });
  const statusOf = (result: PostResult): string => {
    if (result.kind === "response") return isTaken(result.response) ? "success" : "fail";
    return result.kind === "skipped" ? "skipped" : result.fault.reason;
  };
  return (path, results) => {
    if (path !== "/chunk") return;
    for (const result of results) posts.inc({ endpoint: result.peer, status: statusOf(result), role: "trusted" });
    broadcasts.inc({ status: results.some((result) => statusOf(result) === "success") ? "success" : "fail" });
  };
}

/** Counts the results of chunk requests. */
export function countChunks(chunks: Chunks, metrics: Metrics): Chunks {
  const found = metrics.counter({
    name: "get_chunk_total",
    help: "Chunks that were looked for, beyond those in memory, by what became of it.",
    labels: { status: ["success", "not_found", "error"] },
  });
  const counted = async (work: Promise<FoundChunk>): Promise<FoundChunk> => {
    try {
      const chunk = await work;
      found.inc({ status: "success" });
      return chunk;
    } catch (error) {
      const isAbsent = error instanceof Failure && error.code === "not_found";
      found.inc({ status: isAbsent ? "not_found" : "error" });
      throw error;
    }
  };
  return {
    at: (offset, signal) => counted(chunks.at(offset, signal)),
    atForGateway: (offset, signal) => counted(chunks.atForGateway(offset, signal)),
  };
}
