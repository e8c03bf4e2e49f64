/**
 * Imports of an ar-io-node's exports: files that DuckDB wrote with its columns, types and order of rows.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import type { ColumnStore } from "../../src/columnar/column-store.ts";
import { openDuckdbStore } from "../../src/columnar/duckdb-store.ts";
import { type ImportProgress, importFolder } from "../../src/columnar/import-folder.ts";
import { createMergedPages } from "../../src/columnar/merged-pages.ts";
import { type PartitionHeights, readPartition } from "../../src/columnar/partition.ts";
import { allColumns, type PageRow } from "../../src/store/index/index-types.ts";
import { temporaryFolder } from "../store/folder.ts";
import { type IndexFile, indexFile } from "../store/index/index-file.ts";
import { newSeed } from "../support/seed.ts";
import { type ArIoNodeTable, writeArIoNodeExport } from "./ar-io-node-export.ts";
import { type ExportedChain, exportedChain, rowsOfFiles } from "./exported-chain.ts";

const seed = newSeed();
const { signal } = new AbortController();

let chain: ExportedChain;
let place: ReturnType<typeof temporaryFolder>;
let ranges: PartitionHeights[];
beforeAll(async () => {
  chain = exportedChain(seed, 150);
  place = temporaryFolder();
  ranges = [];
  for (let start = 100; start <= chain.end; start += 12) ranges.push({ start, end: Math.min(start + 11, chain.end) });
  for (const heights of ranges) await chain.exportTo(join(place.path, "ours"), heights);
  await writeArIoNodeExport(join(place.path, "ours"), join(place.path, "theirs"));
});
afterAll(() => {
  place[Symbol.dispose]();
  chain[Symbol.dispose]();
});

type Gateway = Readonly<{
  file: IndexFile;
  store: ColumnStore;
  folder: string;
  import: (source: string, given?: AbortSignal) => Promise<ImportProgress>;
}>;

async function withGateway(work: (gateway: Gateway) => Promise<void>): Promise<void> {
  using temporary = temporaryFolder();
  const folder = realpathSync(temporary.path);
  using file = indexFile();
  const store = await openDuckdbStore({ folder, libraryFolder: folder });
  const run = (source: string, given = signal) => {
    const folders = { storeFolder: folder, libraryFolder: folder };
    return importFolder(source, { ...folders, store, reader: file.reader, index: file.writer, signal: given });
  };
  await work({ file, store, folder, import: run });
  await store.close();
}

async function listed({ file, store }: Gateway, filters = {}): Promise<readonly PageRow[]> {
  const plan = { ...filters, order: "asc", limit: 10_000, columns: allColumns } as const;
  return (await createMergedPages(file.reader, store, () => signal).page(plan)).rows;
}

describe(`an import of an ar-io-node's export (seed ${seed})`, () => {
  test("writes every row as this program exports it, and lists it", () =>
    withGateway(async (gateway) => {
      const result = await gateway.import(join(place.path, "theirs"));
      for (const heights of ranges) {
        for (const table of ["blocks", "transactions", "tags", "postings"] as const) {
          const ours = await rowsOfFiles(readPartition(join(place.path, "ours"), heights), table);
          expect(await rowsOfFiles(readPartition(gateway.folder, heights), table)).toEqual(ours);
        }
      }
      const rows = await listed(gateway);
      expect(result).toMatchObject({ partitions: ranges.length, partitionsDone: ranges.length, items: rows.length });
      expect([result.leftOut, rows.length > 0]).toEqual([0, true]);
      await withGateway(async (other) => {
        await other.import(join(place.path, "ours"));
        expect(rows).toEqual(await listed(other));
        const [{ name, value } = { name: "", value: "" }] = rows.flatMap(({ tags }) => tags);
        const filter = { tags: [{ name, values: [value], op: "EQ" }] };
        expect(await listed(gateway, filter)).toEqual(await listed(other, filter));
      });
      expect(readdirSync(gateway.folder).toSorted()).toEqual([
        "blocks",
        "partitions",
        "postings",
        "tags",
        "transactions",
      ]);
    }));

  test("that was stopped is continued, and one that is repeated adds nothing", () =>
    withGateway(async (gateway) => {
      const source = join(place.path, "theirs");
      const stop = new AbortController();
      setTimeout(() => stop.abort(new Error("stopped")), 300);
      await gateway.import(source, stop.signal).catch(String);
      await gateway.import(source);
      const rows = await listed(gateway);
      expect(gateway.file.reader.counts().storedItems).toBe(rows.length);
      expect(await gateway.import(source)).toMatchObject({ rows: 0, items: 0 });
      expect(await listed(gateway)).toEqual(rows);
    }));

  test("leaves out rows without a place and repeated rows, and says how many", () =>
    withGateway(async (gateway) => {
      const folder = join(place.path, "partial");
      await writeArIoNodeExport(join(place.path, "ours"), folder, (select, table) => {
        if (table !== "transactions") return select;
        const isFirst = "height % 2 = 0 AND is_data_item";
        return `SELECT * REPLACE (CASE WHEN ${isFirst} THEN NULL ELSE "offset" END AS "offset") FROM (${select})
          UNION ALL SELECT * FROM (${select}) WHERE height % 2 = 1 AND is_data_item`;
      });
      const { items, leftOut } = await gateway.import(folder);
      const rows = await listed(gateway);
      expect(rows.map(({ place: { height } }) => height % 2).filter((rest) => rest === 0)).toEqual([]);
      expect(items).toBe(rows.length);
      await withGateway(async (other) => {
        await other.import(join(place.path, "ours"));
        expect(leftOut).toBe((await listed(other)).length);
      });
    }));

  const replaced = (column: string, value: string) => (select: string, table: ArIoNodeTable) =>
    table === "transactions" ? `SELECT * REPLACE (${value} AS "${column}") FROM (${select})` : select;
  test.each([
    ["of a short id", replaced("id", "'\\xAA'::BLOB"), "id has a value of 1 bytes; it must have 32"],
    ["of an owner without an address", replaced("owner_address", "NULL::BLOB"), "owner_address has a value of 0 bytes"],
    ["of other heights", replaced("height", "(height + 1000)::UBIGINT"), "the files have heights 1100 to 1"],
    ["of text instead of a number", replaced("data_size", "'many'"), "Could not convert string 'many' to INT64"],
    [
      "without a column",
      (select: string, table: ArIoNodeTable) =>
        table === "transactions" ? `SELECT * EXCLUDE (signature_type) FROM (${select})` : select,
      'Referenced column "signature_type" not found',
    ],
    [
      "with two blocks of a height",
      (select: string, table: ArIoNodeTable) => (table === "blocks" ? `${select} UNION ALL ${select}` : select),
      "there are two blocks of height 100",
    ],
  ])("rejects files %s in one sentence, and records nothing", async (name, change, reason) => {
    const folder = join(place.path, `bad ${name}`);
    await writeArIoNodeExport(join(place.path, "ours"), folder, change);
    await withGateway(async ({ file, import: run }) => {
      const message = String(await run(folder).catch(String));
      const heights = `heights ${ranges[0]?.start} to ${ranges[0]?.end}`;
      expect(message).toStartWith(`Error: ${heights} cannot be read as an export of ar-io-node: `);
      expect(message).not.toContain("\n");
      expect(message).toContain(reason);
      expect(file.reader.storedPartitions.heights()).toEqual([]);
    });
  });
});
