/**
 * The ClickHouse store with a current engine: every exported row once, whatever happened before.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openClickhouseStore } from "../../src/columnar/clickhouse-store.ts";
import type { ColumnStore } from "../../src/columnar/column-store.ts";
import { exportTables } from "../../src/columnar/export-tables.ts";
import type { LoadedPartition, PartitionHeights } from "../../src/columnar/partition.ts";
import { type ExportedChain, exportedChain, rowsOfFiles, rowsOfStore } from "../columnar/exported-chain.ts";
import { temporaryFolder } from "../store/folder.ts";
import { type ClickhouseServer, openClickhouseServer } from "../support/clickhouse-server.ts";
import { clickhouseEngine, describeWith } from "../support/helpers.ts";
import { newSeed } from "../support/seed.ts";

const seed = newSeed();
const steps = Number(process.env["STEPS"] ?? 150);
const { signal } = new AbortController();

let server: ClickhouseServer;
let chain: ExportedChain;
/** Tests use databases of their own on one server. */
let databases = 0;

const openStore = (): ColumnStore => {
  databases += 1;
  return openClickhouseStore({ url: server.url, password: "secret", database: `test_${databases}` });
};

/** Checks that the store has exactly the rows of these partitions. */
async function expectRows(store: ColumnStore, partitions: readonly LoadedPartition[]): Promise<void> {
  for (const table of exportTables) {
    const expected = (await Promise.all(partitions.map((each) => rowsOfFiles(each, table)))).flat().toSorted();
    const found = await rowsOfStore(store, table, { start: 0, end: 10 ** 6 });
    expect({ seed, table, rows: found }).toEqual({ seed, table, rows: expected });
  }
}

describeWith(clickhouseEngine, `the ClickHouse store (seed ${seed})`, () => {
  beforeAll(async () => {
    server = await openClickhouseServer({ password: "secret" });
    chain = exportedChain(seed, steps);
  });
  afterAll(async () => {
    await server.close();
    chain[Symbol.dispose]();
  });

  /** Exports neighbouring partitions of some heights each. */
  const exportAll = async (folder: string, size: number): Promise<LoadedPartition[]> => {
    const partitions: LoadedPartition[] = [];
    for (let start = 100; start <= chain.end; start += size)
      partitions.push(await chain.exportTo(folder, { start, end: Math.min(start + size - 1, chain.end) }, 50));
    return partitions;
  };

  test("has every row of every column, and of some heights only theirs", async () => {
    using folder = temporaryFolder();
    const store = openStore();
    const partitions = await exportAll(folder.path, 10);
    for (const partition of partitions) await store.load(partition, signal);
    await expectRows(store, partitions);
    expect((await rowsOfStore(store, "transactions", { start: 0, end: 10 ** 6 })).length).toBeGreaterThan(50);
    const [first, second] = partitions as [LoadedPartition, LoadedPartition];
    const ranges: PartitionHeights = { start: first.start, end: second.end };
    for (const table of exportTables) {
      const expected = [...(await rowsOfFiles(first, table)), ...(await rowsOfFiles(second, table))].toSorted();
      expect(await rowsOfStore(store, table, ranges)).toEqual(expected);
    }
    await store.close();
  });

  test("has a partition once that was loaded again", async () => {
    using folder = temporaryFolder();
    const store = openStore();
    const partition = await chain.exportTo(folder.path, { start: 100, end: chain.end }, 50);
    for (let load = 0; load < 3; load += 1) await store.load(partition, signal);
    await expectRows(store, [partition]);
    await store.close();
  });
});
