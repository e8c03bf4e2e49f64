/**
 * An export of a range of heights: partition after partition, so that an export that ended early is continued.
 * @module
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../lib/clock.ts";
import { isJsonObject, readJson } from "../lib/json.ts";
import { replaceFile } from "../store/durable-file.ts";
import { lockFile } from "../store/sqlite.ts";
import { type ExportedFile, type PartitionHeights, type PartitionRequest, writtenPartitions } from "./partition.ts";

export type ExportRun = Omit<PartitionRequest, "start" | "end" | "runId"> &
  Readonly<{
    /** Heights, both inclusive. */
    startHeight: number;
    endHeight: number;
    /** Heights of one partition. */
    heightPartitionSize: number;
  }>;

/** The calls of a thread that writes partitions. */
export type PartitionWriter = Readonly<{
  /** The lowest height that is followed; 0 without one. */
  firstHeight: () => Promise<number>;
  /** The highest height whose block can no longer be rolled back; −1 without one. */
  stableHeight: () => Promise<number>;
  /** @returns Undefined when the run has written the partition before. */
  write: (request: PartitionRequest) => Promise<readonly ExportedFile[] | undefined>;
}>;

/** The state of an export. Files and rows of partitions that an earlier attempt wrote are not counted. */
export type ExportProgress = Readonly<{ heights: number; heightsDone: number; files: number; rows: number }>;

/**
 * The result of an export. Blocks below `startHeight` are not in the index; those above `endHeight` may still be rolled
 * back, and were left out.
 */
export type ExportResult = ExportProgress & Readonly<{ startHeight: number; endHeight: number }>;

export type ExportRunParts = Readonly<{
  writer: PartitionWriter;
  clock: Clock;
  signal: AbortSignal;
  /** Partitions that are written at the same time; by default 1. */
  partitionsAtOnce?: number;
  /** Called after each partition. */
  onProgress?: (progress: ExportProgress) => void;
}>;

/**
 * Exports a range of heights, from the first block of the index to the last one that can no longer be rolled back.
 *
 * The request is recorded in the folder until the export is complete. The same request continues it.
 *
 * @throws Error when another export writes to the folder, the folder has files of overlapping heights, no block of the
 *   range is final yet, or a file cannot be written; the signal's reason.
 */
export async function runExport(given: ExportRun, parts: ExportRunParts): Promise<ExportResult> {
  const startHeight = Math.max(given.startHeight, await parts.writer.firstHeight());
  const run = { ...given, startHeight };
  const { folder } = run;
  const stable = await parts.writer.stableHeight();
  const endHeight = Math.min(run.endHeight, stable);
  if (endHeight < startHeight) {
    throw new Error(`no height from ${startHeight} is final yet: the highest final height is ${stable}`);
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // Hidden files are not published with a snapshot.
  const unlock = lockFile(join(folder, ".run.lock"));
  if (unlock === undefined) {
    throw new Error(`another export writes to ${folder}: wait until it ends, or export to another folder`);
  }
  try {
    return await exportHeights(run, endHeight, parts);
  } finally {
    unlock();
  }
}

/** Exports to a locked folder, up to a height that is final. */
async function exportHeights(run: ExportRun, endHeight: number, parts: ExportRunParts): Promise<ExportResult> {
  const { writer, clock, signal, partitionsAtOnce = 1, onProgress } = parts;
  const { startHeight, heightPartitionSize, endHeight: _requestedEnd, ...files } = run;
  checkOverlap(run, endHeight);
  const runId = beginRun(run, clock);
  let progress: ExportProgress = { heights: endHeight - startHeight + 1, heightsDone: 0, files: 0, rows: 0 };
  const partitions = partitionsOf(startHeight, endHeight, heightPartitionSize);
  /** Takes partitions until none is left. An error ends the iterator, so that no other partition is begun. */
  const writePartitions = async (): Promise<void> => {
    for (const { start, end } of partitions) {
      signal.throwIfAborted();
      const written = (await writer.write({ ...files, runId, start, end })) ?? [];
      progress = {
        ...progress,
        heightsDone: progress.heightsDone + end - start + 1,
        files: progress.files + written.length,
        rows: progress.rows + written.reduce((sum, { rows }) => sum + rows, 0),
      };
      onProgress?.(progress);
    }
  };
  const results = await Promise.allSettled(Array.from({ length: partitionsAtOnce }, writePartitions));
  for (const result of results) if (result.status === "rejected") throw result.reason;
  rmSync(runPath(run.folder));
  return { ...progress, startHeight, endHeight };
}

function* partitionsOf(startHeight: number, endHeight: number, size: number): Generator<PartitionHeights> {
  for (let start = startHeight; start <= endHeight; start += size) {
    yield { start, end: Math.min(start + size - 1, endHeight) };
  }
}

/** A partition of the folder that is partly within the new ones would leave rows in two files. */
function checkOverlap({ folder, startHeight, heightPartitionSize }: ExportRun, endHeight: number): void {
  const partitionOf = (height: number) => Math.floor((height - startHeight) / heightPartitionSize);
  const overlapping = writtenPartitions(folder).find(({ start, end }) => {
    if (end < startHeight || start > endHeight) return false;
    return start < startHeight || end > endHeight || partitionOf(start) !== partitionOf(end);
  });
  if (overlapping === undefined) return;
  const { start, end } = overlapping;
  throw new Error(`the folder has files of heights ${start} to ${end}, which overlap: export to another folder`);
}

/** Records the request; returns the name of the run, which is that of an incomplete run with the same request. */
function beginRun(run: ExportRun, clock: Clock): string {
  const path = runPath(run.folder);
  const { folder: _folder, ...request } = run;
  const before = existsSync(path) ? readJson(readFileSync(path, "utf8")) : undefined;
  if (isJsonObject(before) && typeof before["runId"] === "string" && isDeepStrictEqual(before["request"], request)) {
    return before["runId"];
  }
  const runId = new Date(clock()).toISOString().replaceAll(/[-:.]/g, "");
  replaceFile(path, `${JSON.stringify({ runId, request })}\n`);
  return runId;
}

function runPath(folder: string): string {
  return join(folder, "run.json");
}
