/**
 * Opens the configured columnar store, in any thread.
 * @module
 */
import { type ClickhouseOptions, openClickhouseStore } from "./clickhouse-store.ts";
import type { ColumnStore } from "./column-store.ts";
import { type DuckdbStoreOptions, openDuckdbStore } from "./duckdb-store.ts";

/** A store as plain values, which cross threads. */
export type ColumnStoreOptions =
  | (Readonly<{ kind: "duckdb" }> & DuckdbStoreOptions)
  | (Readonly<{ kind: "clickhouse" }> & ClickhouseOptions);

/** Opens a store. The first call connects to ClickHouse. Rejects when the library of DuckDB cannot be loaded. */
export async function openColumnStore(options: ColumnStoreOptions): Promise<ColumnStore> {
  return options.kind === "duckdb" ? await openDuckdbStore(options) : openClickhouseStore(options);
}
