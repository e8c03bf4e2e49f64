/**
 * The ClickHouse store with a current engine: every exported row once, whatever happened before.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { openClickhouseStore } from "../../src/columnar/clickhouse-store.ts";
import { copyRows, createTables, deleteRows, insertFile } from "../../src/columnar/clickhouse-tables.ts";
import type { ColumnStore } from "../../src/columnar/column-store.ts";
import { exportTables } from "../../src/columnar/export-tables.ts";
import type { LoadedPartition, PartitionHeights } from "../../src/columnar/partition.ts";
import { explainError } from "../../src/failures.ts";
import { type ExportedChain, exportedChain, rowsOfFiles, rowsOfStore } from "../columnar/exported-chain.ts";
import { temporaryFolder } from "../store/folder.ts";
import { type ClickhouseServer, openClickhouseServer } from "../support/clickhouse-server.ts";
import { clickhouseEngine, describeWith } from "../support/helpers.ts";
import { createRandom } from "../support/random.ts";
import { newSeed } from "../support/seed.ts";

const seed = newSeed();
const steps = Number(process.env["STEPS"] ?? 150);
/** Random orders of loads. */
const runs = Number(process.env["RUNS"] ?? 1);
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

  test("has a partition once that was loaded again, and deletes what it replaced", async () => {
    using folder = temporaryFolder();
    const store = openStore();
    const partition = await chain.exportTo(folder.path, { start: 100, end: chain.end }, 50);
    for (let load = 0; load < 3; load += 1) await store.load(partition, signal);
    await expectRows(store, [partition]);
    await expectNoUnseenRows(store);
    await store.close();
  });

  /** Loads of heights in this order. The second chain has other rows of the same heights than the first. */
  type LoadOrder = readonly (readonly [chain: 0 | 1, start: number, end: number])[];

  /** Checks that each height has the rows of its newest load. */
  const expectNewest = async (loads: LoadOrder, chains: readonly ExportedChain[]): Promise<void> => {
    using folder = temporaryFolder();
    const store = openStore();
    /** The chain of the newest load, by height. */
    const newest = new Map<number, number>();
    const exportFrom = (number: number, into: string, start: number, end: number) => {
      const from = chains[number];
      if (from === undefined) throw new Error(`there is no chain ${number}`);
      return from.exportTo(join(folder.path, into, String(number)), { start, end });
    };
    for (const [index, [number, start, end]] of loads.entries()) {
      await store.load(await exportFrom(number, `load-${index}`, start, end), signal);
      for (let height = start; height <= end; height += 1) newest.set(height, number);
    }
    const heights: LoadedPartition[] = [];
    for (const [height, number] of newest) heights.push(await exportFrom(number, "newest", height, height));
    await expectRows(store, heights);
    await expectNoUnseenRows(store);
    await store.close();
  };

  for (const [name, loads] of [
    [
      "smaller partitions within a larger one",
      [
        [0, 100, 102],
        [0, 103, 105],
        [1, 100, 105],
      ],
    ],
    [
      "one within a larger one",
      [
        [0, 100, 106],
        [1, 102, 104],
      ],
    ],
    [
      "one height at either end",
      [
        [0, 100, 106],
        [1, 100, 100],
        [1, 106, 106],
      ],
    ],
    [
      "over the ends of two",
      [
        [0, 100, 102],
        [0, 103, 106],
        [1, 102, 104],
      ],
    ],
    [
      "neighbours, which have no height together",
      [
        [0, 100, 102],
        [1, 103, 106],
      ],
    ],
    [
      "one within a larger one, then one that begins before it",
      [
        [0, 100, 107],
        [1, 103, 104],
        [1, 102, 106],
      ],
    ],
    [
      "the first chain again",
      [
        [0, 100, 106],
        [1, 100, 103],
        [0, 101, 102],
      ],
    ],
  ] satisfies [string, LoadOrder][])
    test(`has the rows of the newest load of each height: ${name}`, async () => {
      // Chains of a fixed seed have final heights to 107 and above.
      using first = exportedChain(1, steps);
      using second = exportedChain(2, steps);
      await expectNewest(loads, [first, second]);
    });

  test("has the rows of the newest load of each height, whatever the partitions were before", async () => {
    for (let run = 0; run < runs; run += 1) {
      const random = createRandom(seed + run);
      using first = exportedChain(seed + run, steps);
      using second = exportedChain(seed + run + 1, steps);
      const end = Math.min(first.end, second.end);
      const loads: [0 | 1, number, number][] = [];
      for (let load = 0; load < 6; load += 1) {
        const start = 100 + random.below(end - 99);
        loads.push([random.chance(0.5) ? 1 : 0, start, start + random.below(Math.min(end - start + 1, 12))]);
      }
      console.log(`SEED=${seed + run}: heights to ${end}, loads ${JSON.stringify(loads)}`);
      await expectNewest(loads, [first, second]);
    }
  });

  test("gives readers all rows of one load or all rows of the next, while partitions are loaded", async () => {
    using folder = temporaryFolder();
    using other = exportedChain(seed + 1, steps);
    const store = openStore();
    const heights = { start: 100, end: Math.min(chain.end, other.end) };
    const loads = [await chain.exportTo(folder.path, heights)];
    using otherFolder = temporaryFolder();
    loads.push(await other.exportTo(otherFolder.path, heights));
    const idsOf = async (partition: LoadedPartition) => JSON.stringify(await rowsOfFiles(partition, "transactions"));
    const versions = await Promise.all(loads.map(idsOf));
    await store.load(loads[0] as LoadedPartition, signal);
    let isLoading = true;
    const seen = new Set<number>();
    const reading = (async () => {
      while (isLoading) seen.add(versions.indexOf(JSON.stringify(await rowsOfStore(store, "transactions", heights))));
    })();
    for (let load = 1; load < 6; load += 1) await store.load(loads[load % 2] as LoadedPartition, signal);
    isLoading = false;
    await reading;
    expect({ seed, seen: [...seen].toSorted() }).toEqual({ seed, seen: [0, 1] });
    await store.close();
  });

  test("finds the rows of a place by the primary key", async () => {
    using folder = temporaryFolder();
    const store = openStore();
    await store.load(await chain.exportTo(folder.path, { start: 100, end: chain.end }), signal);
    for (const [table, condition, key] of [
      ["transactions", "place IN (1, 2)", "place"],
      ["tags", "place IN (1, 2)", "place"],
      ["postings", "key = 1", "key"],
      ["blocks", "height = 5", "height"],
    ] as const) {
      const from = store.from(table, [{ start: 100, end: chain.end }]);
      const plan = await store.select(`EXPLAIN indexes = 1 SELECT * FROM ${from} AS t WHERE ${condition}`, signal);
      const text = plan.flat().join("\n");
      expect(text).toMatch(new RegExp(`PrimaryKey\\s+Keys:\\s+${key}\\b`));
      expect(text).not.toContain("Condition: true");
    }
    await store.close();
  });

  test("rejects another password, and statements that change something", async () => {
    const failureOf = async (store: ColumnStore, sql: string) => {
      const text = await store.select(sql, signal).then(() => "no failure", explainError);
      await store.close();
      return text;
    };
    const other = openClickhouseStore({ url: server.url, password: "another" });
    expect(await failureOf(other, "SELECT 1")).toContain(`ClickHouse at ${server.url}: status 403: Code: 516`);
    const open = () => openClickhouseStore({ url: server.url, password: "secret", database: "default" });
    expect(await failureOf(open(), "CREATE TABLE x (a UInt8) ENGINE = Memory")).toContain("READONLY");
    expect(await failureOf(open(), "SELECT * FROM absent")).toContain("status 404: Code: 60");
    const slow = openClickhouseStore({ url: server.url, password: "secret", database: "default", queryMs: 1_000 });
    const text = await failureOf(slow, "SELECT count() FROM numbers(100000000000) WHERE sipHash64(number) = 1");
    expect(text).toMatch(/^Sources did not respond in time .*ClickHouse at /);
  });

  test("creates tables for a cluster with statements that the engine parses", async () => {
    const store = openClickhouseStore({ url: server.url, password: "secret", database: "default" });
    const place = { database: "cairn", cluster: "main" };
    const heights = { start: 1, end: 2 };
    const statements = [
      ...createTables(place),
      ...exportTables.map((table) => deleteRows(table, place, 1, heights)),
      ...exportTables.map((table) => copyRows(table, place, { from: 1, to: 2, heights })),
      ...exportTables.map((table) => insertFile(table, place, 1).replace(" FORMAT Parquet", "")),
    ];
    for (const sql of statements) {
      const tree = await store.select(`EXPLAIN AST ${sql}`, signal);
      expect(tree.flat().join("\n")).toMatch(/^(CreateQuery|CreateDatabaseQuery|InsertQuery|DeleteQuery)/);
    }
    expect(createTables(place).every((sql) => sql.includes(" ON CLUSTER `main`"))).toBe(true);
    await store.close();
  });
});

/** The tables have no row but those of visible loads. */
async function expectNoUnseenRows(store: ColumnStore): Promise<void> {
  for (const table of exportTables) {
    const sql = `SELECT (SELECT count() FROM ${table}_rows), (SELECT count() FROM ${table})`;
    const [[all, visible] = []] = await store.select(sql, signal);
    expect({ seed, table, all }).toEqual({ seed, table, all: visible ?? "" });
  }
}
