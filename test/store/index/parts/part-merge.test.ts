/**
 * Merges of parts in another thread: the new part equals one that was made of all rows at once, readers see the
 * sources until it is complete, and interrupted merges leave nothing.
 * @module
 */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { idFromBytes } from "../../../../src/arweave/id.ts";
import { openIndexReader } from "../../../../src/store/index/index-reader.ts";
import { indexMigrations } from "../../../../src/store/index/index-schema.ts";
import { allColumns, noColumns } from "../../../../src/store/index/index-types.ts";
import { type IndexWriter, openIndexWriter } from "../../../../src/store/index/index-writer.ts";
import { type MergeStep, openMergeConnection } from "../../../../src/store/index/parts/merge-connection.ts";
import { partKeyOf } from "../../../../src/store/index/parts/part-entries.ts";
import { filterFolderOf } from "../../../../src/store/index/parts/part-filter.ts";
import { columnsOf, gatherPart, type NewPartRow } from "../../../../src/store/index/parts/part-image.ts";
import { createMerges, type MergedBodies, type PartMerge } from "../../../../src/store/index/parts/part-merge.ts";
import {
  createPartLoader,
  createParts,
  type PartSizes,
  type Parts,
  partSizesDefault,
} from "../../../../src/store/index/parts/parts.ts";
import { compareHalves } from "../../../../src/store/index/place.ts";
import { closeDatabase, openForWriting } from "../../../../src/store/sqlite.ts";
import { inspectIndex } from "../../../support/inspect-index.ts";
import { createRandom, type Random } from "../../../support/random.ts";
import { seedOr } from "../../../support/seed.ts";
import { temporaryFolder } from "../../folder.ts";
import { copyOldIndex } from "../old-index.ts";
import { createMergeSteps } from "./merge-steps.ts";

const sizes = {
  rowsMin: 1,
  sealRows: 1,
  levelRows: 2 ** 20,
  fanIn: 2,
  inlineRowsMax: 0,
  mergedRowsMin: 2 ** 22,
  mergedRowsMax: 2 ** 22,
};
const noIds = { id: () => 0 };

/** Spread over all 47 bits. */
const keyOf = (number: number): number => Number((BigInt(number) * 0x9e3779b97f4a7c15n) & ((1n << 47n) - 1n));

function rowsOf(random: Random, count: number): NewPartRow[] {
  let low = 0;
  return Array.from({ length: count }, (_, index) => {
    low += 1 + random.below(3);
    const keys = [
      ...[keyOf(1), keyOf(2 + random.below(14)), keyOf(100 + random.below(count)), keyOf(10 ** 6 + index)],
      keyOf(10 ** 7 + random.below(2_000)), // one list in a part of several chunks
    ];
    return { high: 7 + Math.floor(index / 1_000), low, keys: [keyOf(10 ** 9 + index), ...keys] };
  });
}

/** Parts in a new index file. */
function openParts(partSizes: PartSizes): Readonly<{ db: Database; parts: Parts }> & Disposable {
  const folder = temporaryFolder();
  const db = openForWriting(`${folder.path}/index.sqlite`, {
    migrations: indexMigrations,
    synchronous: "NORMAL",
    cacheBytes: 2 ** 24,
  });
  return {
    db,
    parts: createParts(db, partSizes),
    [Symbol.dispose]: () => {
      closeDatabase(db);
      folder[Symbol.dispose]();
    },
  };
}

/** How rows are shared between two parts. */
const shares: readonly (readonly [string, (row: number, count: number, random: Random) => readonly number[]])[] = [
  ["one after the other", (row, count) => [row < count / 3 ? 0 : 1]],
  ["the second one first", (row, count) => [row < count / 3 ? 1 : 0]],
  ["interleaved", (row) => [row % 2]],
  ["at random, some rows in both", (_row, _count, random) => (random.chance(0.1) ? [0, 1] : [random.below(2)])],
  ["one within the other", (row, count) => [row > count / 3 && row < count / 2 ? 1 : 0]],
];

