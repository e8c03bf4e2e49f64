/**
 * Opens the pools of worker threads, with their sizes and timeouts.
 * @module
 */
import { resolveObjectURL } from "node:buffer";
import { availableParallelism } from "node:os";
import type { PartitionWriter } from "../columnar/export-run.ts";
import type { Config } from "../config/settings.ts";
import { assert } from "../lib/assert.ts";
import type { Closers } from "../lib/closers.ts";
import type { BlobThread } from "../lib/event-loop.ts";
import { openPool, type Pool, type Workers } from "../threads/pool.ts";

/** The pools of the gateway. */
export type Threads = Readonly<{
  index: Pool<Workers["index"]>;
  merges: Pool<Workers["index-merges"]>;
  verify: Pool<Workers["verify"]>;
  content: Pool<Workers["content"]>;
  unbundle: Pool<Workers["unbundle"]>;
  query: Pool<Workers["graphql"]>;
  export: Pool<Workers["export"]>;
}>;

/** The pools of uploads. */
export type UploadThreads = Readonly<{
  /** Pools of one thread: the pieces of an item stay with one thread. */
  intake: readonly Pool<Workers["intake"]>[];
  receipts: Pool<Workers["receipts"]>;
  /** Number of threads of `receipts`. */
  receiptThreads: number;
  bundles: Pool<Workers["bundles"]>;
  /** Pools of one thread: the steps of a walk stay with one thread. */
  walks: readonly Pool<Workers["walk"]>[];
  /** One thread: the steps of a signature stay with it. */
  signing: Pool<Workers["sign"]>;
}>;

/** A thread without jobs ends after this time, which frees its memory. */
const idleMs = 60_000;

/** Long enough for a rollback. A batch of items has its own deadline (indexing/unbundle.ts). */
const writeTimeoutMs = 10 * 60_000;
/** A step of a merge reads and sorts some megabytes; the last one waits until the filters are on the disk. */
const mergeTimeoutMs = 5 * 60_000;
const verifyTimeoutMs = 2 * 60_000;
/** A job takes 1 to 30 ms; a fetch waits for a minute at most, and must report a thread that hangs. */
const contentTimeoutMs = 20_000;
const unbundleTimeoutMs = 60 * 60_000;
/** A partition of an export; 1,000 heights of main net are about a million rows, 20 s each. */
const partitionTimeoutMs = 6 * 60 * 60_000;

/** A statement that cannot be interrupted holds its thread at most this much longer than QUERY_TIMEOUT_MS. */
const queryGraceMs = 2_000;

/** Each needs about as much memory as its manifest, whose size is bounded. */
const manifestThreads = 2;
/** A mebibyte of a manifest takes 15 ms; the last job also sorts and writes all entries. */
const manifestTimeoutMs = 60_000;

/** A body of 16 MB takes 10 ms. */
const bodyTimeoutMs = 60_000;

/** A million accounts take some seconds. */
const reportTimeoutMs = 10 * 60_000;
/** Each may take seconds. */
const reportsWaitingMax = 32;

const intakeTimeoutMs = 2 * 60_000;
/** Longer than the slowest client takes for the next piece of an item in progress. */
const intakeIdleMs = 10 * 60_000;
/** A step of 32 MiB, from a busy disk. */
const walkTimeoutMs = 2 * 60_000;
const receiptTimeoutMs = 60_000;
/** Of a signature, or of a run of chunks; a layout has its own (prepare-bundle.ts). */
const bundleTimeoutMs = 10 * 60_000;

/** Queue length of a pool. It bounds memory, and is far above the limits of the callers. */
const jobsWaitingMax = 1_024;

/** Number of threads of each pool that WORKER_THREADS sizes. */
export function workerCount(config: Config): number {
  return config.WORKER_THREADS === 0 ? availableParallelism() : config.WORKER_THREADS;
}

/** Opens the pools; their threads start with their first job. */
export function openThreads(config: Config, closers: Closers): Threads {
  const workers = workerCount(config);
  const common = { queueMax: jobsWaitingMax, idleMs };
  const threads = {
    // Never ends while idle: it holds the file open.
    index: openPool({
      ...common,
      entry: "index",
      threads: 1,
      timeoutMs: writeTimeoutMs,
      idleMs: Number.POSITIVE_INFINITY,
    }),
    // Between two steps of a merge, which ends with the thread, it waits for three calls of the writer.
    merges: openPool({
      ...common,
      entry: "index-merges",
      threads: 1,
      timeoutMs: mergeTimeoutMs,
      idleMs: 3 * writeTimeoutMs + idleMs,
    }),
    verify: openPool({ ...common, entry: "verify", threads: workers, timeoutMs: verifyTimeoutMs }),
    // One thread: the pieces of a hash stay with it.
    content: openPool({ ...common, entry: "content", threads: 1, timeoutMs: contentTimeoutMs }),
    unbundle: openPool({ ...common, entry: "unbundle", threads: workers, timeoutMs: unbundleTimeoutMs }),
    query: openPool({
      ...common,
      entry: "graphql",
      threads: Math.max(1, config.QUERY_THREADS),
      timeoutMs: config.QUERY_TIMEOUT_MS + queryGraceMs,
    }),
    export: openExportThreads(1),
  };
  for (const [name, pool] of Object.entries(threads)) closers.add(`threads of ${name}`, pool.close);
  return threads;
}

