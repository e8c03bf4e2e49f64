/**
 * Pages over the index and DuckDB: exactly the rows of the chain, in both orders, with any filters.
 * @module
 */
import { describe, test } from "bun:test";
import { openDuckdbStore } from "../../src/columnar/duckdb-store.ts";
import { seedsOr } from "../support/seed.ts";
import { walkMerged } from "./merged-walks.ts";

const seeds = seedsOr([1, 2, 3]);
const walks = Number(process.env["WALKS"] ?? 20);

describe("pages over the index and DuckDB", () => {
  test.each(seeds)("with seed %d equal a full scan at that moment, and no row repeats", async (seed) => {
    await walkMerged(seed, walks, (folder) => openDuckdbStore({ folder, libraryFolder: folder }));
  });
});
