/**
 * The thread that merges parts of the index: reads and sorts them over a connection that only reads. It also folds the
 * writer's log into the file. Its pool has one thread; a merge ends with it.
 * @module
 */
import type { PartMerge } from "../src/store/index/part-merge.ts";
import {
  type MergeStep,
  openPartMerger,
  type PartMerger,
  type RepairedFilter,
} from "../src/store/index/part-merger.ts";
import { ping } from "../src/threads/ping.ts";

export { ping };

const mergers = new Map<string, PartMerger>();

/** Begins a merge that the writer has begun, and makes its first step. */
export function begin({ path, merge }: Readonly<{ path: string; merge: PartMerge }>): MergeStep {
  return mergerOf(path).begin(merge);
}

/** Makes the next step of the merge. @throws Error when no merge is under way in this thread. */
export function next({ path }: Readonly<{ path: string }>): MergeStep {
  return mergerOf(path).next();
}

/** Makes a filter again that is missing or damaged. */
export function repairFilter({ path }: Readonly<{ path: string }>): RepairedFilter | undefined {
  return mergerOf(path).repairFilter();
}

/** Folds the log of the index into its file when it is long. */
export function checkpoint({ path }: Readonly<{ path: string }>): void {
  mergerOf(path).checkpoint();
}

function mergerOf(path: string): PartMerger {
  const merger = mergers.get(path) ?? openPartMerger(path);
  mergers.set(path, merger);
  return merger;
}
