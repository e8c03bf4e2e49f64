/**
 * An export of this program, written again with ar-io-node's columns, types and order of rows, by DuckDB.
 * @module
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { loadDuckdb } from "../../src/columnar/duckdb-library.ts";
import { exportColumns } from "../../src/columnar/export-tables.ts";
import { readPartition, writtenPartitions } from "../../src/columnar/partition.ts";

/** Tables of ar-io-node, and the order of their rows. */
const tableOrders = { blocks: "height", transactions: "height, id", tags: "height, id, tag_index" } as const;

export type ArIoNodeTable = keyof typeof tableOrders;

/** Edits the statement of a table's rows. */
export type ChangeRows = (select: string, table: ArIoNodeTable) => string;

/** @param folder - Of an export of this program. @param target - Created. */
export async function writeArIoNodeExport(
  folder: string,
  target: string,
  change: ChangeRows = (select) => select,
): Promise<void> {
  const statements = writtenPartitions(folder).flatMap((heights) => {
    const { files } = readPartition(folder, heights);
    return Object.entries(tableOrders).flatMap(([name, order]) => {
      const table = name as ArIoNodeTable;
      const directory = join(target, table, "data", `height=${heights.start}-${heights.end}`);
      mkdirSync(directory, { recursive: true });
      const paths = files.filter((file) => file.table === table).map(({ path }) => `'${join(folder, path)}'`);
      // A table without rows has a directory and no file.
      if (paths.length === 0) return [];
      const from = `read_parquet([${paths.join(", ")}], hive_partitioning = false)`;
      const rows = change(`SELECT ${columnsOf(table)} FROM ${from}`, table);
      const file = join(directory, `${table}_${heights.start}_${heights.end}_20260101T000000_1.parquet`);
      return [`COPY (SELECT * FROM (${rows}) ORDER BY ${order}) TO '${file}' (FORMAT parquet, COMPRESSION zstd)`];
    });
  });
  const { DuckDBInstance } = await loadDuckdb(folder);
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  for (const sql of statements) await connection.run(sql);
  connection.closeSync();
  instance.closeSync();
}

function columnsOf(table: ArIoNodeTable): string {
  return exportColumns[table]
    .filter(({ name }) => name !== "place")
    .map(({ name }) =>
      name === "root_parent_offset" ? "root_parent_offset::UINTEGER AS root_parent_offset" : `"${name}"`,
    )
    .join(", ");
}
