/**
 * The DuckDB store: every exported row as another reader sees it, from files that are checked, within the folder.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { appendFileSync, cpSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ColumnStore } from "../../src/columnar/column-store.ts";
import { openDuckdbStore } from "../../src/columnar/duckdb-store.ts";
import { exportTables } from "../../src/columnar/export-tables.ts";
import type { LoadedPartition } from "../../src/columnar/partition.ts";
import { Failure } from "../../src/failures.ts";
import { temporaryFolder } from "../store/folder.ts";
import { newSeed } from "../support/seed.ts";
import { type ExportedChain, exportedChain, rowsOfFiles, rowsOfStore } from "./exported-chain.ts";

const seed = newSeed();
const steps = Number(process.env["STEPS"] ?? 150);
const { signal } = new AbortController();

let chain: ExportedChain;
beforeAll(() => {
  chain = exportedChain(seed, steps);
});
afterAll(() => chain[Symbol.dispose]());

type Opened = AsyncDisposable &
  Readonly<{ folder: string; store: ColumnStore; partitions: readonly LoadedPartition[] }>;

/** A store over exports of three partitions, in a folder with characters that mean something in SQL and patterns. */
async function openExported(options: Readonly<{ queryMs?: number }> = {}): Promise<Opened> {
  const place = temporaryFolder();
  const folder = join(place.path, "it's [a] *?");
  mkdirSync(folder);
  const third = Math.floor((chain.end - 100) / 3);
  const partitions = [
    await chain.exportTo(folder, { start: 100, end: 100 + third }),
    await chain.exportTo(folder, { start: 101 + third, end: 100 + 2 * third }, 40),
    await chain.exportTo(folder, { start: 101 + 2 * third, end: chain.end }),
  ];
  const store = await openDuckdbStore({ folder, libraryFolder: place.path, ...options });
  return {
    folder,
    store,
    partitions,
    [Symbol.asyncDispose]: async () => {
      await store.close();
      place[Symbol.dispose]();
    },
  };
}

const failureOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => "no failure",
    (error: unknown) => (error instanceof Failure ? `${error.code}: ${error.context["detail"]}` : error),
  );

