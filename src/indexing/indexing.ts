/**
 * Starts indexing: the follower, the search for missing transactions, the mempool watcher, the queue of bundles, the
 * evaluation of bundles and upkeep. Each is a loop of its own; their status is combined.
 * Source: docs/reference/node-api.md#following.
 * @module
 */
import { canonical, type Filter } from "../arweave/filter.ts";
import type { Id } from "../arweave/id.ts";
import type { Nodes } from "../chain/nodes.ts";
import type { Content } from "../content/content.ts";
import { createByteBudget } from "../lib/byte-budget.ts";
import { type Clock, unixSeconds } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { type Loop, type LoopStatus, openLoop } from "../lib/loop.ts";
import { createSemaphore } from "../lib/semaphore.ts";
import type { BundlePassBounds } from "../store/index/bundles/bundle-passes.ts";
import type { BundleFilters, IndexReader } from "../store/index/index-types.ts";
import type { IndexWriterCalls } from "../store/index/index-writer-calls.ts";
import type { Pool, Workers } from "../threads/pool.ts";
import { type Bundles, type BundlesStatus, bundleRetryDefault, openBundles } from "./bundle-queue.ts";
import { bytesUnderWay, type FetchParts } from "./fetch-block.ts";
import { type FollowedBlock, type Follower, type FollowStatus, openFollower } from "./follow.ts";
import type { StartHeight } from "./follow-plan.ts";
import { createChainChoice } from "./heaviest-chain.ts";
import { type Mempool, openMempool } from "./mempool-watcher.ts";
import { openMissing } from "./missing.ts";
import { type BundleLimits, bundleLimitsDefault } from "./unbundle.ts";

/** Callbacks for what the index gained or lost; called in order, and must not throw. */
export type IndexingHooks = Readonly<{
  onBlock: (block: FollowedBlock) => void;
  /**
   * Ids that were added outside of a new block: items, missing and pending transactions.
   * @param rootId - Of items that were read from their bundle.
   */
  onItems: (ids: readonly Id[], rootId?: Id) => void;
  /** All blocks from the height on were removed from the index. */
  onRollback: (fromHeight: number) => void;
}>;

/** Intervals and timeouts, milliseconds. */
export type IndexingTimes = Readonly<{
  /** Between two polls of the nodes' tip. */
  followMs: number;
  /** The first wait after a failure to follow; later ones double, up to half a minute. */
  retryMs: number;
  /**
   * Between two polls of the queue of bundles and the list of missing transactions without a wake-up.
   */
  queueMs: number;
  /** For one attempt at a bundle. */
  bundleMs: number;
  /** Between two polls of the mempool. */
  mempoolMs: number;
  /** Between two rounds of upkeep. */
  upkeepMs: number;
  /**
   * Time for which the nodes' tip may be another block at or below our height before it is followed; less for own
   * nodes.
   */
  shrinkGraceMs: number;
  /** Time after which a transaction in no mempool and no block is removed from the pending ones. */
  goneGraceMs: number;
}>;

export const indexingTimesDefault: IndexingTimes = {
  followMs: 2_000,
  retryMs: 200,
  queueMs: 1_000,
  bundleMs: 24 * 60 * 60_000,
  mempoolMs: 5_000,
  upkeepMs: 5 * 60_000,
  shrinkGraceMs: 60_000,
  goneGraceMs: 60_000,
};

export type IndexingOptions = Readonly<{
  nodes: Nodes;
  /** Threads of `workers/verify.ts` and of `workers/unbundle.ts`. */
  verify: Pool<Workers["verify"]>;
  unbundle: Pool<Workers["unbundle"]>;
  index: IndexWriterCalls;
  reader: IndexReader;
  content: Pick<Content, "ensure" | "keep">;
  start: StartHeight;
  /** Last height to index, inclusive. */
  stop: number | undefined;
  unbundleFilter: Filter;
  indexFilter: Filter;
  /** Whether bundles are evaluated again when the filters have changed; true by default. */
  reevaluateOnChange?: boolean;
  /** Bundles that are processed at once; most of them wait for their bytes. */
  slots?: number;
  isMempoolWatched: boolean;
  hooks: IndexingHooks;
  times?: Partial<IndexingTimes>;
  limits?: Partial<BundleLimits>;
  clock: Clock;
  random: () => number;
  log: Log;
}>;

export type IndexingStatus = Readonly<{
  follow: FollowStatus;
  bundles: BundlesStatus;
  reevaluation: LoopStatus;
  missing: LoopStatus;
  mempool: LoopStatus | undefined;
  upkeep: LoopStatus;
  /** Descriptions of faults; empty when indexing is healthy. */
  reasons: readonly string[];
}>;

