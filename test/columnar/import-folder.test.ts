/**
 * Imports of another gateway's export: every item is listed as there, once, whatever happens between.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ColumnStore } from "../../src/columnar/column-store.ts";
import { openDuckdbStore } from "../../src/columnar/duckdb-store.ts";
import { type ImportProgress, importFolder } from "../../src/columnar/import-folder.ts";
import { readPartition, writtenPartitions } from "../../src/columnar/partition.ts";
import { allColumns, type PagePlan } from "../../src/store/index/index-types.ts";
import { temporaryFolder } from "../store/folder.ts";
import { type IndexFile, indexFile } from "../store/index/index-file.ts";
import { newSeed } from "../support/seed.ts";
import { type ExportedChain, exportedChain, rowsOfFiles } from "./exported-chain.ts";
import { parquetFiles, readTable } from "./read-parquet.ts";
import { createTextPages } from "./text-pages.ts";

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

const listedIds = async ({ reader }: IndexFile, store: ColumnStore): Promise<string[]> =>
  (await createTextPages(reader, store, () => signal).page(everything)).rows.map(({ id }) => id);

describe(`an import into an empty index (seed ${seed})`, () => {
  test("lists every item of the export, with its block, and counts it", () =>
    withGateway(async ({ file, store, import: run }) => {
      const expected = await itemsOf(exported.path);
      const result = await run();
      expect(result.items).toBe(expected.length);
      const { rows } = await createTextPages(file.reader, store, () => signal).page(everything);
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
        onProgress: ({ partitionsDone }) => partitionsDone === 1 && stop.abort(new Error("stopped")),
      });
      expect(await stopping.catch(String)).toBe("Error: stopped");
      expect(file.reader.storedPartitions.heights().length).toBe(1);
      const expected = await itemsOf(exported.path);
      await run();
      expect(file.reader.counts().storedItems).toBe(expected.length);
      expect(await run()).toMatchObject({ rows: 0, items: 0 });
    }));

  test("of heights without blocks is rejected, and records nothing", async () => {
    using early = temporaryFolder();
    // The chain begins at 100.
    await chain.exportTo(early.path, { start: 90, end: 109 });
    await withGateway(async ({ file, store, folder }) => {
      const parts = {
        store,
        storeFolder: folder,
        libraryFolder: folder,
        reader: file.reader,
        index: file.writer,
        signal,
      };
      const reason = await importFolder(early.path, parts).catch(String);
      expect(reason).toBe("Error: heights 90 to 109 have 10 of 20 blocks: export them from where that index begins");
      expect(file.reader.storedPartitions.loadedHeights()).toEqual([]);
    });
  });

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

  test("of a grown export loads only the heights that the store does not have", async () => {
    using grown = temporaryFolder();
    // The chain has 18 blocks above its final ones: enough heights with any seed.
    const cut = chain.end + 6;
    const last = chain.end + 10;
    await chain.exportTo(grown.path, { start: 103, end: 104 });
    await chain.exportTo(grown.path, { start: 105, end: cut });
    await withGateway(async ({ file, store, folder, import: run }) => {
      await run();
      // The last partition has more heights than before, a new one has lower ones, and the others are as they were.
      await chain.exportTo(grown.path, { start: 105, end: last });
      await chain.exportTo(grown.path, { start: 100, end: 102 });
      const { partitions, rows, items } = await run();
      const expected = await itemsOf(grown.path);
      const heights = file.reader.storedPartitions.heights();
      expect({ seed, heights }).toEqual({
        seed,
        heights: [
          { first: 100, last: 102 },
          { first: 103, last: 104 },
          { first: 105, last: cut },
          { first: cut + 1, last },
        ],
      });
      expect(items).toBe(expected.filter(([height]) => Number(height) < 103 || Number(height) > cut).length);
      expect([partitions, rows > 0]).toEqual([3, true]);
      expect(await listedIds(file, store)).toEqual(expected.map(([, id]) => String(id)));
      expect(file.reader.counts().storedItems).toBe(expected.length);
      const added = await rowsOfFiles(readPartition(folder, { start: cut + 1, end: last }), "transactions");
      const all = await rowsOfFiles(readPartition(grown.path, { start: 105, end: last }), "transactions");
      expect(all).toEqual(expect.arrayContaining(added));
      expect(await run()).toMatchObject({ partitions: 3, rows: 0, items: 0 });
    }, grown.path);
  });

  test("of heights within and between recorded ones loads those between", async () => {
    using some = temporaryFolder();
    await chain.exportTo(some.path, { start: 102, end: 103 });
    await chain.exportTo(some.path, { start: 106, end: 107 });
    await withGateway(async ({ file, store, folder, import: run }) => {
      await run();
      using whole = temporaryFolder();
      await chain.exportTo(whole.path, { start: 100, end: 109 });
      const parts = { store, storeFolder: folder, libraryFolder: folder, reader: file.reader, index: file.writer };
      await importFolder(whole.path, { ...parts, signal });
      const heights = file.reader.storedPartitions.heights().map(({ first, last }) => [first, last]);
      expect(heights).toEqual([
        [100, 101],
        [102, 103],
        [104, 105],
        [106, 107],
        [108, 109],
      ]);
      expect(await listedIds(file, store)).toEqual((await itemsOf(whole.path)).map(([, id]) => String(id)));
    }, some.path);
  });

  test("of the store's own folder, where a partition has grown, has each row once in its files", async () => {
    using own = temporaryFolder();
    const cut = chain.end - 4;
    await chain.exportTo(own.path, { start: 100, end: cut });
    using file = indexFile();
    const store = await openDuckdbStore({ folder: own.path, libraryFolder: own.path });
    const run = () =>
      importFolder(own.path, {
        ...{ store, storeFolder: own.path, libraryFolder: own.path },
        ...{ reader: file.reader, index: file.writer, signal },
      });
    await run();
    using grown = temporaryFolder();
    await chain.exportTo(grown.path, { start: 100, end: chain.end });
    const expected = await itemsOf(grown.path);
    cpSync(grown.path, own.path, { recursive: true });
    await run();
    const written = [
      { start: 100, end: cut },
      { start: cut + 1, end: chain.end },
    ];
    expect(writtenPartitions(own.path)).toEqual(written);
    expect(await itemsOf(own.path)).toEqual(expected);
    expect(await listedIds(file, store)).toEqual(expected.map(([, id]) => String(id)));
    await store.close();
  });

  test("rejects heights that do not continue the block before them", async () => {
    using first = temporaryFolder();
    using other = exportedChain(seed + 1, 150);
    await chain.exportTo(first.path, { start: 100, end: 101 });
    using second = temporaryFolder();
    await other.exportTo(second.path, { start: 100, end: 103 });
    await withGateway(async ({ file, store, folder, import: run }) => {
      await run();
      const parts = { store, storeFolder: folder, libraryFolder: folder, reader: file.reader, index: file.writer };
      expect(await importFolder(second.path, { ...parts, signal }).catch(String)).toBe(
        "Error: heights 102 to 103 do not continue the block 101 that the store has",
      );
      expect(file.reader.storedPartitions.heights()).toEqual([{ first: 100, last: 101 }]);
    }, first.path);
  });

  test("that was rejected does not hide smaller partitions of the same heights", async () => {
    using other = exportedChain(seed + 1, 150);
    using wrong = temporaryFolder();
    await other.exportTo(wrong.path, { start: 100, end: 109 });
    using damaged = temporaryFolder();
    await chain.exportTo(damaged.path, { start: 100, end: 109 });
    const [path = ""] = parquetFiles(damaged.path, "tags");
    writeFileSync(
      path,
      (await Bun.file(path).bytes()).map((byte, at) => (at === 40 ? byte ^ 1 : byte)),
    );
    using first = temporaryFolder();
    await chain.exportTo(first.path, { start: 100, end: 101 });
    using small = temporaryFolder();
    for (const start of [102, 104, 106, 108]) await chain.exportTo(small.path, { start, end: start + 1 });
    const expected = [...(await itemsOf(first.path)), ...(await itemsOf(small.path))].map(([, id]) => String(id));

    for (const [rejected, reason] of [
      [wrong, "do not continue the block 101"],
      [damaged, "does not have the SHA-256 of its record"],
    ] as const)
      await withGateway(async ({ file, store, folder, import: run }) => {
        const parts = { store, storeFolder: folder, libraryFolder: folder, reader: file.reader, index: file.writer };
        if (rejected === wrong) await run();
        expect(await importFolder(rejected.path, { ...parts, signal }).catch(String)).toContain(reason);
        if (rejected !== wrong) await run();
        await importFolder(small.path, { ...parts, signal });
        expect({ seed, ids: await listedIds(file, store) }).toEqual({ seed, ids: expected });
      }, first.path);
  });

  test("rejects a record that names a file of other heights, and leaves that file as it is", async () => {
    using first = temporaryFolder();
    using second = temporaryFolder();
    const own = await chain.exportTo(first.path, { start: 100, end: 101 });
    await chain.exportTo(second.path, { start: 102, end: 103 });
    const named = own.files.find(({ table }) => table === "transactions")?.path ?? "";
    const record = join(second.path, "partitions", "height=102-103.json");
    const { files, ...rest } = JSON.parse(readFileSync(record, "utf8"));
    const [path = ""] = parquetFiles(second.path, "transactions");
    mkdirSync(dirname(join(second.path, named)), { recursive: true });
    cpSync(path, join(second.path, named));
    const renamed = files.map((file: { table: string }) =>
      file.table === "transactions" ? { ...file, path: named } : file,
    );
    writeFileSync(record, JSON.stringify({ ...rest, files: renamed }));
    await withGateway(async ({ file, store, folder, import: run }) => {
      await run();
      const parts = { store, storeFolder: folder, libraryFolder: folder, reader: file.reader, index: file.writer };
      expect(await importFolder(second.path, { ...parts, signal }).catch(String)).toBe(
        `Error: ${second.path} has no valid record of the heights 102 to 103`,
      );
      expect(readFileSync(join(folder, named))).toEqual(readFileSync(join(first.path, named)));
      expect(await listedIds(file, store)).toEqual((await itemsOf(first.path)).map(([, id]) => String(id)));
    }, first.path);
  });

  test("rejects a folder without partitions, and a damaged file, also of a grown partition", async () => {
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

    using part = temporaryFolder();
    await chain.exportTo(part.path, { start: 100, end: 102 });
    await withGateway(async ({ file, store, folder, import: run }) => {
      await run();
      const parts = { store, storeFolder: folder, libraryFolder: folder, reader: file.reader, index: file.writer };
      expect(await importFolder(damaged.path, { ...parts, signal }).catch(String)).toContain(
        "does not have the SHA-256 of its record",
      );
      expect(file.reader.storedPartitions.heights()).toEqual([{ first: 100, last: 102 }]);
    }, part.path);
  });
});
