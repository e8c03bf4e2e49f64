/**
 * N2: loads into ClickHouse that are killed at any moment, in the gateway or in the server: no row is lost or doubled.
 * @module
 */
import { expect } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openClickhouseStore } from "../../src/columnar/clickhouse-store.ts";
import type { ColumnStore } from "../../src/columnar/column-store.ts";
import { type ExportTable, exportTables } from "../../src/columnar/export-tables.ts";
import type { LoadedPartition } from "../../src/columnar/partition.ts";
import { exportedChain, rowsOfFiles, rowsOfStore } from "../columnar/exported-chain.ts";
import { temporaryFolder } from "../store/folder.ts";
import { type ClickhouseServer, openClickhouseServer } from "../support/clickhouse-server.ts";
import { clickhouseEngine, testWith } from "../support/helpers.ts";
import { createRandom, type Random } from "../support/random.ts";
import { newSeed } from "../support/seed.ts";

const kills = Number(process.env["KILLS"] ?? 10);
const child = join(import.meta.dir, "load-child.ts");

/** The rows of each table of one partition. */
type Rows = Readonly<Record<ExportTable, readonly string[]>>;

testWith(
  clickhouseEngine,
  `N2: ${kills} kills of loads, and ${kills} of the server`,
  async () => {
    const seed = newSeed();
    const random = createRandom(seed);
    using chain = exportedChain(seed, 150);
    using folder = temporaryFolder();
    using data = temporaryFolder();
    const partitions: LoadedPartition[] = [];
    for (let start = 100; start <= chain.end; start += 4)
      partitions.push(await chain.exportTo(folder.path, { start, end: Math.min(start + 3, chain.end) }));
    const path = join(folder.path, "partitions.json");
    writeFileSync(path, JSON.stringify(partitions));
    const expected = await Promise.all(partitions.map(rowsOf));

    let server = await openClickhouseServer({ folder: data.path });
    for (let kill = 0; kill < 2 * kills; kill += 1) {
      // Every fourth database is loaded over again; the others are new.
      const database = `test_${kill - (kill % 4)}`;
      const loaded = await loadUntil(server, [server.url, database, path], random, kill < kills);
      if (kill >= kills) server = await openClickhouseServer({ folder: data.path });
      const store = openClickhouseStore({ url: server.url, database });
      for (const [number, partition] of partitions.entries()) {
        const isLoaded = loaded.has(number);
        const found = await rowsNow(store, partition);
        // A load that was not reported may be complete, but never in part.
        const rows = isLoaded || found.blocks.length > 0 ? expected[number] : noRows;
        expect({ seed, kill, number, found }).toEqual({ seed, kill, number, found: rows ?? noRows });
      }
      if (kill % 4 === 3) {
        for (const partition of partitions) await store.load(partition, new AbortController().signal);
        const now = await Promise.all(partitions.map((partition) => rowsNow(store, partition)));
        expect({ seed, kill, now }).toEqual({ seed, kill, now: expected });
      }
      await store.close();
    }
    await server.close();
  },
  60_000 + kills * 20_000,
);

const noRows: Rows = { blocks: [], transactions: [], tags: [], postings: [] };

async function rowsOf(partition: LoadedPartition): Promise<Rows> {
  const rows = exportTables.map(async (table) => [table, await rowsOfFiles(partition, table)] as const);
  return { ...noRows, ...Object.fromEntries(await Promise.all(rows)) };
}

/** Before the first load began there are no tables. */
async function rowsNow(store: ColumnStore, partition: LoadedPartition): Promise<Rows> {
  const [[count] = []] = await store
    .select("SELECT count() FROM system.tables WHERE database = currentDatabase()", new AbortController().signal)
    .catch(() => [["0"]]);
  if (Number(count) < 9) return noRows;
  const rows = exportTables.map(async (table) => [table, await rowsOfStore(store, table, partition)] as const);
  return { ...noRows, ...Object.fromEntries(await Promise.all(rows)) };
}

/** Loads until a random moment, kills the process of the gateway or of the server, and returns what was reported. */
async function loadUntil(
  server: ClickhouseServer,
  parameters: readonly string[],
  random: Random,
  isGateway: boolean,
): Promise<ReadonlySet<number>> {
  const loading = Bun.spawn([process.execPath, child, ...parameters], { stdout: "pipe", stderr: "ignore" });
  const killing = async (): Promise<void> => {
    await Bun.sleep(random.below(1_500)); // The moment of the kill is the test's input.
    if (isGateway) loading.kill("SIGKILL");
    else await server.kill();
  };
  const decoder = new TextDecoder();
  let text = "";
  let killed: Promise<void> | undefined;
  for await (const piece of loading.stdout) {
    text += decoder.decode(piece);
    killed ??= killing();
  }
  await killed;
  await loading.exited;
  const lines = text.split("\n").slice(1, -1);
  return new Set(lines.map(Number));
}
