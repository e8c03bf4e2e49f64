/**
 * Unbundles one bundle of the queue: fetches its bytes to disk, has threads verify them batch by batch, and passes the
 * rows to the index writer.
 *
 * One batch is read while the previous one is written, so reading cannot outrun writing. The rows pass from the
 * verifying thread to the writing thread unchanged.
 * Source: docs/reference/index-layout.md#bundles; docs/reference/threats.md (B1, B2, B5).
 * @module
 */
import { statSync } from "node:fs";
import type { UnbundleJob, UnbundleResult } from "../../workers/unbundle.ts";
import type { EntryPlace } from "../arweave/bundle.ts";
import { canonical, type Filter } from "../arweave/filter.ts";
import type { Id } from "../arweave/id.ts";
import type { Content } from "../content/content.ts";
import { Failure } from "../failures.ts";
import type { Log } from "../lib/log.ts";
import type { BundleJob, BundleRef, IndexReader, Located } from "../store/index/index-types.ts";
import type { IndexWriterCalls } from "../store/index/index-writer-calls.ts";
import type { RootSpec } from "../store/root-spec.ts";
import type { Pool, Workers } from "../threads/pool.ts";
import { type FilterReader, isWanted } from "./bundle-filter.ts";
import type { EntryBudget, EntryGrant } from "./entry-budget.ts";

/** The limits of work on bundles. */
export type BundleLimits = Readonly<{
  /** Levels of nested bundles, not counting the transaction's. */
  depthMax: number;
  /** Entries that are read under one root transaction, on all levels together. */
  entriesPerRootMax: number;
  /** Entries of a batch, and bytes after which it ends. */
  entriesPerBatch: number;
  bytesPerBatch: number;
  /** A batch times out after this and the time of its bytes at the slowest rate. */
  batchTimeoutMs: number;
  slowestBytesPerMs: number;
}>;

/**
 * Ten levels are twice the largest known depth. A million entries under one root are ten times the largest bundles. The
 * same bytes count once for each level, so this limits the work of one root.
 */
export const bundleLimitsDefault: BundleLimits = {
  depthMax: 10,
  entriesPerRootMax: 2 ** 20,
  entriesPerBatch: 1_000,
  bytesPerBatch: 64 * 2 ** 20,
  batchTimeoutMs: 60_000,
  slowestBytesPerMs: 10_000,
};

/** The dependencies of `unbundleOne`. */
export type UnbundleParts = Readonly<{
  index: Pick<IndexWriterCalls, "addItems">;
  reader: FilterReader & Pick<IndexReader, "locate" | "path" | "filterSecret">;
  content: Pick<Content, "ensure">;
  pool: Pick<Pool<Workers["unbundle"]>, "run">;
  unbundleFilter: Filter;
  indexFilter: Filter;
  limits: BundleLimits;
  budget: Omit<EntryBudget, "begin">;
  /** Called with the ids of added items and their root transaction, also when only nested bundles were found in it. */
  onItems: (ids: readonly Id[], rootId: Id) => void;
  log: Log;
}>;

/** The outcome of a bundle. Failures that may pass are thrown instead. */
export type BundleOutcome =
  | Readonly<{ kind: "done"; itemCount: number }>
  | Readonly<{ kind: "skipped" }>
  /** The bundle will never succeed. */
  | Readonly<{ kind: "rejected"; reason: string }>
  /** The bundle was removed from the index, or is to be read from another entry: a reorg put it there again. */
  | Readonly<{ kind: "gone" }>;

/**
 * Processes one bundle, from the first entry of its job to the last.
 *
 * @returns After every row is durable.
 * @throws Failure `source_*`, `not_found` or `busy` when its bytes are not available now (`not_found` also when a reorg
 *   removed its transaction), `worker_failed` when its thread died or hung; the signal's reason.
 */
export async function unbundleOne(job: BundleJob, parts: UnbundleParts, signal: AbortSignal): Promise<BundleOutcome> {
  const { limits, reader } = parts;
  if (job.depth > limits.depthMax)
    return { kind: "rejected", reason: `bundles are nested deeper than ${limits.depthMax}` };
  if (!isWanted(parts.unbundleFilter, job, reader)) return { kind: "skipped" };
  // Checked before the bytes are requested: a root without budget causes no requests.
  if (parts.budget.isSpent(job)) return overBudget(limits);
  const root = reader.locate(job.rootId);
  if (root === undefined || !isSameRoot(root, job))
    throw new Failure("not_found", { reason: "the bundle's transaction is not in the index" });

  const start = job.place.offset === -1 ? 0 : job.place.offset + job.headerSize;
  const held = await parts.content.ensure(rootSpecOf(root), { start, end: start + job.size }, signal);
  try {
    return await readBatches(job, jobOf(job, parts, held.path, start), parts, signal);
  } finally {
    held.release();
  }
}

function overBudget({ entriesPerRootMax }: BundleLimits): BundleOutcome {
  return { kind: "rejected", reason: `more than ${entriesPerRootMax} entries under one root` };
}

/** A reorg may have moved the transaction while the bundle was in the queue. */
function isSameRoot(root: Located, job: BundleJob): boolean {
  return root.place.height === job.place.height && root.place.txIndex === job.place.txIndex;
}

