/**
 * The tables of the ClickHouse store: statements that create them, and expressions that read them.
 *
 * Rows are in `{table}_rows`, each with the number of the load that inserted it. A load is visible from the moment that
 * one row of `loads` says so, in all tables at once. The views `{table}` have the rows of visible loads.
 * Source: docs/reference/columnar.md#clickhouse.
 * @module
 */
import { packHeight } from "../store/index/place.ts";
import { type ExportTable, exportColumns, exportTables } from "./export-tables.ts";
import type { PartitionHeights } from "./partition.ts";
import type { Column, ColumnType } from "./record-batch.ts";

/** Where the tables are. */
export type ClickhousePlace = Readonly<{
  database: string;
  /** Name of the cluster; undefined for one node. */
  cluster: string | undefined;
}>;

/** States of a load in the table `loads`; the highest is in force. */
export const loadStates = { begun: 1, visible: 2, replaced: 3, removed: 4 } as const;

const columnTypes: Readonly<Record<ColumnType, string>> = {
  bytes: "String",
  text: "String",
  boolean: "Bool",
  uint8: "UInt8",
  uint16: "UInt16",
  uint32: "UInt32",
  uint64: "UInt64",
  int64: "Int64",
  decimal: "Decimal(20, 0)",
};

/** Columns with few values in a part, or of one size. */
const ownTypes: Readonly<Record<string, string>> = {
  id: "FixedString(32)",
  content_type: "LowCardinality(Nullable(String))",
  tag_name: "LowCardinality(String)",
};

/** Columns that are long or similar: the slower codec saves enough bytes. */
const packedColumns: ReadonlySet<string> = new Set(["tag_value", "owner", "owner_address", "target", "parent"]);

/** Heights of one partition of a table. The history has some twenty of them, so that queries read few parts. */
const heightsPerPartition = 100_000;

const placesPerPartition = packHeight(heightsPerPartition);

type Layout = Readonly<{
  partition: string;
  order: string;
  /** Rows between two marks of the primary key, and bytes of a block: what a lookup of one row reads. */
  granuleRows: number;
  blockBytesMin: number;
}>;

/** A page of GraphQL looks up a hundred rows in `transactions` and `tags`; postings are read in long runs. */
const layouts: Readonly<Record<ExportTable, Layout>> = {
  blocks: {
    partition: `intDiv(height, ${heightsPerPartition})`,
    order: "height",
    granuleRows: 8_192,
    blockBytesMin: 65_536,
  },
  transactions: {
    partition: `intDiv(place, ${placesPerPartition})`,
    order: "place",
    granuleRows: 256,
    blockBytesMin: 8_192,
  },
  tags: {
    partition: `intDiv(place, ${placesPerPartition})`,
    order: "place, tag_index",
    granuleRows: 512,
    blockBytesMin: 8_192,
  },
  postings: {
    partition: `intDiv(place, ${placesPerPartition})`,
    order: "key, place",
    granuleRows: 2_048,
    blockBytesMin: 16_384,
  },
};

/** Statements that create all tables that do not exist. */
export function createTables({ database, cluster }: ClickhousePlace): readonly string[] {
  const on = cluster === undefined ? "" : ` ON CLUSTER ${name(cluster)}`;
  const db = name(database);
  return [
    `CREATE DATABASE IF NOT EXISTS ${db}${on}`,
    `CREATE TABLE IF NOT EXISTS ${db}.loads${on} (
  load UInt64, start UInt32, \`end\` UInt32, state UInt8, changed_at DateTime DEFAULT now()
) ENGINE = ${loadsEngine(cluster)} ORDER BY (load, state)`,
    ...exportTables.flatMap((table) => [
      createRows(table, { database, cluster }, on),
      ...(cluster === undefined ? [] : [createDistributed(table, database, cluster, on)]),
      `CREATE VIEW IF NOT EXISTS ${db}.${table}${on} AS
SELECT ${columnNames(table)} FROM ${db}.${table}_rows
WHERE ${isVisible({ database, cluster })}`,
    ]),
  ];
}

/** Every node of a cluster has all loads: they are one shard. */
function loadsEngine(cluster: string | undefined): string {
  if (cluster === undefined) return "MergeTree";
  return "ReplicatedMergeTree('/clickhouse/tables/{database}/{table}', '{shard}-{replica}')";
}

function createRows(table: ExportTable, { database, cluster }: ClickhousePlace, on: string): string {
  const { partition, order, granuleRows, blockBytesMin } = layouts[table];
  const engine =
    cluster === undefined
      ? "MergeTree"
      : "ReplicatedMergeTree('/clickhouse/tables/{database}/{table}/{shard}', '{replica}')";
  const columns = exportColumns[table].map((column) => `  ${name(column.name)} ${typeOf(column)}${codecOf(column)}`);
  return `CREATE TABLE IF NOT EXISTS ${rowsTable(table, { database, cluster })}${on} (
${columns.join(",\n")},
  load UInt64
) ENGINE = ${engine}
PARTITION BY ${partition}
ORDER BY (${order})
SETTINGS index_granularity = ${granuleRows}, min_compress_block_size = ${blockBytesMin}`;
}

/** Rows of neighbouring heights are on one node, in runs that spread a page over the nodes. */
function createDistributed(table: ExportTable, database: string, cluster: string, on: string): string {
  const db = name(database);
  const height = table === "blocks" ? "height" : `intDiv(place, ${packHeight(1)})`;
  return `CREATE TABLE IF NOT EXISTS ${db}.${table}_rows${on} AS ${db}.${table}_local
ENGINE = Distributed(${name(cluster)}, ${name(database)}, ${table}_local, intDiv(${height}, 1000))`;
}

