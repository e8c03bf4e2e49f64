/**
 * The files of an export as DuckDB reads them: which partitions a folder has, and the relation over some of them.
 * @module
 */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { literalPath, quoted } from "./duckdb-engine.ts";
import { type ExportTable, exportColumns } from "./export-tables.ts";
import { type ExportedFile, type PartitionHeights, readPartitionFiles } from "./partition.ts";
import type { ColumnType } from "./record-batch.ts";

/** A partition of a folder and its files. */
export type FolderPartition = PartitionHeights & Readonly<{ files: readonly ExportedFile[] }>;

/** The partitions of a folder. */
export type FolderPartitions = Readonly<{
  /** Partitions by height. Reads the records again when the folder has changed. */
  list: () => readonly FolderPartition[];
  /** Makes the next list read all records. */
  forget: () => void;
}>;

const duckdbTypes: Readonly<Record<ColumnType, string>> = {
  bytes: "BLOB",
  text: "VARCHAR",
  boolean: "BOOLEAN",
  uint8: "UTINYINT",
  uint16: "USMALLINT",
  uint32: "UINTEGER",
  uint64: "UBIGINT",
  int64: "BIGINT",
  decimal: "DECIMAL(20, 0)",
};

/** Opens the records of a folder, which may be absent. */
export function openFolderPartitions(folder: string): FolderPartitions {
  const records = join(folder, "partitions");
  const known = new Map<string, Readonly<{ stamp: string; partition: FolderPartition | undefined }>>();
  let folderStamp: string | undefined;
  let partitions: readonly FolderPartition[] = [];

  function read(): readonly FolderPartition[] {
    const names = readdirSync(records).filter((name) => name.endsWith(".json"));
    for (const name of known.keys()) if (!names.includes(name)) known.delete(name);
    for (const name of names) {
      const stamp = stampOf(join(records, name));
      if (stamp !== undefined && known.get(name)?.stamp === stamp) continue;
      known.set(name, { stamp: stamp ?? "", partition: readPartition(folder, name) });
    }
    return withoutReplaced([...known.values()].flatMap(({ partition }) => partition ?? []));
  }

  return {
    list: () => {
      const stamp = stampOf(records);
      if (stamp === undefined) return [];
      if (stamp !== folderStamp) {
        partitions = read();
        folderStamp = stamp;
      }
      return partitions;
    },
    forget: () => {
      known.clear();
      folderStamp = undefined;
    },
  };
}

function readPartition(folder: string, name: string): FolderPartition | undefined {
  const [, start, end] = /^height=(\d+)-(\d+)\.json$/.exec(name) ?? [];
  if (start === undefined || end === undefined) return undefined;
  const heights = { start: Number(start), end: Number(end) };
  const files = readPartitionFiles(folder, heights);
  return files === undefined ? undefined : { ...heights, files };
}

/** Without partitions within larger ones: the export of the larger one is about to remove them. */
function withoutReplaced(partitions: readonly FolderPartition[]): readonly FolderPartition[] {
  const sorted = partitions.toSorted((a, b) => a.start - b.start || b.end - a.end);
  let end = -1;
  return sorted.filter((partition) => {
    if (partition.end <= end) return false;
    end = partition.end;
    return true;
  });
}

/** Changes when the file or folder is replaced or changed; undefined when it is absent. */
function stampOf(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats && `${stats.ino} ${stats.mtimeNs} ${stats.size}`;
}

/** The text after FROM that reads the rows of a table in files. */
export function relationOf(table: ExportTable, folder: string, partitions: readonly FolderPartition[]): string {
  const paths = partitions.flatMap(({ files }) =>
    files.filter((file) => file.table === table).map(({ path }) => quoted(literalPath(join(folder, path)))),
  );
  // `height=…` in a path is not a column.
  if (paths.length > 0) return `read_parquet([${paths.join(", ")}], hive_partitioning = false)`;
  const columns = exportColumns[table].map(({ name, type }) => `CAST(NULL AS ${duckdbTypes[type]}) AS "${name}"`);
  return `(SELECT ${columns.join(", ")} WHERE false)`;
}
