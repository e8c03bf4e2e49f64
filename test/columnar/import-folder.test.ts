/**
 * Imports of another gateway's export: every item is listed as there, once, whatever happens between.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";

import type { ColumnStore } from "../../src/columnar/column-store.ts";
import { openDuckdbStore } from "../../src/columnar/duckdb-store.ts";
import { type ImportProgress, importFolder } from "../../src/columnar/import-folder.ts";
import { createMergedPages } from "../../src/columnar/merged-pages.ts";
import { allColumns, type PagePlan } from "../../src/store/index/index-types.ts";
import { temporaryFolder } from "../store/folder.ts";
import { type IndexFile, indexFile } from "../store/index/index-file.ts";
import { newSeed } from "../support/seed.ts";
import { type ExportedChain, exportedChain } from "./exported-chain.ts";
import { parquetFiles, readTable } from "./read-parquet.ts";

const seed = newSeed();
const signal = new AbortController().signal;
const columns = allColumns;
const everything: PagePlan = { order: "asc", limit: 10_000, columns };

let chain: ExportedChain;
let exported: ReturnType<typeof temporaryFolder>;
beforeAll(async () => {
  chain = exportedChain(seed, 150);
  exported = temporaryFolder();
  for (let start = 100; start <= chain.end; start += 10)
    await chain.exportTo(exported.path, { start, end: Math.min(start + 9, chain.end) });
});
afterAll(() => {
  exported[Symbol.dispose]();
  chain[Symbol.dispose]();
});

type Gateway = Readonly<{
  file: IndexFile;
  store: ColumnStore;
  folder: string;
  import: (given?: AbortSignal) => Promise<ImportProgress>;
}>;

async function withGateway(work: (gateway: Gateway) => Promise<void>, source = exported.path): Promise<void> {
  using folder = temporaryFolder();
  using file = indexFile();
  const store = await openDuckdbStore({ folder: folder.path, libraryFolder: folder.path });
  const run = (given = signal) =>
    importFolder(source, {
      store,
      storeFolder: folder.path,
      libraryFolder: folder.path,
      reader: file.reader,
      index: file.writer,
      signal: given,
    });
  await work({ file, store, folder: folder.path, import: run });
  await store.close();
}

const text = (bytes: unknown): string => Buffer.from(bytes as Uint8Array).toString("base64url");

/** The items of an export, as another program reads them. */
async function itemsOf(folder: string) {
  const rows = (await readTable(folder, "transactions")).filter((row) => row["is_data_item"] === true);
  return rows.map((row) => [Number(row["height"]), text(row["id"]), text(row["owner_address"]), text(row["parent"])]);
}

describe(`an import into an empty index (seed ${seed})`, () => {
  test("lists every item of the export, with its block, and counts it", () =>
    withGateway(async ({ file, store, import: run }) => {
      const expected = await itemsOf(exported.path);
      const result = await run();
      expect(result.items).toBe(expected.length);
      const { rows } = await createMergedPages(file.reader, store, () => signal).page(everything);
      expect(rows.map(({ block }) => block?.height)).toEqual(rows.map(({ place }) => place.height));
      const block = (await readTable(exported.path, "blocks")).find(
        (row) => Number(row["height"]) === rows[0]?.place.height,
      );
      expect(rows[0]?.block).toMatchObject({
        hash: text(block?.["indep_hash"]),
        // The lowest block of the index has no previous one there.
        previous: block?.["previous_block"] === null ? "" : text(block?.["previous_block"]),
        timestamp: Number(block?.["block_timestamp"]),
      });
      expect(rows.map((row) => [row.place.height, row.id, row.ownerAddress, row.parentId ?? ""])).toEqual(expected);
      expect(file.reader.counts().storedItems).toBe(expected.length);
      expect(file.reader.storedPartitions.nextHeight()).toBe(chain.end + 1);
    }));

  test("that was stopped is continued, and one that is repeated adds nothing", () =>
    withGateway(async ({ file, store, folder, import: run }) => {
      const stop = new AbortController();
      const stopping = importFolder(exported.path, {
        store,
        storeFolder: folder,
        libraryFolder: folder,
        reader: file.reader,
        index: file.writer,
        signal: stop.signal,
        onProgress: ({ partitionsDone }) => partitionsDone === 2 && stop.abort(new Error("stopped")),
      });
      expect(await stopping.catch(String)).toBe("Error: stopped");
      expect(file.reader.storedPartitions.heights().length).toBe(2);
      const expected = await itemsOf(exported.path);
      await run();
      expect(file.reader.counts().storedItems).toBe(expected.length);
      expect(await run()).toMatchObject({ rows: 0, items: 0 });
    }));

  test("of the store's own folder takes over its files", async () => {
    using copy = temporaryFolder();
    await chain.exportTo(copy.path, { start: 100, end: chain.end });
    using file = indexFile();
    const store = await openDuckdbStore({ folder: copy.path, libraryFolder: copy.path });
    const parts = {
      store,
      storeFolder: copy.path,
      libraryFolder: copy.path,
      reader: file.reader,
      index: file.writer,
      signal,
    };
    expect((await importFolder(copy.path, parts)).items).toBe((await itemsOf(copy.path)).length);
    await store.close();
  });

  test("rejects a folder without partitions, a damaged file, and heights that overlap", async () => {
    using empty = temporaryFolder();
    await withGateway(async ({ import: run }) => {
      expect(await run().catch(String)).toBe(`Error: ${empty.path} has no exported partitions`);
    }, empty.path);

    using damaged = temporaryFolder();
    await chain.exportTo(damaged.path, { start: 100, end: 105 });
    const [path = ""] = parquetFiles(damaged.path, "tags");
    const bytes = new Uint8Array(await Bun.file(path).arrayBuffer());
    bytes[40] = (bytes[40] ?? 0) ^ 1;
    writeFileSync(path, bytes);
    await withGateway(async ({ file, import: run }) => {
      expect(await run().catch(String)).toContain("does not have the SHA-256 of its record");
      expect(file.reader.storedPartitions.heights()).toEqual([]);
    }, damaged.path);

    using other = temporaryFolder();
    await chain.exportTo(other.path, { start: 105, end: 112 });
    await withGateway(async ({ file, store, folder, import: run }) => {
      await run();
      const parts = {
        store,
        storeFolder: folder,
        libraryFolder: folder,
        reader: file.reader,
        index: file.writer,
        signal,
      };
      expect(await importFolder(other.path, parts).catch(String)).toBe(
        "Error: heights 105 to 112 overlap with 100 to 109, which the store has; " +
          `later heights can be imported from ${chain.end + 1} on`,
      );
    });
  });
});