describe("the DuckDB store", () => {
  test("has each row of the files once, also of several partitions", async () => {
    await using opened = await openExported();
    const { store, partitions } = opened;
    for (const partition of partitions) await store.load(partition, signal);
    for (const table of exportTables) {
      const expected = await Promise.all(partitions.map((partition) => rowsOfFiles(partition, table)));
      for (const [index, partition] of partitions.entries())
        expect(await rowsOfStore(store, table, partition)).toEqual(expected[index] ?? []);
      expect(await rowsOfStore(store, table, { start: 100, end: chain.end })).toEqual(expected.flat().toSorted());
    }
  });

  test("rejects heights without files, whose rows would be left out; no heights have no rows", async () => {
    await using opened = await openExported();
    const { folder, store, partitions } = opened;
    for (const table of exportTables) {
      for (const [start, end, absent] of [
        [0, 99, 0],
        [99, 100, 99],
        [100, chain.end + 1, chain.end + 1],
      ] as const)
        expect(await failureOf(rowsOfStore(store, table, { start, end }))).toEndWith(` height ${absent} in ${folder}`);
      const sql = `SELECT count(*) FROM ${opened.store.from(table, [])}`;
      expect(await store.select(sql, signal)).toEqual([["0"]]);
    }
    const second = partitions[1]?.start ?? 0;
    rmSync(join(folder, "partitions", `height=${second}-${partitions[1]?.end}.json`));
    expect(await failureOf(store.select(`SELECT count(*) FROM ${all(store)}`, signal))).toEndWith(
      ` height ${second} in ${folder}`,
    );
  });

  test("sees partitions that are added and replaced after it was opened", async () => {
    await using opened = await openExported();
    const { folder, store } = opened;
    const count = async () => Number((await store.select(`SELECT count(*) FROM ${all(store)}`, signal))[0]?.[0]);
    const before = await count();
    const larger = await chain.exportTo(folder, { start: 100, end: chain.end });
    expect(await count()).toBe(before);
    expect(await rowsOfStore(store, "tags", larger)).toEqual(await rowsOfFiles(larger, "tags"));
  });

  test("runs a statement once more when a file was replaced meanwhile, then fails", async () => {
    await using opened = await openExported();
    const { folder, store } = opened;
    const sql = `SELECT count(*) FROM ${all(store)}`;
    const [[before] = []] = await store.select(sql, signal);
    // The records stay as they are known, so the files are missed first.
    const blocks = join(folder, "transactions", "data");
    renameSync(blocks, `${blocks}-away`);
    expect(await failureOf(store.select(sql, signal))).toMatch(/^source_failed: DuckDB: .*No (such )?file/);
    renameSync(`${blocks}-away`, blocks);
    expect(await store.select(sql, signal)).toEqual([[before ?? ""]]);
  });

  test("loads no file that is absent, shorter, changed or has other rows than recorded", async () => {
    await using opened = await openExported();
    const { folder, store, partitions } = opened;
    const [partition] = partitions;
    if (partition === undefined) throw new Error("there is a partition");
    const [file] = partition.files;
    if (file === undefined) throw new Error("there is a file");
    const loadWith = (changed: Partial<typeof file>) =>
      failureOf(store.load({ ...partition, files: [{ ...file, ...changed }] }, signal)).then(String);
    expect(await loadWith({ rows: file.rows + 1 })).toMatch(/DuckDB: blocks.* has \d+ rows, its record states \d+$/);
    expect(await loadWith({ bytes: 7 })).toMatch(/DuckDB: .* bytes, its record states 7$/);
    expect(await loadWith({ sha256: "00" })).toMatch(/does not have the SHA-256 of its record$/);
    expect(await loadWith({ path: "blocks/data/none.parquet" })).toMatch(/does not exist below/);
    appendFileSync(join(folder, file.path), "more");
    expect(await loadWith({})).toMatch(/bytes, its record states/);
  });

  test("loads no file from elsewhere", async () => {
    await using opened = await openExported();
    const { folder, store, partitions } = opened;
    const [partition] = partitions;
    const file = partition?.files[0];
    if (partition === undefined || file === undefined) throw new Error("there is a file");
    const other = join(dirname(folder), "other");
    cpSync(folder, other, { recursive: true });
    const elsewhere = { ...partition, folder: other };
    expect(String(await failureOf(store.load(elsewhere, signal)))).toMatch(
      /is not a file of .*, the folder of the store/,
    );
    const above = { ...partition, files: [{ ...file, path: `../other/${file.path}` }] };
    expect(String(await failureOf(store.load(above, signal)))).toMatch(/is not a file of/);
    rmSync(join(folder, file.path));
    symlinkSync(join(other, file.path), join(folder, file.path));
    expect(String(await failureOf(store.load(partition, signal)))).toMatch(/is not a file of/);
  });

  test("reads no file outside its folder, and changes no setting", async () => {
    await using opened = await openExported();
    const { folder, store } = opened;
    writeFileSync(join(dirname(folder), "secret.csv"), "a,b\n");
    for (const sql of [
      "SELECT * FROM read_text('/etc/passwd')",
      `SELECT * FROM read_csv('${join(dirname(folder), "secret.csv")}')`,
      "SELECT * FROM read_parquet('https://example.com/x.parquet')",
      "SELECT * FROM glob('/*')",
      "INSTALL httpfs",
      "LOAD httpfs",
      "SET threads = 9",
      "SET enable_external_access = true",
      "COPY (SELECT 1) TO '/tmp/cairn-evil.csv'",
    ]) {
      expect(await failureOf(store.select(sql, signal))).toMatch(/^source_failed: DuckDB: /);
    }
  });

  test("stops a query at its time limit, and when the caller leaves", async () => {
    await using opened = await openExported({ queryMs: 200 });
    const endless = "SELECT sum(a.range * b.range) FROM range(100000000) a, range(100000000) b";
    const started = performance.now();
    expect(await failureOf(opened.store.select(endless, signal))).toBe(
      "source_timeout: DuckDB: no result after 200 ms",
    );
    const leaving = new AbortController();
    const left = opened.store.select(endless, leaving.signal).catch((error: unknown) => error);
    leaving.abort(new Error("left"));
    expect(String(await left)).toBe("Error: left");
    expect(performance.now() - started).toBeLessThan(3_000);
    expect(await opened.store.select("SELECT 1, NULL, true, hex('a'), 1.50", signal)).toEqual([
      ["1", null, "true", "61", "1.50"],
    ]);
  });

  test("queues more queries than it has connections", async () => {
    await using opened = await openExported();
    const numbers = Array.from({ length: 20 }, (_, number) => number);
    const rows = await Promise.all(numbers.map((number) => opened.store.select(`SELECT ${number}`, signal)));
    expect(rows.flat(2)).toEqual(numbers.map(String));
  });
});

function all(store: ColumnStore): string {
  return store.from("transactions", [{ start: 100, end: chain.end }]);
}