describe("a merge", () => {
  test.each(shares)("of two parts, %s, equals one part of all rows", (_how, share) => {
    const random = createRandom(seedOr(31));
    using opened = openParts(sizes);
    const { db, parts } = opened;
    const rows = rowsOf(random, 150_000);
    const split: NewPartRow[][] = [[], []];
    rows.forEach((row, index) => {
      for (const part of share(index, rows.length, random)) split[part]?.push(row);
    });
    for (const some of split) parts.add(columnsOf(some.toSorted(compareHalves)));
    const merge = parts.beginMerge();
    if (merge === undefined) throw new Error("two parts of a level are merged");
    const ids: number[] = [];
    const keys: number[] = [];
    const filters = { addId: (key: number) => ids.push(key), addKey: (key: number) => keys.push(key) };
    const steps = createMerges(db, noIds, 2 ** 15)(merge, () => filters);
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) parts.addMerged(merge.part, step.value);
    const merged = step.value;
    parts.endMerge(merge, merged, null);
    while (parts.dropReplaced());

    const gathered = gatherPart(columnsOf(rows));
    const loaded = createPartLoader(db)(merge.part);
    expect(loaded.places).toEqual(gathered.places);
    expect([loaded.entries.sort(), loaded.ids]).toEqual([gathered.entries, gathered.ids]);
    // Of equal keys one is enough.
    const inOrder = (all: readonly number[]): number[] => [...new Set(all)].sort((a, b) => a - b);
    expect(ids).toEqual(inOrder(rows.map(({ keys: [id = 0] }) => partKeyOf(id))));
    expect(keys).toEqual(inOrder(rows.flatMap((row) => row.keys.slice(1).map(partKeyOf))));
    expect(merged.keys).toBe(new Set(rows.flatMap(({ keys }) => keys.slice(1))).size);
    expect(db.query("SELECT part FROM parts").all()).toEqual([{ part: merge.part }]);
  });

  test("has at most 256 blocks of places in a step, also where one source follows another", () => {
    using opened = openParts(sizes);
    const { db, parts } = opened;
    const count = 300_000;
    const rows = Array.from({ length: 2 * count }, (_, index) => ({ high: 7, low: index, keys: [keyOf(index)] }));
    for (const some of [rows.slice(0, count), rows.slice(count)]) parts.add(columnsOf(some));
    const merge = parts.beginMerge();
    if (merge === undefined) throw new Error("two parts of a level are merged");
    const steps = [...createMerges(db, noIds)(merge, () => ({ addId: () => undefined, addKey: () => undefined }))];
    const blocks = steps.flatMap(({ places }) => (places.length > 0 ? [places.length] : []));
    expect(blocks).toEqual([256, 256, 74]);
  });

  test("has at most 2^29 entries, so that the numbers of its lists have 24 bits", () => {
    using opened = openParts({ ...sizes, fanIn: 3 });
    const { db, parts } = opened;
    const rows = rowsOf(createRandom(seedOr(34)), 40);
    const setEntries = (entries: readonly number[]): void => {
      for (const [index, each] of entries.entries())
        db.run("UPDATE parts SET entries = ? WHERE part = ?", [each, index + 1]);
    };
    for (let at = 0; at < 40; at += 10) parts.add(columnsOf(rows.slice(at, at + 10)));
    const sourcesOf = () => parts.beginMerge()?.sources.map(({ part }) => part);
    setEntries([2 ** 28 - 1, 2 ** 28 - 1, 2, 2]);
    expect(sourcesOf()).toEqual([1, 2, 3]);
    setEntries([2 ** 28 - 1, 2 ** 28 - 1, 3, 2]);
    expect(sourcesOf()).toEqual([1, 2]);
    // A part of half the limit might have no other one that fits.
    setEntries([2 ** 28, 2, 2, 2]);
    expect(sourcesOf()).toEqual([2, 3, 4]);
  });

  test("has buckets for the entries of keys of up to 64 rows that have lists in parts of earlier releases", () => {
    using opened = openParts(sizes);
    const { db, parts } = opened;
    const rows = Array.from({ length: 26_000 }, (_, low) => ({ high: 7, low, keys: [keyOf(low), keyOf(low % 200)] }));
    for (const some of [rows.slice(0, 13_000), rows.slice(13_000)]) parts.add(columnsOf(some));
    expect(parts.beginMerge()?.buckets).toBe(1);
    db.run("UPDATE part_keys SET count = 64");
    expect(parts.beginMerge()?.buckets).toBe(Math.ceil(26_000 / 240));
  });

  test("that a writer has begun is abandoned when another one is opened: none of its steps is stored", () => {
    using opened = openParts(sizes);
    const { db, parts } = opened;
    const rows = rowsOf(createRandom(seedOr(35)), 40);
    for (const some of [rows.slice(0, 20), rows.slice(20)]) parts.add(columnsOf(some));
    const merge = parts.beginMerge();
    if (merge === undefined) throw new Error("two parts of a level are merged");
    const steps = createMerges(db, noIds)(merge, () => ({ addId: () => undefined, addKey: () => undefined }));
    const bodies: MergedBodies[] = [];
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) bodies.push(step.value);
    const merged = step.value;

    const other = createParts(db, sizes);
    for (const each of bodies) expect(() => other.addMerged(merge.part, each)).toThrow("the merge was abandoned");
    expect(() => other.endMerge(merge, merged, null)).toThrow("the merge was abandoned");
    while (other.dropReplaced());
    expect(db.query("SELECT part FROM parts").all()).toEqual(merge.sources.map(({ part }) => ({ part })));
  });

  test("whose filters cannot be completed leaves neither their file nor its descriptor open", () => {
    using folder = temporaryFolder();
    const path = copyOldIndex(folder.path);
    const partSizes = { ...partSizesDefault, fanIn: 4, inlineRowsMax: 0 };
    const writer = openIndexWriter(path, { clock: () => 0, partSizes });
    const connection = openMergeConnection(path, { filterFileRowsMin: 40 });
    const filters = filterFolderOf(path);
    const isOpen = (): boolean => openFiles().some((file) => file.startsWith(filters));
    const merge = writer.beginMerge();
    if (merge === undefined) throw new Error("parts of a level are merged");
    let step = connection.begin(merge);
    while ("bodies" in step && !isOpen()) step = connection.next();
    expect(isOpen()).toBe(true);
    // The file cannot be renamed.
    rmSync(filters, { recursive: true });
    const completeAll = (): void => {
      while ("bodies" in connection.next());
    };
    expect(completeAll).toThrow("ENOENT");
    expect(isOpen()).toBe(false);
    connection.close();
    writer.close();
  });
});

