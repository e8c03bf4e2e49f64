/**
 * Imports of an ar-io-node's exports: files that DuckDB wrote with its columns, types and order of rows.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { copyFileSync, mkdirSync, readdirSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ColumnStore } from "../../src/columnar/column-store.ts";
import { openDuckdbStore } from "../../src/columnar/duckdb-store.ts";
import { type ImportProgress, importFolder } from "../../src/columnar/import-folder.ts";
import { type PartitionHeights, readPartition } from "../../src/columnar/partition.ts";
import { allColumns, type PageRow } from "../../src/store/index/index-types.ts";
import { temporaryFolder } from "../store/folder.ts";
import { type IndexFile, indexFile } from "../store/index/index-file.ts";
import { newSeed } from "../support/seed.ts";
import { type ArIoNodeTable, writeArIoNodeExport } from "./ar-io-node-export.ts";
import { type ExportedChain, exportedChain, rowsOfFiles } from "./exported-chain.ts";
import { createTextPages } from "./text-pages.ts";

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
  await chain.exportTo(join(place.path, "one partition"), { start: 100, end: chain.end });
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
  return (await createTextPages(file.reader, store, () => signal).page(plan)).rows;
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

  test("leaves out rows without a place, and says how many", () =>
    withGateway(async (gateway) => {
      const folder = join(place.path, "partial");
      await writeArIoNodeExport(join(place.path, "ours"), folder, (select, table) => {
        if (table !== "transactions") return select;
        const without = (rest: number) => `height % 4 = ${rest} AND is_data_item`;
        return `SELECT * REPLACE (CASE WHEN ${without(0)} THEN NULL ELSE "offset" END AS "offset",
          CASE WHEN ${without(1)} THEN NULL ELSE block_transaction_index END AS block_transaction_index,
          CASE WHEN ${without(2)} THEN 9::UINTEGER ELSE signature_type END AS signature_type) FROM (${select})`;
      });
      const { items, leftOut } = await gateway.import(folder);
      const rows = await listed(gateway);
      expect(rows.filter(({ place: { height } }) => height % 4 !== 3)).toEqual([]);
      expect(items).toBe(rows.length);
      await withGateway(async (other) => {
        await other.import(join(place.path, "ours"));
        const all = await listed(other);
        expect(rows).toEqual(all.filter(({ place: { height } }) => height % 4 === 3));
        expect(leftOut).toBe(all.length - rows.length);
      });
    }));

  test("of two runs in one folder imports each row once", () =>
    withGateway(async (gateway) => {
      const folder = join(place.path, "twice");
      await writeArIoNodeExport(join(place.path, "ours"), folder, (select, table) =>
        table === "transactions"
          ? `${select} UNION ALL SELECT * REPLACE (root_parent_offset + 6400 AS root_parent_offset) FROM (${select})`
          : select,
      );
      for (const path of new Bun.Glob("**/*.parquet").scanSync(folder))
        copyFileSync(join(folder, path), join(folder, path.replace("_1.parquet", "_2.parquet")));
      const { leftOut, items } = await gateway.import(folder);
      await withGateway(async (other) => {
        await other.import(join(place.path, "ours"));
        const rows = await listed(other);
        expect(await listed(gateway)).toEqual(rows);
        expect({ leftOut, items }).toEqual({ leftOut: 0, items: rows.length });
      });
    }));

  test("removes files that an import that was killed has left", () =>
    withGateway(async (gateway) => {
      mkdirSync(join(gateway.folder, "import.part"));
      writeFileSync(join(gateway.folder, "import.part", "duckdb_temp_storage-0.tmp"), "rows");
      await gateway.import(join(place.path, "theirs"));
      expect(readdirSync(gateway.folder)).not.toContain("import.part");
    }));

  const changed = (table: ArIoNodeTable, change: (select: string) => string) => (select: string, name: ArIoNodeTable) =>
    name === table ? change(select) : select;
  const replaced = (column: string, value: string, table: ArIoNodeTable = "transactions") =>
    changed(table, (select) => `SELECT * REPLACE (${value} AS "${column}") FROM (${select})`);
  test.each([
    ["of a short id", replaced("id", "'\\xAA'::BLOB"), "id has a value of 1 bytes; it must have 32"],
    ["of an owner without an address", replaced("owner_address", "NULL::BLOB"), "owner_address has a value of 0 bytes"],
    ["of a short parent", replaced("parent", "'\\xAA'::BLOB"), "parent has a value of 1 bytes"],
    ["of a short block hash", replaced("indep_hash", "'\\xAA'::BLOB", "blocks"), "the hash of block 100 has 1 bytes"],
    ["of other heights", replaced("height", "(height + 1000)::UBIGINT"), "the files have heights 11"],
    [
      "of blocks of other heights",
      replaced("height", "(height + 1000)::UBIGINT", "blocks"),
      "there is a block of height 1100",
    ],
    [
      "of text instead of a number",
      replaced("data_size", "'many'"),
      "the column data_size of the table transactions has the type VARCHAR",
    ],
    ["of ids as text", replaced("id", "hex(id)", "tags"), "the column id of the table tags has the type VARCHAR"],
    [
      "of a size above 2^53",
      replaced("data_size", "18446744073709551615::UBIGINT"),
      "data_size has the value 18446744073709551615; expected 0 to 9007199254740991",
    ],
    [
      "of an offset above 2^53",
      replaced("offset", "18446744073709551615::UBIGINT"),
      "offset has the value 18446744073709551615",
    ],
    ["of a negative time", replaced("block_timestamp", "-1::BIGINT", "blocks"), "block_timestamp has the value -1"],
    [
      "of an amount above 20 digits",
      replaced("quantity", "(10::HUGEINT ** 21)::DECIMAL(38, 0)"),
      "quantity has the value 1000000000000000000000",
    ],
    ["of data before the header", replaced("data_offset", '"offset"'), "is less than 116 bytes after offset"],
    [
      "of two tags with one number",
      replaced("tag_index", "0::USMALLINT", "tags"),
      "an item has two tags of tag_index 0",
    ],
    [
      "without a column",
      changed("transactions", (select) => `SELECT * EXCLUDE (signature_type) FROM (${select})`),
      "the table transactions has no column signature_type",
    ],
    [
      "without a block",
      changed("blocks", (select) => `SELECT * FROM (${select}) WHERE height <> 105`),
      "the block of height 105 is missing",
    ],
    [
      "without the last block",
      changed("blocks", (select) => `SELECT * FROM (${select}) ORDER BY height DESC OFFSET 1`),
      "is missing",
    ],
    [
      "of blocks that are not a chain",
      replaced("previous_block", "indep_hash", "blocks"),
      "the block of height 101 does not name the block before",
    ],
    [
      "with two blocks of a height",
      changed("blocks", (select) => `${select} UNION ALL SELECT * REPLACE (tx_count + 1 AS tx_count) FROM (${select})`),
      "there are two blocks of height 100",
    ],
  ])("rejects files %s in one sentence, and records nothing", async (name, change, reason) => {
    const folder = join(place.path, `bad ${name}`);
    await writeArIoNodeExport(join(place.path, "one partition"), folder, change);
    await withGateway(async ({ file, import: run }) => {
      const message = String(await run(folder).catch(String));
      expect(message).toStartWith(`Error: heights 100 to ${chain.end} cannot be read as an export of ar-io-node: `);
      expect(message).not.toContain("\n");
      expect(message).toContain(reason);
      expect(file.reader.storedPartitions.heights()).toEqual([]);
    });
  });
});