export type Indexing = Readonly<{
  /** Polls the tip and the mempool now. */
  wake: () => void;
  /** Polls the queue of bundles now. */
  wakeBundles: () => void;
  /** Removes pending transactions that are not among the ids, for a new chain. Returns their number. */
  removePendingBut: (ids: ReadonlySet<string>) => Promise<number>;
  status: () => IndexingStatus;
  close: () => Promise<void>;
}>;

/**
 * Concurrent requests for transactions. Public nodes allow some hundred requests a minute, own nodes thousands.
 */
const transactionsAtOnce = 32;

/** Most waiting requests for transactions: two windows of blocks with a thousand each. */
const transactionsWaitingMax = 32_000;

/** Bundles that wait for unavailable bytes hold a slot until every source has been tried. */
const slotsDefault = 8;

/**
 * A node on this machine is a single node, not a set of nodes that may lag: a different tip of it means a reorg.
 */
const shrinkGraceOwnMs = 300;

/** The index is unhealthy when it lags behind the nodes by more blocks. */
const lagMax = 10;

/** A loop is unhealthy after this many failures in a row; single failures are normal. */
const failuresMax = 3;

/** A step that runs for longer is reported as hanging. Milliseconds. */
const stepMsMax = 10 * 60_000;

/** Starts all loops. */
export function openIndexing(options: IndexingOptions): Indexing {
  const { hooks, clock } = options;
  const shrinkGraceMs = options.nodes.all.every(({ url }) => isOwnMachine(url))
    ? shrinkGraceOwnMs
    : indexingTimesDefault.shrinkGraceMs;
  const times = { ...indexingTimesDefault, shrinkGraceMs, ...options.times };
  const slots = options.slots ?? slotsDefault;
  const fetch: FetchParts = {
    nodes: options.nodes,
    pool: options.verify,
    semaphore: createSemaphore(transactionsAtOnce, transactionsWaitingMax),
    bytes: createByteBudget(bytesUnderWay),
    random: options.random,
    log: options.log,
  };
  const bundles = openBundles({
    ...options,
    pool: options.unbundle,
    slots,
    limits: { ...bundleLimitsDefault, ...options.limits },
    onItems: hooks.onItems,
    intervalMs: times.queueMs,
    bundleMs: times.bundleMs,
    retry: bundleRetryDefault,
  });
  const missing = openMissing({
    ...options,
    fetch,
    intervalMs: times.queueMs,
    onFound: (ids, hasBundle) => {
      hooks.onItems(ids);
      if (hasBundle) bundles.wake();
    },
  });
  const mempool = options.isMempoolWatched
    ? openMempool({ ...options, ...times, fetch, intervalMs: times.mempoolMs, onPending: hooks.onItems })
    : undefined;
  const follower = openFollower({
    ...options,
    fetch,
    choice: createChainChoice({ ...options, pool: options.verify }),
    intervalMs: times.followMs,
    retryMs: times.retryMs,
    shrinkGraceMs: times.shrinkGraceMs,
    onBlock: (block) => {
      hooks.onBlock(block);
      if (block.bundleCount > 0) bundles.wake();
      if (block.missing.length > 0) missing.wake();
    },
    beforeRollback: bundles.dropFrom,
    onRollback: (fromHeight) => {
      hooks.onRollback(fromHeight);
      mempool?.reload();
    },
  });
  const upkeep = openUpkeep({
    ...options,
    intervalMs: times.upkeepMs,
    onExpired: () => mempool?.reload(),
  });
  const reevaluation = openReevaluation({
    ...options,
    filters: {
      unbundleFilter: canonical(options.unbundleFilter),
      indexFilter: canonical(options.indexFilter),
    },
    onFilterChange: options.reevaluateOnChange ?? true,
    onQueued: bundles.wake,
    intervalMs: times.queueMs,
  });
  return together({ follower, bundles, reevaluation, missing, mempool, upkeep }, clock);
}

function isOwnMachine(url: string): boolean {
  return ["127.0.0.1", "localhost", "[::1]"].includes(new URL(url).hostname);
}

type Parts = Readonly<{
  follower: Follower;
  bundles: Bundles;
  reevaluation: Loop;
  missing: Loop;
  mempool: Mempool | undefined;
  upkeep: Loop;
}>;

