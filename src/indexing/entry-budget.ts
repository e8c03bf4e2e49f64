/**
 * Limits the entries of bundles that are read under one root transaction. Without a limit, nested bundles could list
 * the same bytes as a thousand bundles of a thousand items, on ten levels.
 *
 * The index stores the count, so it survives a restart. Each batch is granted a part of the budget and returns what it
 * did not use, so exactly the budget can be read.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import { assert } from "../lib/assert.ts";
import { untilStopped } from "../lib/stop.ts";
import type { BundleJob, IndexReader } from "../store/index/index-types.ts";

/** A grant of entries to read. */
export type EntryGrant = Readonly<{
  /** At least one. */
  entries: number;
  /** Reports the used entries, once; the others return to the budget. */
  settle: (used: number) => void;
  /** Returns used entries that could not be stored. */
  giveBack: (entries: number) => void;
}>;

/** The budgets of all roots. */
export type EntryBudget = Readonly<{
  /** Resets the count of a root, whose own bundle is read from its first entry. */
  begin: (rootId: Id) => void;
  /** Whether the budget of a bundle's root is used up. */
  isSpent: (job: BundleJob) => boolean;
  /**
   * Takes at most `wanted` entries of a bundle's root. Waits while other grants may return entries.
   *
   * @returns `undefined` when the budget is used up.
   * @throws The signal's reason.
   */
  take: (job: BundleJob, wanted: number, signal: AbortSignal) => Promise<EntryGrant | undefined>;
}>;

/** Most roots in memory, about 200 bytes each; the counts of others are read from the index again. */
const rootsMax = 10_000;

/** Used and granted entries of a root. `settled` resolves when a grant is settled; absent while nothing waits. */
type Root = { used: number; given: number; settled: PromiseWithResolvers<void> | undefined };

export function createEntryBudget(entriesPerRootMax: number, reader: Pick<IndexReader, "entriesUnder">): EntryBudget {
  const roots = new Map<Id, Root>();

  const put = (rootId: Id, used: number): Root => {
    const root = { used, given: 0, settled: undefined };
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
        root.settled?.resolve();
        root.settled = undefined;
      },
      // Of this object: a count that was read from the index since then lacks these entries already.
      giveBack: (unstored) => {
        root.used -= unstored;
      },
    };
  };

  const rootOf = ({ rootId, place }: BundleJob): Root => roots.get(rootId) ?? put(rootId, reader.entriesUnder(place));

  return {
    isSpent: (job) => rootOf(job).used >= entriesPerRootMax,
    begin: (rootId) => {
      put(rootId, 0);
    },
    take: async (job, wanted, signal) => {
      const root = rootOf(job);
      for (;;) {
        const left = entriesPerRootMax - root.used - root.given;
        if (left > 0) return grant(root, Math.min(left, wanted));
        if (root.given === 0) return undefined;
        root.settled ??= Promise.withResolvers<void>();
        await untilStopped(root.settled.promise, signal);
      }
    },
  };
}
