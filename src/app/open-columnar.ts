/**
 * Opens the columnar store that the settings name.
 * @module
 */
import { openClickhouseStore } from "../columnar/clickhouse-store.ts";
import type { ColumnStore } from "../columnar/column-store.ts";
import type { AppContext } from "./base.ts";
import { badSettings } from "./complaints.ts";

/**
 * Opens the store; `closers` close it. A server that is unavailable is no error: calls report it.
 *
 * @returns Undefined without a store.
 * @throws Misuse when a setting of the store is missing.
 */
export function openColumnStore({ config, closers }: Pick<AppContext, "config" | "closers">): ColumnStore | undefined {
  if (config.COLUMNAR_STORE === "none") return undefined;
  if (config.CLICKHOUSE_URL === undefined) throw badSettings(["COLUMNAR_STORE=clickhouse requires CLICKHOUSE_URL"]);
  const store = openClickhouseStore({
    url: config.CLICKHOUSE_URL,
    user: config.CLICKHOUSE_USER,
    password: config.CLICKHOUSE_PASSWORD,
    database: config.CLICKHOUSE_DATABASE,
    cluster: config.CLICKHOUSE_CLUSTER,
  });
  closers.add("columnar store", store.close);
  return store;
}
