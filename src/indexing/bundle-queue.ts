/**
 * Processes the queue of bundles: a few at a time, each retried until its bytes are available, without blocking others.
 *
 * The queue is a table of the index, so it has no limit and survives a crash. A bundle that repeatedly ends its thread
 * is marked as failed with the reason.
 * Source: docs/reference/index-layout.md#bundles; docs/reference/threats.md (B5, N2).
 * @module
 */
import { canonical } from "../arweave/filter.ts";
import type { Id } from "../arweave/id.ts";
import { explainError, Failure } from "../failures.ts";
import type { Clock } from "../lib/clock.ts";
import { type Loop, type LoopStatus, openLoop, type StepOutcome } from "../lib/loop.ts";
import { type RetryPlan, retry, retryWaitMs } from "../lib/retry.ts";
import { linkedController, withDeadline } from "../lib/stop.ts";
import type { BundleFilters, BundleJob, IndexReader } from "../store/index/index-types.ts";
import type { IndexWriterCalls } from "../store/index/index-writer-calls.ts";
import type { Place } from "../store/index/place.ts";
import { createEntryBudget } from "./entry-budget.ts";
import { type BundleOutcome, refOf, type UnbundleParts, unbundleOne } from "./unbundle.ts";

export type BundlesOptions = Omit<UnbundleParts, "budget" | "index" | "reader"> &
  Readonly<{
    index: UnbundleParts["index"] &
      Pick<IndexWriterCalls, "takeBundle" | "skipBundle" | "finishBundle" | "failBundle" | "releaseBundle">;
    reader: UnbundleParts["reader"] & Pick<IndexReader, "nextBundleAt" | "entriesUnder">;
    /** Bundles that are processed at once: one waits for bytes while another is verified. */
    slots: number;
    /** Interval between two polls of the queue without a call of `wake`, milliseconds. */
    intervalMs: number;
    /** Time for one attempt at a bundle, milliseconds. What was indexed by then stays, and it is tried again. */
    bundleMs: number;
    /** Waits before a bundle is tried again. */
    retry: Omit<RetryPlan, "attempts">;
    clock: Clock;
    random: () => number;
  }>;

/** The bytes of a transaction arrive within seconds on a development chain, within minutes elsewhere, or never. */
export const bundleRetryDefault: BundlesOptions["retry"] = { firstMs: 250, longestMs: 30 * 60_000 };

export type BundlesStatus = Readonly<{ working: readonly Id[]; slots: readonly LoopStatus[] }>;

export type Bundles = Readonly<{
  /** Polls the queue now. Called after an insertion. */
  wake: () => void;
  /**
   * Ends the work on bundles at or above a height, because their blocks are being removed. Resolves when all of it
   * has ended.
   */
  dropFrom: (height: number) => Promise<void>;
  status: () => BundlesStatus;
  close: () => Promise<void>;
}>;

/** A bundle fails after its thread died or hung this often. */
export const workerFailuresMax = 3;

/** The longest timer: a step ends with its bundle, whose outcome is stored as soon as the disk takes it. */
const stepTimeoutMs = 2 ** 31 - 1;

/** Waits after a failure of the index itself. */
const slotBackoff = { firstMs: 100, longestMs: 30_000 };

/** Most bundles and roots that are counted; the oldest count is evicted. */
const countsMax = 10_000;

type Work = Readonly<{ job: BundleJob; stop: AbortController; ended: Promise<void> }> & {
  /** Whether another slot took the bundle meanwhile, and left it to this one. */
  isTakenAgain: boolean;
};

/** Starts working on the queue. */
export function openBundles(options: BundlesOptions): Bundles {
  const { index, reader, clock, random, log, intervalMs } = options;
  const wake = () => {
    for (const slot of slots) slot.wake();
  };
  const addItems: typeof index.addItems = async (batch) => {
    const added = await index.addItems(batch);
    if (batch.bundles.length > 0) wake();
    return added;
  };
  const { workOn, release } = createWork({ ...options, index: { ...index, addItems } });
  const working = new Set<Work>();

  const step = async (signal: AbortSignal): Promise<StepOutcome> => {
    const job = await index.takeBundle();
    if (job === undefined) return { restMs: restOf(reader.nextBundleAt(), clock(), intervalMs) };
    // A restarted index thread returns bundles again that another slot still processes, and so does a reorg that puts a
    // bundle where it was before. That slot finishes them.
    const other = [...working].find((work) => isSameBundle(work.job, job));
    if (other !== undefined) {
      other.isTakenAgain = true;
      return "again";
    }
    const { controller: stop, unlink } = linkedController(signal);
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const work: Work = { job, stop, ended, isTakenAgain: false };
    working.add(work);
    try {
      await workOn(job, stop.signal);
    } finally {
      working.delete(work);
      unlink();
      resolve();
      // Its outcome may be that of a bundle that a reorg has removed: the one of the new block is not processed then.
      if (work.isTakenAgain) await release(job, signal);
    }
    return "again";
  };

  const openSlot = (slot: number): Loop =>
    openLoop({
      name: `bundles ${slot}`,
      step,
      intervalMs,
      backoff: slotBackoff,
      stepTimeoutMs,
      clock,
      random,
      log,
    });
  const slots = Array.from({ length: options.slots }, (_, slot) => openSlot(slot + 1));

  return {
    wake,
    dropFrom: async (height) => {
      const dropped = [...working].filter(({ job }) => job.place.height >= height);
      for (const { stop } of dropped) stop.abort(new Error("the bundle's block was removed"));
      await Promise.all(dropped.map(({ ended }) => ended));
    },
    status: () => ({
      working: [...working].map(({ job }) => job.id),
      slots: slots.map((slot) => slot.status()),
    }),
    close: async () => {
      await Promise.all(slots.map((slot) => slot.close()));
    },
  };
}

