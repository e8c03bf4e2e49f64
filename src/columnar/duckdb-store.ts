/**
 * The DuckDB store: SQL over the Parquet files of a folder, in place.
 *
 * Files are listed when a statement runs. When one of them was replaced meanwhile, the statement runs once more.
 * Source: docs/reference/columnar.md#duckdb.
 * @module
 */
import { existsSync, realpathSync } from "node:fs";
import { join, resolve, sep } from "node:path";
import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import { failureOf, fault } from "../lib/http-client.ts";
import type { ColumnStore } from "./column-store.ts";
import { type Duckdb, openDuckdb, type QueryLimits } from "./duckdb-engine.ts";
import { openFolderPartitions, relationOf } from "./duckdb-files.ts";
import { type ExportTable, exportTables } from "./export-tables.ts";
import { compareFile, type ExportedFile, type LoadedPartition, type PartitionHeights } from "./partition.ts";

export type DuckdbStoreOptions = Readonly<{
  /** The folder of exports, which exists. */
  folder: string;
  /** Where a binary writes the library that it embeds. */
  libraryFolder: string;
  memoryBytesMax?: number;
  threads?: number;
  /** Maximum time of a query. Milliseconds. */
  queryMs?: number;
}>;

const memoryBytesDefault = 2 ** 30;
const threadsDefault = 2;
const queryMsDefault = 60_000;

/** Counting reads the metadata of files. */
const loadMs = 60_000;

/** A page has some hundred rows. */
const rowsMax = 1_000_000;

/** Messages of DuckDB about a file that is absent. */
const missingFile = /No files found that match|No such file or directory|Cannot open file/;

/** Opens the store; loads the library of DuckDB. @throws Failure when it does not load. */
export async function openDuckdbStore(options: DuckdbStoreOptions): Promise<ColumnStore> {
  const { libraryFolder, memoryBytesMax = memoryBytesDefault, threads = threadsDefault } = options;
  const { queryMs = queryMsDefault } = options;
  const folder = realpathSync(options.folder);
  const engine = await openDuckdb({ folder, libraryFolder, memoryBytesMax, threads });
  const partitions = openFolderPartitions(folder);
  // Names a relation of this store: no text of a client contains it.
  const mark = crypto.randomUUID();
  const named = new RegExp(`"(${exportTables.join("|")})@([\\d,-]*)#${mark}"`, "g");

  /**
   * Replaces the relations that `from` has named by those over the files of now.
   *
   * @throws Failure when no file has some of the heights: their rows would be left out.
   */
  function withFiles(sql: string): string {
    const all = partitions.list();
    return sql.replaceAll(named, (_, table: ExportTable, heights: string) => {
      const ranges = heights === "" ? [] : heights.split(",").map(rangeOf);
      const read = all.filter(({ start, end }) => ranges.some((range) => end >= range.start && start <= range.end));
      const absent = ranges.map((range) => firstAbsent(range, read)).find((height) => height !== undefined);
      if (absent !== undefined)
        throw failureOf(fault("status", `DuckDB: No such file or directory for height ${absent} in ${folder}`));
      return relationOf(table, folder, read);
    });
  }

  return {
    kind: "duckdb",
    load: async (partition, signal) => {
      await checkFiles(folder, partition, signal);
      await checkCounts(engine, folder, partition.files, { signal, timeoutMs: loadMs });
    },
    from: (table, ranges) => `"${table}@${ranges.map(({ start, end }) => `${start}-${end}`).join()}#${mark}"`,
    select: async (sql, signal) => {
      const limits = { signal, timeoutMs: queryMs };
      try {
        return await readText(engine, withFiles(sql), limits);
      } catch (error) {
        if (!(error instanceof Failure) || !missingFile.test(String(error.context["detail"]))) throw error;
        partitions.forget();
        return readText(engine, withFiles(sql), limits);
      }
    },
    close: async () => engine.close(),
  };
}

function rangeOf(text: string): PartitionHeights {
  const [start = 0, end = 0] = text.split("-").map(Number);
  return { start, end };
}

/** The lowest height of a range that no partition has. @param partitions - By height. */
function firstAbsent({ start, end }: PartitionHeights, partitions: readonly PartitionHeights[]): number | undefined {
  let next = start;
  for (const partition of partitions) if (partition.start <= next) next = Math.max(next, partition.end + 1);
  return next > end ? undefined : next;
}

function readText(engine: Duckdb, sql: string, limits: QueryLimits): Promise<(string | null)[][]> {
  return engine.query(sql, limits, async ({ next }) => {
    const rows: (string | null)[][] = [];
    for (let read = await next(); read.length > 0; read = await next()) {
      for (const row of read) rows.push(row.map((value) => (value === null ? null : String(value))));
      assert(rows.length <= rowsMax, "a query has a bounded number of rows");
    }
    return rows;
  });
}

/** Checks that the files are below the folder, with the bytes of their record. @throws Error when they are not. */
async function checkFiles(folder: string, partition: LoadedPartition, signal: AbortSignal): Promise<void> {
  for (const exported of partition.files) {
    const { path } = exported;
    const file = resolve(partition.folder, path);
    if (!existsSync(file)) throw new Error(`DuckDB: ${path} does not exist below ${folder}`);
    if (realpathSync(file) !== join(folder, path) || !join(folder, path).startsWith(folder + sep))
      throw new Error(`DuckDB: ${file} is not a file of ${folder}, the folder of the store`);
    const difference = await compareFile(partition.folder, exported, signal);
    if (difference !== undefined) throw new Error(`DuckDB: ${difference}`);
  }
}

async function checkCounts(
  engine: Duckdb,
  folder: string,
  files: readonly ExportedFile[],
  limits: QueryLimits,
): Promise<void> {
  for (const { table, path, rows } of files) {
    const relation = relationOf(table, folder, [
      { start: 0, end: 0, files: files.filter((file) => file.path === path) },
    ]);
    const [[count] = []] = await readText(engine, `SELECT count(*) FROM ${relation}`, limits);
    if (count !== String(rows)) throw new Error(`DuckDB: ${path} has ${count} rows, its record states ${rows}`);
  }
}
