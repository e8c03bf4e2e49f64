/**
 * Thread entry: writes partitions of Parquet exports over a read-only connection.
 * @module
 */
import { type ExportedFile, exportPartition as exportTo, type PartitionRequest } from "../src/columnar/partition.ts";
import { type ExportRows, openExportRows } from "../src/store/index/export-rows.ts";
import { giveWay } from "../src/threads/give-way.ts";
import { ping } from "../src/threads/ping.ts";

export { ping };

// An export takes minutes; the clients of all other requests wait for milliseconds.
giveWay();

/** A partition to write. */
export type ExportJob = Readonly<{ indexPath: string; request: PartitionRequest }>;

const indexes = new Map<string, ExportRows>();

/** Writes a partition. @returns Its files; undefined when the run had written it before. */
export async function exportPartition({ indexPath, request }: ExportJob): Promise<readonly ExportedFile[] | undefined> {
  return await exportTo(request, indexOf(indexPath));
}

/** The highest stable height; −1 when no block is stable. */
export function stableHeight({ indexPath }: Pick<ExportJob, "indexPath">): number {
  return indexOf(indexPath).stableHeight();
}

function indexOf(path: string): ExportRows {
  const known = indexes.get(path);
  if (known !== undefined) return known;
  const opened = openExportRows(path);
  indexes.set(path, opened);
  return opened;
}
