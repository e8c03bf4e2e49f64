/**
 * Parquet files as another program reads them (hyparquet, which shares no code with the writer).
 * @module
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parquetMetadata, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import type { ExportTable } from "../../src/columnar/export-tables.ts";

/** A row by the names of its columns. */
export type ParquetRow = Readonly<Record<string, unknown>>;

/** The rows of one file. */
export async function readParquet(path: string): Promise<ParquetRow[]> {
  return (await parquetReadObjects({ file: arrayBufferOf(path), compressors, utf8: false })) as ParquetRow[];
}

/** Key-value metadata, and rows of each row group. */
export function readParquetMetadata(path: string) {
  const { key_value_metadata: entries = [], row_groups: groups } = parquetMetadata(arrayBufferOf(path));
  const metadata = new Map(entries.map(({ key, value }) => [key, value]));
  return { metadata, groupRows: groups.map(({ num_rows: rows }) => Number(rows)) };
}

/** The names of a table's files in an export, in order of their partitions. */
export function parquetFiles(folder: string, table: ExportTable): string[] {
  return readdirSync(join(folder, table, "data"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".parquet"))
    .map((name) => join(folder, table, "data", name))
    .sort();
}

/** All rows of a table of an export. */
export async function readTable(folder: string, table: ExportTable): Promise<ParquetRow[]> {
  return (await Promise.all(parquetFiles(folder, table).map(readParquet))).flat();
}

function arrayBufferOf(path: string): ArrayBuffer {
  const bytes = readFileSync(path);
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer;
}
