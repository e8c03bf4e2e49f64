/**
 * A long history in DuckDB, by the program and the commands of README.
 * @module
 */
import { test } from "bun:test";
import { checkStoredHistory, checkTimeoutMs } from "../columnar/history/stored-history.ts";
import { newSeed } from "../support/seed.ts";

const items = Number(process.env["ITEMS"] ?? 20_000);

test(
  `${items} items are listed row by row as before they were exported to DuckDB and pruned`,
  async () => {
    await checkStoredHistory({ items, seed: newSeed(), store: { COLUMNAR_STORE: "duckdb" } });
  },
  checkTimeoutMs(items),
);
