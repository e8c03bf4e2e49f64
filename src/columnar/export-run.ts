/**
 * An export of a range of heights: partition after partition, so that one that ends early is continued where it ended.
 * @module
 */
import type { ExportedFile, PartitionRequest } from "./partition.ts";

/** What is exported, and where to. */
export type ExportRun = Omit<PartitionRequest, "start" | "end"> &
  Readonly<{
    /** Heights, both inclusive. */
    startHeight: number;
    endHeight: number;
    /** Heights of one partition. */
    heightPartitionSize: number;
  }>;

/** The calls of a thread that writes partitions. */
export type PartitionWriter = Readonly<{
  stableHeight: () => Promise<number>;
  /** @returns Undefined when the run has written the partition before. */
  write: (request: PartitionRequest) => Promise<readonly ExportedFile[] | undefined>;
}>;

/** What an export has done so far. */
export type ExportProgress = Readonly<{ heights: number; heightsDone: number; files: number; rows: number }>;

/** The result of an export. Blocks above `endHeight` may still be rolled back and were left out. */
export type ExportResult = ExportProgress & Readonly<{ endHeight: number }>;

/**
 * Exports a range of heights, as far as its blocks can no longer be rolled back.
 *
 * @param onProgress - Called after each partition.
 * @throws Error when no height of the range is final yet, or a file cannot be written; the signal's reason.
 */
export async function runExport(
  run: ExportRun,
  writer: PartitionWriter,
  signal: AbortSignal,
  onProgress: (progress: ExportProgress) => void = () => undefined,
): Promise<ExportResult> {
  const { startHeight, heightPartitionSize, endHeight: wantedEnd, ...files } = run;
  const stable = await writer.stableHeight();
  const endHeight = Math.min(wantedEnd, stable);
  if (endHeight < startHeight) {
    throw new Error(`no height from ${startHeight} is final yet: the highest final height is ${stable}`);
  }
  let progress: ExportProgress = { heights: endHeight - startHeight + 1, heightsDone: 0, files: 0, rows: 0 };
  for (let start = startHeight; start <= endHeight; start += heightPartitionSize) {
    signal.throwIfAborted();
    const end = Math.min(start + heightPartitionSize - 1, endHeight);
    const written = (await writer.write({ ...files, start, end })) ?? [];
    progress = {
      ...progress,
      heightsDone: end - startHeight + 1,
      files: progress.files + written.length,
      rows: progress.rows + written.reduce((sum, { rows }) => sum + rows, 0),
    };
    onProgress(progress);
  }
  return { ...progress, endHeight };
}
