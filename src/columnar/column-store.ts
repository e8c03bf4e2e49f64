/**
 * The interface of columnar stores, which hold exported partitions and run SQL over their tables.
 *
 * The index decides which heights are read from a store (it records each loaded partition), so a store may have rows
 * that no query sees yet.
 * Source: docs/reference/columnar.md#stores.
 * @module
 */
import type { ExportTable } from "./export-tables.ts";
import type { LoadedPartition, PartitionHeights } from "./partition.ts";

/** A columnar store. Calls reject with a `Failure` or an Error that names the store, within a bounded time. */
export type ColumnStore = Readonly<{
  kind: "duckdb" | "clickhouse";
  /**
   * Loads the files of a partition, and checks that the store has as many rows as the files. Loading it again replaces
   * its rows: nothing is doubled.
   */
  load: (partition: LoadedPartition, signal: AbortSignal) => Promise<void>;
  /**
   * The text after FROM that has at least the rows of these heights; no other condition is applied. Selecting from it
   * rejects when the store finds that it has lost the files of a height.
   */
  from: (table: ExportTable, ranges: readonly PartitionHeights[]) => string;
  /**
   * Runs one SELECT of the SQL that DuckDB and ClickHouse share. Columns arrive as text, in the order of the rows;
   * bytes are selected with `hex(...)`.
   */
  select: (sql: string, signal: AbortSignal) => Promise<readonly (readonly (string | null)[])[]>;
  close: () => Promise<void>;
}>;
