/**
 * How many entries of bundles may be read under one root transaction: the same bytes can stand for a thousand bundles
 * of a thousand items, on ten levels.
 *
 * The count outlives a restart, for the index has it. What is left is given out batch by batch, and what a batch did
 * not use comes back: all that the budget allows is read, and nothing beyond.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import { assert } from "../lib/assert.ts";
import { untilStopped } from "../lib/stop.ts";
import type { BundleJob, IndexReader } from "../store/index/index-types.ts";

/** Entries that may be read. */
export type EntryGrant = Readonly<{
  /** At least one. */
  entries: number;
  /** Says, once, how many were used; the others come back. */
  settle: (used: number) => void;
}>;

/** The budgets of all roots. */
export type EntryBudget = Readonly<{
  /** Begins a root anew: its own bundle is read from its first entry. */
  begin: (rootId: Id) => void;
  /** Whether a bundle's root has nothing left. */
  isSpent: (job: BundleJob) => boolean;
  /** Returns entries that were used and could not be stored. */
  giveBack: (job: BundleJob, entries: number) => void;
  /**
   * Takes what is left under a bundle's root, at most `wanted`; waits while some may still come back from others.
   *
   * @returns `undefined` when the budget is used up.
   * @throws The signal's reason.
   */
  take: (job: BundleJob, wanted: number, signal: AbortSignal) => Promise<EntryGrant | undefined>;
}>;

/** Roots that are remembered; of others the index is asked again. */
const rootsMax = 10_000;

/** What is known of a root: entries that were used, those that were given out since, and the next return of some. */
type Root = { used: number; given: number; settled: PromiseWithResolvers<void> };

/**
 * Creates the budgets.
 *
 * @param entriesPerRootMax - Of every root.
 */
export function createEntryBudget(entriesPerRootMax: number, reader: Pick<IndexReader, "entriesUnder">): EntryBudget {
  const roots = new Map<Id, Root>();

  const put = (rootId: Id, used: number): Root => {
    const root = { used, given: 0, settled: Promise.withResolvers<void>() };
    roots.delete(rootId);
    roots.set(rootId, root);
    const [oldest] = roots.keys();
    if (roots.size > rootsMax && oldest !== undefined) roots.delete(oldest);
    return root;
  };

  const grant = (root: Root, entries: number): EntryGrant => {
    root.given += entries;
    return {
      entries,
      settle: (used) => {
        assert(used >= 0 && used <= entries, "no more is used than was given");
        root.given -= entries;
        root.used += used;
        root.settled.resolve();
        root.settled = Promise.withResolvers<void>();
      },
    };
  };

  const rootOf = ({ rootId, place }: BundleJob): Root => roots.get(rootId) ?? put(rootId, reader.entriesUnder(place));

  return {
    isSpent: (job) => rootOf(job).used >= entriesPerRootMax,
    giveBack: (job, entries) => {
      rootOf(job).used -= entries;
    },
    begin: (rootId) => {
      put(rootId, 0);
    },
    take: async (job, wanted, signal) => {
      const root = rootOf(job);
      for (;;) {
        const left = entriesPerRootMax - root.used - root.given;
        if (left > 0) return grant(root, Math.min(left, wanted));
        if (root.given === 0) return undefined;
        await untilStopped(root.settled.promise, signal);
      }
    },
  };
}
