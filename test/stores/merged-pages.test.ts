/**
 * Pages over the index and ClickHouse: exactly the rows of the chain, in both orders, with any filters.
 * @module
 */
import { afterAll, beforeAll, test } from "bun:test";
import { openClickhouseStore } from "../../src/columnar/clickhouse-store.ts";
import { walkMerged } from "../columnar/merged-walks.ts";
import { type ClickhouseServer, openClickhouseServer } from "../support/clickhouse-server.ts";
import { clickhouseEngine, describeWith } from "../support/helpers.ts";
import { seedsOr } from "../support/seed.ts";

const seeds = seedsOr([1, 2]);
const walks = Number(process.env["WALKS"] ?? 12);

let server: ClickhouseServer;

describeWith(clickhouseEngine, "pages over the index and ClickHouse", () => {
  beforeAll(async () => {
    server = await openClickhouseServer();
  });
  afterAll(() => server.close());

  test.each(seeds)("with seed %d equal a full scan at that moment, and no row repeats", async (seed) => {
    await walkMerged(seed, walks, async () => openClickhouseStore({ url: server.url, database: `walks_${seed}` }));
  });
});