/** Number of open jobs or of threads, by pool. */
export function loadsOf(threads: Threads, what: "open" | "threads"): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(threads).map(([name, pool]) => [name, pool.load()[what]]));
}

/** Opens the pool of exports; its threads start with their first job. */
export function openExportThreads(threads: number): Pool<Workers["export"]> {
  return openPool({ entry: "export", threads, queueMax: jobsWaitingMax, idleMs, timeoutMs: partitionTimeoutMs });
}

/** The calls of an export over one index. */
export function createPartitionWriter(
  pool: Pool<Workers["export"]>,
  indexPath: string,
  signal: AbortSignal,
): PartitionWriter {
  return {
    firstHeight: () => pool.run("firstHeight", { indexPath }, { signal }),
    stableHeight: () => pool.run("stableHeight", { indexPath }, { signal }),
    write: (request) => pool.run("exportPartition", { indexPath, request }, { signal }),
  };
}

/** Opens the pools, of one thread each, that build indexes of manifests in parallel. */
export function openManifestThreads(closers: Closers): readonly Pool<Workers["manifests"]>[] {
  const options = { entry: "manifests", threads: 1, timeoutMs: manifestTimeoutMs, idleMs } as const;
  const pools = Array.from({ length: manifestThreads }, () => openPool({ ...options, queueMax: jobsWaitingMax }));
  for (const pool of pools) closers.add("threads of manifests", pool.close);
  return pools;
}

/** Opens the thread that makes Blobs of large response bodies. */
export function openBlobThread(closers: Closers): BlobThread {
  const options = { entry: "bodies", threads: 1, timeoutMs: bodyTimeoutMs, idleMs } as const;
  const pool = openPool({ ...options, queueMax: jobsWaitingMax });
  closers.add("thread of bodies", pool.close);
  return async (bytes) => {
    const url = await pool.run("makeBlob", { bytes }, { transfer: [bytes.buffer] });
    const blob = resolveObjectURL(url);
    URL.revokeObjectURL(url);
    assert(blob !== undefined, "an object URL is known in every thread until it is revoked");
    return blob;
  };
}

/** Opens the thread that reads the whole ledger for reports; it starts with its first job. */
export function openReportThread(closers: Closers): Pool<Workers["ledger-reports"]> {
  const options = { entry: "ledger-reports", threads: 1, timeoutMs: reportTimeoutMs, idleMs } as const;
  const pool = openPool({ ...options, queueMax: reportsWaitingMax });
  closers.add("thread of ledger reports", pool.close);
  return pool;
}

/** Opens the pools of uploads; their threads start with their first job. */
export function openUploadThreads(config: Config, closers: Closers): UploadThreads {
  const workers = workerCount(config);
  const common = { queueMax: jobsWaitingMax, idleMs };
  const intake = Array.from({ length: workers }, () =>
    openPool({ ...common, entry: "intake", threads: 1, timeoutMs: intakeTimeoutMs, idleMs: intakeIdleMs }),
  );
  for (const pool of intake) closers.add("threads of intake", pool.close);
  const receipts = openPool({ ...common, entry: "receipts", threads: workers, timeoutMs: receiptTimeoutMs });
  closers.add("threads of receipts", receipts.close);
  const bundles = openPool({ ...common, entry: "bundles", threads: 1, timeoutMs: bundleTimeoutMs });
  closers.add("threads of bundles", bundles.close);
  const walks = Array.from({ length: workers }, () =>
    openPool({ ...common, entry: "walk", threads: 1, timeoutMs: walkTimeoutMs }),
  );
  for (const pool of walks) closers.add("threads of walks", pool.close);
  const signing = openPool({ ...common, entry: "sign", threads: 1, timeoutMs: walkTimeoutMs });
  closers.add("threads of signing", signing.close);
  return { intake, receipts, receiptThreads: workers, bundles, walks, signing };
}