function rootSpecOf(root: Located): RootSpec {
  return {
    id: root.id,
    dataRoot: root.dataRoot,
    size: root.rootSize,
    ...(root.weaveStart !== undefined && { weaveStart: root.weaveStart }),
  };
}

function jobOf(job: BundleJob, parts: UnbundleParts, path: string, start: number): UnbundleJob {
  return {
    path,
    root: { height: job.place.height, txIndex: job.place.txIndex },
    rootId: job.rootId,
    bundleId: job.id,
    start,
    size: job.size,
    parentOffset: job.place.offset === -1 ? null : job.place.offset,
    depth: job.depth,
    from: { index: job.nextEntry },
    entriesMax: parts.limits.entriesPerBatch,
    bytesMax: parts.limits.bytesPerBatch,
    indexFilter: canonical(parts.indexFilter),
    unbundleFilter: canonical(parts.unbundleFilter),
    bypassFilter: job.bypassFilter,
    filterSecret: parts.reader.filterSecret,
    indexPath: testedIndex(parts.reader),
  };
}

/** Ids of a smaller index are not tested ahead: the filters of its parts are in the caches of the processor. Bytes. */
const testedIndexBytesMin = 64 * 2 ** 20;

function testedIndex({ path }: Pick<IndexReader, "path">): string | undefined {
  const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  return bytes < testedIndexBytesMin ? undefined : path;
}

async function readBatches(
  job: BundleJob,
  first: UnbundleJob,
  parts: UnbundleParts,
  signal: AbortSignal,
): Promise<BundleOutcome> {
  let from: UnbundleJob["from"] | undefined = first.from;
  let itemCount = 0;
  // Resolves with its error: if the batch that is read meanwhile fails, a rejection would be unhandled.
  let writing: Promise<Written> = Promise.resolve({ isGone: false });
  while (from !== undefined) {
    const grant = await parts.budget.take(job, first.entriesMax, signal);
    if (grant === undefined) break;
    const response: UnbundleResult = await readGranted({ ...first, from }, grant, parts, signal);
    const { isGone, error } = await writing;
    if (error !== undefined) throw error;
    if (isGone) return { kind: "gone" };
    if (response.kind === "malformed") return { kind: "rejected", reason: response.reason };
    itemCount = response.count;
    logInvalid(job, response, parts.log);
    writing = write(job, response, from.index, grant, parts);
    from = response.next;
  }
  const { isGone, error } = await writing;
  if (error !== undefined) throw error;
  if (isGone) return { kind: "gone" };
  return from === undefined ? { kind: "done", itemCount } : overBudget(parts.limits);
}

/** Reads at most as many entries as were granted. */
async function readGranted(
  job: UnbundleJob,
  grant: EntryGrant,
  parts: UnbundleParts,
  signal: AbortSignal,
): Promise<UnbundleResult> {
  let used = 0;
  try {
    const response = await readBatch({ ...job, entriesMax: grant.entries }, parts, signal);
    used = response.kind === "malformed" ? 0 : entriesRead(response, job.from.index);
    return response;
  } finally {
    grant.settle(used);
  }
}

type Batch = Extract<UnbundleResult, { kind: "batch" }>;

function entriesRead({ next, count }: Batch, first: number): number {
  return endOf(next, count) - first;
}

function endOf(next: EntryPlace | undefined, count: number): number {
  return next === undefined ? count : next.index;
}

function readBatch(job: UnbundleJob, { limits, pool }: UnbundleParts, signal: AbortSignal): Promise<UnbundleResult> {
  const timeoutMs = limits.batchTimeoutMs + Math.ceil(job.size / limits.slowestBytesPerMs);
  return pool.run("unbundle", job, { signal, timeoutMs });
}

/** What became of a batch. */
type Written = Readonly<{ isGone: boolean; error?: unknown }>;

/** Writes a batch; one that is not written does not count against the budget. */
async function write(
  job: BundleJob,
  batch: Batch,
  firstEntry: number,
  grant: EntryGrant,
  parts: UnbundleParts,
): Promise<Written> {
  const nextEntry = endOf(batch.next, batch.count);
  const giveBack = () => grant.giveBack(nextEntry - firstEntry);
  try {
    const { rows, bundles, invalid, invalidCount } = batch;
    const bundle = refOf(job);
    const added = await parts.index.addItems({ bundle, rows, firstEntry, nextEntry, bundles, invalid, invalidCount });
    if (added.gone) giveBack();
    else if (batch.ids.length + batch.bundles.length > 0) parts.onItems(batch.ids, job.rootId);
    return { isGone: added.gone };
  } catch (error) {
    giveBack();
    return { isGone: false, error };
  }
}

/**
 * A reference to the bundle: its place and its id, because a reorg may put another bundle at that place, and whether
 * its work bypassed the filters, because a request may have changed that meanwhile.
 */
export function refOf({ place, id, bypassFilter }: BundleJob): BundleRef {
  return { ...place, id, bypassFilter };
}

function logInvalid(job: BundleJob, { invalidCount, invalid }: Batch, log: Log): void {
  if (invalidCount === 0) return;
  log.warn("items of a bundle are invalid", {
    bundle: job.id,
    root: job.rootId,
    invalidCount,
    first: invalid[0],
  });
}
