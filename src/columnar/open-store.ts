/**
 * Opening the configured columnar store, in any thread.
 * @module
 */

import { type ClickhouseOptions, openClickhouseStore } from "./clickhouse-store.ts";
import type { ColumnStore } from "./column-store.ts";

/** A store as plain values, which cross threads. */
export type ColumnStoreOptions = Readonly<{ kind: "clickhouse" }> & ClickhouseOptions;

/** Opens a store. ClickHouse is first connected to by the first call. */
export async function openColumnStore(options: ColumnStoreOptions): Promise<ColumnStore> {
  return openClickhouseStore(options);
}
