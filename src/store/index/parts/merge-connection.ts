/**
 * Makes merges of parts and their filters over a connection that only reads: in a thread of its own
 * (workers/index-merges.ts), or between two calls of a writer in the same thread.
 * Source: docs/reference/index-layout.md#merges.
 * @module
 */
import { closeDatabase, createCheckpoints, openForReading } from "../../sqlite.ts";
import { createFilterKeys, filterSecretOf } from "../filter-key.ts";
import type { IndexWriter } from "../index-writer.ts";
import { createFilterFile, filterFolderOf, isFilterFileSound, type NewFilterFile } from "./part-filter.ts";
import { hasIdsApart, type PartInfo } from "./part-list.ts";
import {
  createMerges,
  type MergedBodies,
  type MergedPart,
  type NewPartFilters,
  type PartMerge,
  rangeEntriesDefault,
} from "./part-merge.ts";
import { createPartKeyReads, createPartReads, type PartKeyReads } from "./part-reads.ts";

/** The next step of a merge: bodies to store, or the new part when all bodies are stored. */
export type MergeStep = Readonly<{ bodies: MergedBodies }> | Readonly<{ merged: MergedPart; filter: string | null }>;

/** A filter that was made again. */
export type RepairedFilter = Readonly<{ part: number; filter: string }>;

export type MergeConnection = Readonly<{
  /**
   * Begins a merge, and makes its first step; merges within which it is not are abandoned.
   *
   * @throws Error when it is within a merge that is not under way.
   */
  begin: (merge: PartMerge) => MergeStep;
  /** Makes the next step of the merge that was begun last, and before it what `checkpoint` does. */
  next: () => MergeStep;
  /** Makes a filter again whose file is missing or damaged; undefined when there is none. */
  repairFilter: () => RepairedFilter | undefined;
  /** Folds the writer's log into the file when it is long, so that the writer does not wait for the disk. */
  checkpoint: () => void;
  close: () => void;
}>;

export type MergeSizes = Readonly<{
  /** Rows of a part whose filters are a file. Threads make the filters of smaller parts themselves. */
  filterFileRowsMin: number;
  /** Average number of entries of a step. */
  rangeEntries: number;
}>;
const sizesDefault: MergeSizes = { filterFileRowsMin: 2 ** 15, rangeEntries: rangeEntriesDefault };

/** A merge reads each block of its parts once, in order. */
const cacheBytes = 2 * 2 ** 20;
/** Pages of the log that are worth two syncs: 8 MB. The writer's own limit is much higher (index-writer.ts). */
const checkpointPagesMin = 1_000;

/** Opens an index for merges. @throws Error as `openIndexReader` does. */
export function openMergeConnection(path: string, sizes: Partial<MergeSizes> = {}): MergeConnection {
  const { filterFileRowsMin, rangeEntries } = { ...sizesDefault, ...sizes };
  const db = openForReading(path, cacheBytes);
  const steps = createMerges(db, createFilterKeys(filterSecretOf(db, path)), rangeEntries);
  const parts = createPartReads(db);
  const keyReads = createPartKeyReads(db);
  const folder = filterFolderOf(path);
  const checkpoint = createCheckpoints(db, checkpointPagesMin);
  /** Each one within the one before it. */
  const underWay: { part: number; steps: ReturnType<typeof steps>; filters: NewFilterFile | undefined }[] = [];
  const abandon = (from: number): void => {
    for (const { filters } of underWay.splice(from)) filters?.close();
  };

  const next = (): MergeStep => {
    checkpoint();
    const last = underWay.at(-1);
    if (last === undefined) throw new Error("no merge is under way");
    const { value, done } = last.steps.next();
    if (done !== true) return { bodies: value };
    underWay.pop();
    try {
      return { merged: value, filter: last.filters?.end() ?? null };
    } finally {
      last.filters?.close();
    }
  };
  return {
    begin: (merge) => {
      const outer = underWay.findIndex(({ part }) => part === merge.within);
      if (outer === -1 && merge.within !== undefined) throw new Error("the merge within which this one is has ended");
      abandon(outer + 1);
      const begun: (typeof underWay)[number] = {
        part: merge.part,
        steps: steps(merge, openFilters),
        filters: undefined,
      };
      function openFilters(rows: number): NewPartFilters {
        if (rows < filterFileRowsMin) return noFilters;
        begun.filters = createFilterFile(folder, merge.part, { rows, keysMax: merge.keysMax });
        return begun.filters;
      }
      underWay.push(begun);
      return next();
    },
    next,
    repairFilter: () => {
      for (const info of parts.list()) {
        const { part, filter } = info;
        if (info.keys === null || info.count < filterFileRowsMin) continue;
        if (filter !== null && isFilterFileSound(folder, filter)) continue;
        return { part, filter: writeFilters(info, keyReads, folder) };
      }
      return undefined;
    },
    checkpoint,
    close: () => {
      abandon(0);
      closeDatabase(db);
    },
  };
}

const noFilters: NewPartFilters = { addId: () => undefined, addKey: () => undefined };

/** Writes the file of the filters of a part. @returns Its name. */
function writeFilters(info: PartInfo, reads: PartKeyReads, folder: string): string {
  const rows = hasIdsApart(info) ? info.count : undefined;
  const file = createFilterFile(folder, info.part, { rows, keysMax: info.keys ?? 0 }, info.filter);
  try {
    if (hasIdsApart(info)) for (const key of reads.ids(info)) file.addId(key);
    for (const key of reads.keys(info)) file.addKey(key);
    return file.end();
  } finally {
    file.close();
  }
}

/** Makes all due merges of a writer in this thread, for commands that write an index without a service. */
export function mergeAllParts(writer: IndexWriter, connection: MergeConnection): void {
  for (let merge = writer.beginMerge(); merge !== undefined; merge = writer.beginMerge()) {
    let step = connection.begin(merge);
    for (; "bodies" in step; step = connection.next()) writer.addMerged(merge.part, step.bodies);
    writer.endMerge(merge, step.merged, step.filter);
    while (writer.dropReplaced());
  }
  while (writer.sweepPostings());
}