/** The files that this process has open, with those that were removed. */
function openFiles(): string[] {
  return readdirSync("/proc/self/fd").flatMap((descriptor) => {
    try {
      return [readlinkSync(`/proc/self/fd/${descriptor}`)];
    } catch {
      return []; // the one of the folder that is read
    }
  });
}

/** Makes all steps of a merge but the first, which is given, and ends it. */
function finish(
  parts: Parts,
  connection: ReturnType<typeof openMergeConnection>,
  merge: PartMerge,
  first: MergeStep,
): void {
  let step = first;
  for (; "bodies" in step; step = connection.next()) parts.addMerged(merge.part, step.bodies);
  parts.endMerge(merge, step.merged, step.filter);
}

describe("a merge within another one", () => {
  test("is made when it has at most a share of its rows, and leaves the other one as it is", () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/index.sqlite`;
    openIndexWriter(path, { clock: () => 0 }).close();
    const db = openForWriting(path, { migrations: indexMigrations, synchronous: "NORMAL", cacheBytes: 2 ** 20 });
    const parts = createParts(db, { ...sizes, levelRows: 100, fanIn: 3 });
    const rows = rowsOf(createRandom(seedOr(33)), 4_620);
    const add = (counts: readonly number[], from: number): void => {
      counts.reduce((at, count) => {
        parts.add(columnsOf(rows.slice(at, at + count)));
        return at + count;
      }, from);
    };
    add([1_000, 1_000, 1_000], 0);
    const large = parts.beginMerge();
    if (large === undefined) throw new Error("three parts of a level are merged");
    const connection = openMergeConnection(path, { rangeEntries: 1_000 });
    const step = connection.begin(large);

    add([500, 500, 500], 3_000);
    expect(parts.beginMerge(large)).toBeUndefined();
    add([40, 40, 40], 4_500);
    const small = parts.beginMerge(large);
    expect(small).toMatchObject({ within: large.part, sources: [{ count: 40 }, { count: 40 }, { count: 40 }] });
    if (small !== undefined) {
      finish(parts, connection, small, connection.begin(small));
      // It has ended: another one within it would abandon the large one.
      expect(() => connection.begin({ ...small, within: small.part })).toThrow("has ended");
    }
    finish(parts, connection, large, step);

    while (parts.dropReplaced());
    const counts = db.query("SELECT count FROM parts ORDER BY count").all();
    expect(counts).toEqual([120, 500, 500, 500, 3_000].map((count) => ({ count })));
    const loaded = createPartLoader(db)(large.part);
    const gathered = gatherPart(columnsOf(rows.slice(0, 3_000)));
    expect([loaded.places, loaded.entries.sort(), loaded.ids]).toEqual([
      gathered.places,
      gathered.entries,
      gathered.ids,
    ]);
    connection.close();
    closeDatabase(db);
  });
});

describe("the writer", () => {
  test("does not merge the sources of a merge under way, however many parts are added meanwhile", () => {
    using opened = openParts({ ...sizes, levelRows: 30, inlineRowsMax: 30, fanIn: 3 });
    const { db, parts } = opened;
    const rows = rowsOf(createRandom(seedOr(32)), 4_000);
    const add = (from: number, to: number): void => {
      for (let at = from; at < to; at += 20) parts.add(columnsOf(rows.slice(at, at + 20)));
    };
    add(0, 60);
    const merge = parts.beginMerge();
    const sources = merge?.sources.map(({ part }) => part) ?? [];
    expect(sources.length).toBe(3);
    // Parts of a level that is this crowded are merged by the writer.
    add(60, 4_000);
    const present = db.query<{ part: number }, []>("SELECT part FROM parts WHERE level >= 0").all();
    expect(present.length).toBeLessThan(100);
    expect(present.map(({ part }) => part)).toEqual(expect.arrayContaining(sources));
  });
});

const smallParts = { ...partSizesDefault, inlineRowsMax: 0, mergedRowsMax: 200 };

describe("an index of an earlier release", () => {
  test.each([
    ["in postings", "postings", partSizesDefault, 0],
    ["among the keys of parts", "among-keys", partSizesDefault, 0],
    ["among the keys of parts, of which one is never merged", "among-keys", smallParts, 1],
  ] as const)("with ids %s finds every row before, during and after its parts are rewritten", (...given) => {
    const [, kind, partSizes, parts] = given;
    using folder = temporaryFolder();
    const path = copyOldIndex(folder.path, kind);
    const writer = openIndexWriter(path, { clock: () => 1_700_000_000_000, partSizes });
    const reader = openIndexReader(path);
    const rows = reader.page({ order: "asc", limit: 1_000, columns: allColumns }).rows;
    expect(rows.length).toBe(179);
    const absent = idFromBytes(new Uint8Array(32));
    const expectAll = (): void => {
      for (const { id, place, ownerAddress } of rows) {
        expect(reader.placeOf(id)).toEqual(place);
        expect(reader.page({ ids: [id, absent], order: "asc", limit: 2, columns: noColumns }).rows.length).toBe(1);
        const ofOwner = { owners: [ownerAddress], order: "asc", limit: 1_000, columns: noColumns } as const;
        expect(reader.page(ofOwner).rows.some((row) => row.id === id)).toBe(true);
      }
      expect(reader.placeOf(absent)).toBeUndefined();
    };
    expectAll();
    const merges = createMergeSteps(writer, path, createRandom(seedOr(3)));
    for (let count = 0; count < 10; count += 1) {
      merges.step();
      expectAll();
    }
    merges.finish();
    expectAll();
    merges.close();
    reader.close();
    writer.close();
    expect(inspectIndex(path).faults).toEqual([]);
    using db = new Database(path);
    expect(db.query("SELECT count(*) AS parts FROM parts WHERE id_buckets IS NULL").get()).toEqual({ parts });
  });
});

describe("filters in files", () => {
  /** An index whose rows are in one part with a filter in a file. */
  function merged(folder: string): Readonly<{ path: string; writer: IndexWriter; file: string }> {
    const path = copyOldIndex(folder);
    const partSizes = { ...partSizesDefault, fanIn: 4, inlineRowsMax: 0 };
    const writer = openIndexWriter(path, { clock: () => 0, partSizes });
    const merges = createMergeSteps(writer, path, createRandom(1));
    merges.finish();
    merges.close();
    const [file = "", ...others] = readdirSync(filterFolderOf(path));
    expect(others).toEqual([]);
    return { path, writer, file };
  }

  test.each([
    ["missing", (path: string) => rmSync(path)],
    ["damaged", (path: string) => writeFileSync(path, new Uint8Array(320))],
  ])("are made again when they are %s, and lose no row meanwhile", (_what, damage) => {
    using folder = temporaryFolder();
    const { path, writer, file } = merged(folder.path);
    const names = [file];
    // Made again twice: the second file has the bytes of the first.
    for (let round = 0; round < 2; round += 1) {
      damage(`${filterFolderOf(path)}/${names.at(-1)}`);
      const reader = openIndexReader(path);
      const rows = reader.page({ order: "asc", limit: 1_000, columns: noColumns }).rows;
      expect(rows.every(({ id }) => reader.placeOf(id) !== undefined)).toBe(true);
      const connection = openMergeConnection(path, { filterFileRowsMin: 40 });
      const repaired = connection.repairFilter();
      if (repaired === undefined) throw new Error("nothing was made again");
      const mappings = () => readFileSync("/proc/self/maps", "utf8").split(`/${repaired.filter}\n`).length - 1;
      expect(names).not.toContain(repaired.filter);
      names.push(repaired.filter);
      writer.setFilter(repaired.part, repaired.filter);
      expect(readdirSync(filterFolderOf(path))).toEqual([repaired.filter]);
      expect(connection.repairFilter()).toBeUndefined();
      const before = mappings();
      expect(rows.every(({ id }) => reader.placeOf(id) !== undefined)).toBe(true);
      expect(mappings()).toBe(before + 1); // the reader uses it
      for (const opened of [connection, reader]) opened.close();
    }
    writer.close();
  });

  test("are removed when others take their place", () => {
    using folder = temporaryFolder();
    const { path, writer, file } = merged(folder.path);
    const part = Number(file.split("-", 1)[0]);
    writer.setFilter(part, file);
    expect(readdirSync(filterFolderOf(path))).toEqual([file]);
    writeFileSync(`${filterFolderOf(path)}/${part}-20-0123456789abcdef`, "another one");
    writer.setFilter(part, `${part}-20-0123456789abcdef`);
    expect(readdirSync(filterFolderOf(path))).toEqual([`${part}-20-0123456789abcdef`]);
    writer.close();
  });

  test("are removed when the writer merges their parts at once", () => {
    using opened = openParts(sizes);
    const { db, parts } = opened;
    const rows = rowsOf(createRandom(seedOr(35)), 20);
    const filters = filterFolderOf(db.filename);
    mkdirSync(filters);
    parts.add(columnsOf(rows.slice(0, 10)));
    writeFileSync(`${filters}/1-20-0123456789abcdef`, "of the first part");
    parts.setFilter(1, "1-20-0123456789abcdef");
    createParts(db, { ...sizes, inlineRowsMax: 20 }).add(columnsOf(rows.slice(10)));
    expect(db.query("SELECT count FROM parts").all()).toEqual([{ count: 20 }]);
    expect(readdirSync(filters)).toEqual([]);
  });

  test("are removed when the writer has merged their part while they were made again", () => {
    using opened = openParts(sizes);
    const { db, parts } = opened;
    const rows = rowsOf(createRandom(seedOr(35)), 20);
    const filters = filterFolderOf(db.filename);
    mkdirSync(filters);
    parts.add(columnsOf(rows.slice(0, 10)));
    createParts(db, { ...sizes, inlineRowsMax: 20 }).add(columnsOf(rows.slice(10)));
    writeFileSync(`${filters}/1-20-0123456789abcdef`, "made again");
    parts.setFilter(1, "1-20-0123456789abcdef");
    expect(db.query("SELECT part, filter FROM parts").all()).toEqual([{ part: 3, filter: null }]);
    expect(readdirSync(filters)).toEqual([]);
  });

  test("of parts that are gone are removed when the index is opened", () => {
    using folder = temporaryFolder();
    const { path, writer, file } = merged(folder.path);
    writer.close();
    writeFileSync(`${filterFolderOf(path)}/99-0123456789abcdef`, "left by a crash");
    openIndexWriter(path, { clock: () => 0 }).close();
    expect(readdirSync(filterFolderOf(path))).toEqual([file]);
  });
});
