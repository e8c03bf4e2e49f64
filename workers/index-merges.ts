/**
 * The thread that merges parts of the index: reads and sorts them over a connection that only reads. It also folds the
 * writer's log into the file. Its pool has one thread; a merge ends with it.
 * @module
 */
import {
  type MergeConnection,
  type MergeStep,
  openMergeConnection,
  type RepairedFilter,
} from "../src/store/index/parts/merge-connection.ts";
import type { PartMerge } from "../src/store/index/parts/part-merge.ts";
import { createCollections } from "../src/threads/collect.ts";
import { ping } from "../src/threads/ping.ts";

export { ping };

const connections = new Map<string, MergeConnection>();

/** What a step reads and makes, about. Source: docs/decisions/113-collections.md. */
const stepBytes = 4 * 2 ** 20;
const countBytes = createCollections();

/** Begins a merge that the writer has begun, and makes its first step. */
export function begin({ path, merge }: Readonly<{ path: string; merge: PartMerge }>): MergeStep {
  countBytes(stepBytes);
  return connectionOf(path).begin(merge);
}

/** Makes the next step of the merge. @throws Error when no merge is under way in this thread. */
export function next({ path }: Readonly<{ path: string }>): MergeStep {
  countBytes(stepBytes);
  return connectionOf(path).next();
}

/** Makes a filter again that is missing or damaged. */
export function repairFilter({ path }: Readonly<{ path: string }>): RepairedFilter | undefined {
  return connectionOf(path).repairFilter();
}

/** Folds the log of the index into its file when it is long. */
export function checkpoint({ path }: Readonly<{ path: string }>): void {
  connectionOf(path).checkpoint();
}

function connectionOf(path: string): MergeConnection {
  const connection = connections.get(path) ?? openMergeConnection(path);
  connections.set(path, connection);
  return connection;
}