/** The table that has the rows of a node: where rows are deleted. */
export function rowsTable(table: ExportTable, { database, cluster }: ClickhousePlace): string {
  return `${name(database)}.${table}_${cluster === undefined ? "rows" : "local"}`;
}

function typeOf({ name: column, type, nullable }: Column): string {
  return ownTypes[column] ?? (nullable === true ? `Nullable(${columnTypes[type]})` : columnTypes[type]);
}

function codecOf({ name: column }: Column): string {
  if (column === "place" || column === "height" || column === "key") return " CODEC(Delta, LZ4)";
  return packedColumns.has(column) ? " CODEC(ZSTD(1))" : "";
}

function columnNames(table: ExportTable): string {
  return exportColumns[table].map((column) => name(column.name)).join(", ");
}

/** The condition of rows of visible loads. The node that runs the query reads `loads` for all nodes. */
function isVisible({ database, cluster }: ClickhousePlace): string {
  const visible = `SELECT load FROM ${name(database)}.loads GROUP BY load HAVING max(state) = ${loadStates.visible}`;
  return `load ${cluster === undefined ? "IN" : "GLOBAL IN"} (${visible})`;
}

/** The statement whose body is a Parquet file; its rows are of the load. */
export function insertFile(table: ExportTable, { database }: ClickhousePlace, load: number): string {
  const columns = columnNames(table);
  const structure = exportColumns[table].map((column) => `${name(column.name)} ${typeOf(column)}`).join(", ");
  return `INSERT INTO ${name(database)}.${table}_rows (${columns}, load)
SELECT ${columns}, ${load} FROM input('${structure}') FORMAT Parquet`;
}

/** Copies rows of a load within some heights to another load. */
export function copyRows(
  table: ExportTable,
  { database }: ClickhousePlace,
  { from, to, heights }: Readonly<{ from: number; to: number; heights: PartitionHeights }>,
): string {
  const columns = columnNames(table);
  const rows = `${name(database)}.${table}_rows`;
  return `INSERT INTO ${rows} (${columns}, load)
SELECT ${columns}, ${to} FROM ${rows} WHERE load = ${from} AND ${heightsCondition(table, [heights])}`;
}

/** Removes the rows of a load. */
export function deleteRows(
  table: ExportTable,
  place: ClickhousePlace,
  load: number,
  heights: PartitionHeights,
): string {
  const on = place.cluster === undefined ? "" : ` ON CLUSTER ${name(place.cluster)}`;
  return `DELETE FROM ${rowsTable(table, place)}${on} WHERE load = ${load} AND ${heightsCondition(table, [heights])}`;
}

/** Number of rows of a load in each table, in their order. */
export function countRows({ database }: ClickhousePlace, load: number, heights: PartitionHeights): string {
  const counts = exportTables.map((table) => {
    const condition = `load = ${load} AND ${heightsCondition(table, [heights])}`;
    return `(SELECT count() FROM ${name(database)}.${table}_rows WHERE ${condition})`;
  });
  return `SELECT ${counts.join(", ")}`;
}

/** The loads that have rows: number, heights and state. */
export function listLoads({ database }: ClickhousePlace): string {
  return `SELECT load, any(start), any(\`end\`), max(state) FROM ${name(database)}.loads
GROUP BY load HAVING max(state) < ${loadStates.removed} ORDER BY load`;
}

/** One insert, which is visible as a whole or not at all. */
export function recordLoads(
  { database }: ClickhousePlace,
  rows: readonly (PartitionHeights & Readonly<{ load: number; state: number }>)[],
): string {
  const values = rows.map(({ load, start, end, state }) => `(${load}, ${start}, ${end}, ${state})`);
  return `INSERT INTO ${name(database)}.loads (load, start, \`end\`, state) VALUES ${values.join(", ")}`;
}

/** The text after FROM that has the rows of the ranges. Analysis of the view would take 2 ms more (measured). */
export function fromRanges(table: ExportTable, place: ClickhousePlace, ranges: readonly PartitionHeights[]): string {
  const rows = `${name(place.database)}.${table}_rows`;
  return `(SELECT * FROM ${rows} WHERE ${heightsCondition(table, ranges)} AND ${isVisible(place)})`;
}

/** Conditions on the columns of partition and order. Adjacent ranges are one condition. */
function heightsCondition(table: ExportTable, ranges: readonly PartitionHeights[]): string {
  const merged: PartitionHeights[] = [];
  for (const { start, end } of ranges.toSorted((a, b) => a.start - b.start)) {
    const last = merged.at(-1);
    if (last !== undefined && start <= last.end + 1)
      merged[merged.length - 1] = { start: last.start, end: Math.max(last.end, end) };
    else merged.push({ start, end });
  }
  if (merged.length === 0) return "0";
  const conditions = merged.map(({ start, end }) =>
    table === "blocks"
      ? `height BETWEEN ${start} AND ${end}`
      : `place BETWEEN ${packHeight(start)} AND ${packHeight(end + 1) - 1n}`,
  );
  return conditions.length === 1 ? `${conditions[0]}` : `(${conditions.join(" OR ")})`;
}

/** An identifier. Settings have no backtick; columns such as `offset` are keywords. */
function name(identifier: string): string {
  return `\`${identifier}\``;
}
