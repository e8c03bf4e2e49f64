/**
 * A long history in ClickHouse, by the program and the commands of README.
 * @module
 */
import { openColumnStore } from "../../src/columnar/open-store.ts";
import { checkStoredHistory, checkTimeoutMs } from "../columnar/history/stored-history.ts";
import { openClickhouseServer } from "../support/clickhouse-server.ts";
import { clickhouseEngine, testWith } from "../support/helpers.ts";
import { newSeed } from "../support/seed.ts";

const items = Number(process.env["ITEMS"] ?? 4_000);

testWith(
  clickhouseEngine,
  `${items} items are listed row by row as before they were exported to ClickHouse and pruned`,
  async () => {
    const server = await openClickhouseServer();
    const store = { COLUMNAR_STORE: "clickhouse", CLICKHOUSE_URL: server.url };
    const options = { url: server.url, user: "default", password: "", database: "cairn", cluster: undefined } as const;
    const openStore = () => openColumnStore({ kind: "clickhouse", ...options });
    await checkStoredHistory({ items, seed: newSeed(), store, openStore });
    await server.close();
  },
  checkTimeoutMs(items),
);
