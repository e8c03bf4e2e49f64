/**
 * A random chain as exported partitions, and the rows that a store must have of them.
 * @module
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ColumnStore } from "../../src/columnar/column-store.ts";
import { type ExportTable, exportColumns } from "../../src/columnar/export-tables.ts";
import {
  type ExportedFile,
  exportPartition,
  type LoadedPartition,
  type PartitionHeights,
} from "../../src/columnar/partition.ts";
import { openExportRows } from "../../src/store/index/export-rows.ts";
import { indexFile } from "../store/index/index-file.ts";
import { createFixture } from "../store/index/index-fixture.ts";
import { isPendingPlace } from "../store/index/rows-of.ts";
import { createRandom } from "../support/random.ts";
import { readParquet } from "./read-parquet.ts";

/** A chain whose heights from 100 to `end` are final. */
export type ExportedChain = Disposable &
  Readonly<{
    end: number;
    /** Exports heights to a folder, and returns the partition. */
    exportTo: (folder: string, heights: PartitionHeights, maxFileRows?: number) => Promise<LoadedPartition>;
  }>;

/** The lowest height at which a random chain may end, so that it has five partitions of ten heights. */
export const chainEndMin = 149;

/** @param steps - Random changes of the chain: blocks, items, reorganizations; a few more until an item is left. */
export function exportedChain(seed: number, steps: number): ExportedChain {
  const file = indexFile();
  const fixture = createFixture(createRandom(seed), (clock) => {
    Object.defineProperty(file, "nowMs", { get: clock });
    return file;
  });
  const hasItem = () => fixture.rows().some(({ kind, place }) => kind === "item" && !isPendingPlace(place));
  for (let step = 0; step < steps || !hasItem(); step += 1) fixture.step();
  const index = openExportRows(file.path);
  for (let block = 0; block < 20 || index.stableHeight() < chainEndMin; block += 1) fixture.addBlock(3);
  return {
    end: index.stableHeight(),
    exportTo: async (folder, { start, end }, maxFileRows = 0) => {
      const request = { folder, start, end, maxFileRows, skipL1Transactions: false, skipL1Tags: false };
      await exportPartition({ ...request, runId: crypto.randomUUID() }, index);
      return { folder, start, end, files: filesOf(folder, { start, end }) };
    },
    [Symbol.dispose]: () => {
      index.close();
      file[Symbol.dispose]();
    },
  };
}

function filesOf(folder: string, { start, end }: PartitionHeights): readonly ExportedFile[] {
  return JSON.parse(readFileSync(join(folder, "partitions", `height=${start}-${end}.json`), "utf8")).files;
}

/** The rows of a partition's files as text, sorted; bytes as upper-case hexadecimal. */
export async function rowsOfFiles(partition: LoadedPartition, table: ExportTable): Promise<string[]> {
  const paths = partition.files.filter((file) => file.table === table).map(({ path }) => join(partition.folder, path));
  const rows = (await Promise.all(paths.map(readParquet))).flat();
  return rows.map((row) => exportColumns[table].map(({ name }) => textOf(row[name])).join()).toSorted();
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return "null";
  return value instanceof Uint8Array ? Buffer.from(value).toString("hex").toUpperCase() : String(value);
}

/** The same of a store's rows in some heights. */
export async function rowsOfStore(
  store: ColumnStore,
  table: ExportTable,
  heights: PartitionHeights,
): Promise<string[]> {
  const columns = exportColumns[table].map(({ name, type }) => (type === "bytes" ? `hex("${name}")` : `"${name}"`));
  const sql = `SELECT ${columns.join(", ")} FROM ${store.from(table, [heights])} AS found`;
  const rows = await store.select(sql, new AbortController().signal);
  return rows.map((row) => row.map((value) => value ?? "null").join()).toSorted();
}