/**
 * Processes one bundle and stores the outcome, or releases it. The row of an aborted bundle does not change; a rollback
 * may have removed it.
 */
function createWork(
  options: BundlesOptions,
): Readonly<Record<"workOn" | "release", (job: BundleJob, signal: AbortSignal) => Promise<void>>> {
  const { index, reader, clock, random, log, limits } = options;
  const filters: BundleFilters = {
    unbundleFilter: canonical(options.unbundleFilter),
    indexFilter: canonical(options.indexFilter),
  };
  const budget = createEntryBudget(limits.entriesPerRootMax, reader);
  const workerFailures = createCounts(countsMax);
  const rejections = createCounts(countsMax);
  const parts: UnbundleParts = { ...options, budget };

  /** One root can contain thousands of such bundles, so the warning is logged once. */
  const logRejected = ({ id, rootId }: BundleJob, reason: string) => {
    const isFirst = rejections.add(`${rootId} ${reason}`, 1) === 1;
    log[isFirst ? "warn" : "debug"]("bundle rejected", { bundle: id, root: rootId, reason });
  };

  const postpone = (job: BundleJob, error: unknown) => {
    const reason = explainError(error);
    const context = { bundle: job.id, root: job.rootId, attempts: job.attempts + 1, reason };
    if (hasFailedThread(error) && workerFailures.add(keyOf(job.place), 1) >= workerFailuresMax) {
      log.error("bundle failed: its thread ended repeatedly", context);
      return () => index.failBundle(refOf(job), reason, null);
    }
    // Each wait is used twice, so that bytes that arrive a minute late do not wait for another minute.
    const waits = Math.ceil((job.attempts + 1) / 2);
    const waitMs = retryWaitMs({ ...options.retry, attempts: 1 }, waits, random);
    log.debug("bundle postponed", { ...context, waitMs });
    return () => index.failBundle(refOf(job), reason, clock() + waitMs);
  };

  const settle = (job: BundleJob, outcome: BundleOutcome) => {
    workerFailures.forget(keyOf(job.place));
    switch (outcome.kind) {
      case "done":
        return () => index.finishBundle(refOf(job), { ...filters, itemCount: outcome.itemCount });
      case "skipped":
        return () => index.skipBundle(refOf(job), filters);
      case "rejected":
        logRejected(job, outcome.reason);
        return () => index.failBundle(refOf(job), outcome.reason, null);
      case "gone":
        return () => index.releaseBundle(refOf(job));
    }
  };

  const outcomeOf = async (job: BundleJob, signal: AbortSignal) => {
    if (job.depth === 0 && job.nextEntry === 0) budget.begin(job.rootId);
    try {
      return settle(job, await withDeadline(signal, options.bundleMs, (own) => unbundleOne(job, parts, own)));
    } catch (error) {
      return signal.aborted ? undefined : postpone(job, error);
    }
  };

  /**
   * A bundle whose outcome cannot be stored (a full disk) keeps its slot, so that no more work begins.
   */
  const persist = (writeDown: () => Promise<unknown>, signal: AbortSignal) =>
    retry(
      { ...slotBackoff, attempts: Number.POSITIVE_INFINITY },
      signal,
      random,
      async () => {
        try {
          await writeDown();
          return true;
        } catch (error) {
          log.error("the outcome of a bundle could not be stored", { error });
          return false;
        }
      },
      Boolean,
    );

  return {
    workOn: async (job, signal) => {
      const writeDown = await outcomeOf(job, signal);
      if (writeDown !== undefined) await persist(writeDown, signal);
    },
    release: async (job, signal) => {
      await persist(() => index.releaseBundle(refOf(job)), signal);
    },
  };
}

function hasFailedThread(error: unknown): boolean {
  return error instanceof Failure && error.code === "worker_failed";
}

function isSameBundle(a: BundleJob, b: BundleJob): boolean {
  return a.id === b.id && keyOf(a.place) === keyOf(b.place);
}

/** The time until the next bundle is due, at most the interval. */
function restOf(nextAt: number | undefined, now: number, intervalMs: number): number {
  return nextAt === undefined ? intervalMs : Math.min(intervalMs, Math.max(0, nextAt - now));
}

function keyOf({ height, txIndex, offset }: Place): string {
  return `${height}/${txIndex}/${offset}`;
}

/** Counts by name; evicts the name that was counted the longest ago. */
function createCounts(namesMax: number) {
  const counts = new Map<string, number>();
  return {
    add: (name: string, amount: number): number => {
      const count = (counts.get(name) ?? 0) + amount;
      counts.delete(name);
      counts.set(name, count);
      const [oldest] = counts.keys();
      if (counts.size > namesMax && oldest !== undefined) counts.delete(oldest);
      return count;
    },
    forget: (name: string) => counts.delete(name),
  };
}