function together(parts: Parts, clock: Clock): Indexing {
  const { follower, bundles, reevaluation, missing, mempool, upkeep } = parts;
  return {
    wake: () => {
      follower.wake();
      mempool?.wake();
    },
    wakeBundles: () => {
      bundles.wake();
      reevaluation.wake();
    },
    removePendingBut: async (ids) => (await mempool?.removeAllBut(ids)) ?? 0,
    status: () => {
      const status = {
        follow: follower.status(),
        bundles: bundles.status(),
        reevaluation: reevaluation.status(),
        missing: missing.status(),
        mempool: mempool?.status(),
        upkeep: upkeep.status(),
      };
      return { ...status, reasons: reasonsOf(status, clock()) };
    },
    close: async () => {
      await follower.close();
      const loops = [bundles, reevaluation, missing, mempool, upkeep];
      await Promise.all(loops.map((loop) => loop?.close()));
    },
  };
}

function reasonsOf(status: Omit<IndexingStatus, "reasons">, now: number): string[] {
  const { follow, bundles, reevaluation, missing, mempool, upkeep } = status;
  const loops: readonly (readonly [string, LoopStatus | undefined])[] = [
    ["following the chain", follow],
    ["evaluation of bundles", reevaluation],
    ["missing transactions", missing],
    ["the mempool", mempool],
    ["upkeep of the index", upkeep],
    ...bundles.slots.map((slot, index) => [`bundles (${index + 1})`, slot] as const),
  ];
  const { lag } = follow;
  return [
    ...(lag !== undefined && lag > lagMax ? [`the index is ${lag} blocks behind the nodes`] : []),
    ...loops.flatMap(([name, loop]) => (loop === undefined ? [] : loopReasons(name, loop, now))),
  ];
}

function loopReasons(name: string, loop: LoopStatus, now: number): string[] {
  const { running, failures, lastError, stepSince } = loop;
  if (!running) return [`${name}: stopped`];
  if (failures >= failuresMax) return [`${name}: failed ${failures} times in a row: ${lastError}`];
  return stepSince !== undefined && now - stepSince > stepMsMax && !name.startsWith("bundles")
    ? [`${name}: a step has been running for ${Math.round((now - stepSince) / 1_000)} s`]
    : [];
}

/** Options of the evaluation of bundles with changed filters. */
export type ReevaluateOptions = Readonly<{
  index: Pick<IndexWriterCalls, "bundleFiltersChanged" | "stepBundlePass">;
  reader: Pick<IndexReader, "bundlePasses">;
  filters: BundleFilters;
  /** Whether changed filters start an evaluation; requests of an operator always do. */
  onFilterChange: boolean;
  /** Called when bundles were queued. */
  onQueued: () => void;
  /** Between two polls, milliseconds. */
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
        log.info("the filters have changed: the bundles of the index are evaluated again");
      isCompared = true;
      if (reader.bundlePasses().length === 0) return "rest";
      const { queued, hasMore } = await index.stepBundlePass(filters, bounds);
      if (queued > 0) onQueued();
      return hasMore ? "again" : "rest";
    },
    intervalMs,
    backoff: { firstMs: 100, longestMs: 30_000 },
    clock,
    random,
    log,
  });
}

export type UpkeepOptions = Readonly<{
  index: Pick<IndexWriterCalls, "expireAnnounced" | "expirePending" | "checkpoint">;
  reader: Pick<IndexReader, "nextBundleAt">;
  /** How often, milliseconds. */
  intervalMs: number;
  /**
   * Called when pending transactions may have been removed. Those that are still in the mempool must be
   * added again.
   */
  onExpired: () => void;
  clock: Clock;
  random: () => number;
  log: Log;
}>;

/** An announced item that is in no bundle after this time is removed. Seconds. */
const announcedSeconds = 2 * 60 * 60;

/**
 * A pending transaction is valid for at most 50 blocks after its anchor, about two hours; a day is a safe limit.
 * Seconds.
 */
const pendingSeconds = 24 * 60 * 60;

/** Starts upkeep. */
export function openUpkeep(options: UpkeepOptions): Loop {
  const { index, reader, intervalMs, clock, random, log } = options;
  return openLoop({
    name: "upkeep",
    step: async () => {
      const now = unixSeconds(clock);
      await index.expireAnnounced(now - announcedSeconds);
      if ((await index.expirePending(now - pendingSeconds)) > 0) options.onExpired();
      const nextAt = reader.nextBundleAt();
      if (nextAt === undefined || nextAt > clock()) await index.checkpoint();
      return "rest";
    },
    intervalMs,
    clock,
    random,
    log,
  });
}
