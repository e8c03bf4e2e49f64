/**
 * Filters of parts: a key that was added always passes, few other keys do, and what is damaged of a file is ignored.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import {
  createFilter,
  createFilterFile,
  createIdFilter,
  filterFolderOf,
  isFilterFileSound,
  openFilterFile,
  removeOtherFilters,
  soughtKeys,
} from "../../../../src/store/index/parts/part-filter.ts";
import { createRandom } from "../../../support/random.ts";
import { seedOr } from "../../../support/seed.ts";
import { temporaryFolder } from "../../folder.ts";

const keysOf = (count: number, random = createRandom(seedOr(7))): number[] =>
  Array.from({ length: count }, () => random.below(2 ** 20) * 2 ** 20 + random.below(2 ** 20));

type Filters = Readonly<{ rows?: number; ids?: readonly number[]; keysMax: number; keys?: readonly number[] }>;

/** Writes the filters of a part with these keys, in any order. @returns The file's name. */
function writeFilters(folder: string, part: number, { rows, ids = [], keysMax, keys = [] }: Filters): string {
  const file = createFilterFile(folder, part, { rows, keysMax });
  for (const key of ids.toSorted((a, b) => a - b)) file.addId(key);
  for (const key of keys.toSorted((a, b) => a - b)) file.addKey(key);
  return file.end();
}

/** The filters of a part of 100 rows and no other key, whose ids are `keysOf(100, createRandom(7))`. */
const oldFile = [
  "hGAIGhMIkQQqAIsKBClAyECBqRACAUKQRVgCANQopABzMF4p4KsWCBoBSuuH7rQUgH5QVAKJSu1CWaQqtYbcgxGJZJSiRAxiiRGEowSUstgcjA",
  "BSZBgR8UgCUsaEoGkBNpC2yQrItYOtwpdFDEnVLUnzIBwW1PqI0l9ihLJNElaJl0cg0QtjsIyF2qWlgn2tWtihTMkPBpSXIMMvEXEtKmIRDUVB",
  "bQrOaJZkw_IDoPDYBBSitrVJAR0ihgkXhJxTgIIpAsQxAMEwAh0ggCYBJoJAAJcBQiMsMhmGAIBmMAkAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
  "AAAAAAAAAAAKAmjnk",
].join("");

/** Bytes of a filter of so many keys. */
const filterBytes = (keys: number, bits: number): number => Math.max(1, Math.ceil((keys * bits) / 256)) * 32;

/** @param at - From the end when it is negative. */
function changeByte(path: string, at: number): void {
  const bytes = readFileSync(path);
  const index = at < 0 ? bytes.length + at : at;
  bytes[index] = (bytes[index] ?? 0) ^ 4;
  writeFileSync(path, bytes);
}

describe("a filter of a part", () => {
  test.each([[0], [1], [25], [26], [10_000]])("of %d keys lets each of them pass", (count) => {
    const keys = keysOf(count);
    const filter = createFilter(count);
    for (const key of keys) filter.add(key);
    expect(keys.filter((key) => !filter.has(key))).toEqual([]);
  });

  test("lets at most 2 % of other keys pass, for keys of all sizes", () => {
    const random = createRandom(seedOr(8));
    const filter = createFilter(50_000);
    for (const key of keysOf(50_000, random)) filter.add(key);
    const passed = keysOf(100_000, random).filter(filter.has).length;
    expect(passed / 100_000).toBeLessThan(0.02);
    for (const key of [0, 2 ** 40 - 1]) {
      const one = createFilter(1);
      one.add(key);
      expect([one.has(key), filter.has(key), typeof one.has(2 ** 39)]).toEqual([true, filter.has(key), "boolean"]);
    }
  });

  test("of ids lets at most 0.1 % of other ids pass", () => {
    const random = createRandom(seedOr(8));
    const filter = createIdFilter(50_000);
    const keys = keysOf(50_000, random);
    for (const key of keys) filter.add(key);
    expect(filter.passing(soughtKeys(keys)).length).toBe(keys.length);
    expect(filter.passing(soughtKeys(keysOf(100_000, random))).length / 100_000).toBeLessThan(0.001);
  });

  test("tests many keys as it tests one", () => {
    const filter = createFilter(1_000);
    for (const key of keysOf(1_000)) filter.add(key);
    const others = [0, 2 ** 40 - 1, ...keysOf(5_000, createRandom(seedOr(9)))];
    expect(filter.passing(soughtKeys(others)).map((index) => others[index])).toEqual(others.filter(filter.has));
  });

  test.each([
    ["with ids apart", 700],
    ["of an earlier release", undefined],
  ])("is read back from its file, %s", (_what, rows) => {
    using folder = temporaryFolder();
    const keys = createFilter(1_000);
    for (const key of keysOf(1_000)) keys.add(key);
    const ids = rows === undefined ? undefined : createIdFilter(rows);
    const idKeys = keysOf(700, createRandom(seedOr(11)));
    for (const key of idKeys) ids?.add(key);
    const name = writeFilters(`${folder.path}/f`, 12, {
      ...(rows === undefined ? {} : { rows, ids: idKeys }),
      keysMax: 1_000,
      keys: keysOf(1_000),
    });
    expect(name).toMatch(/^12-20-[0-9a-f]{16}$/);
    const bytes = (rows === undefined ? 0 : filterBytes(rows, 20)) + filterBytes(1_000, 10);
    expect(statSync(`${folder.path}/f/${name}`).size).toBe(bytes + Math.ceil(bytes / 4_096) * 4);
    const opened = openFilterFile(`${folder.path}/f`, name, rows);
    const tested = [...keysOf(1_000), ...idKeys, ...keysOf(1_000, createRandom(9))];
    expect(tested.map((key) => opened?.keys.has(key))).toEqual(tested.map(keys.has));
    expect(tested.map((key) => opened?.ids?.has(key))).toEqual(tested.map((key) => ids?.has(key)));
  });

  test("of ids has 16 bits a key in a file of an earlier release", () => {
    using folder = temporaryFolder();
    const name = "1-c6e2e9cb17b92680";
    writeFileSync(`${folder.path}/${name}`, Buffer.from(oldFile, "base64url"));
    const ids = openFilterFile(folder.path, name, 100)?.ids;
    const random = createRandom(7);
    expect(keysOf(100, random).filter((key) => ids?.has(key) !== true)).toEqual([]);
    expect(keysOf(1_000, random).filter((key) => ids?.has(key) === true).length).toBeLessThan(10);
  });

  test("is absent where its file is too short for the filter of ids", () => {
    using folder = temporaryFolder();
    const name = writeFilters(folder.path, 1, { keysMax: 100 });
    expect(openFilterFile(folder.path, name, 10 ** 4)).toBeUndefined();
  });

  test.each([
    ["a shorter file", (path: string) => truncateSync(path, 32)],
    ["an empty file", (path: string) => truncateSync(path, 0)],
    ["a file of another length", (path: string) => truncateSync(path, 33)],
    ["a changed checksum", (path: string) => changeByte(path, -2)],
  ])("is absent after damage: %s", (_what, damage) => {
    using folder = temporaryFolder();
    const name = writeFilters(folder.path, 1, { keysMax: 100, keys: [5] });
    expect(isFilterFileSound(folder.path, name)).toBe(true);
    damage(`${folder.path}/${name}`);
    expect(openFilterFile(folder.path, name, undefined)).toBeUndefined();
    expect(isFilterFileSound(folder.path, name)).toBe(false);
  });

  test("lets every key of a damaged page pass, and no other one", () => {
    using folder = temporaryFolder();
    const keys = keysOf(20_000);
    const filter = createFilter(keys.length);
    for (const key of keys) filter.add(key);
    const name = writeFilters(folder.path, 1, { keysMax: keys.length, keys });
    const bytes = filterBytes(keys.length, 10);
    const pages = Math.ceil(bytes / 4_096);
    // The leading bits of a key choose its block: the second page has this share of all keys.
    const isOfPage = (key: number) => (Math.floor((key / 2 ** 40) * (bytes / 32)) * 32) >> 12 === 1;
    changeByte(`${folder.path}/${name}`, 4_096 + 9);
    const opened = openFilterFile(folder.path, name, undefined)?.keys;
    const others = keysOf(20_000, createRandom(seedOr(10)));
    expect(keys.filter((key) => opened?.has(key) !== true)).toEqual([]);
    expect(others.filter(isOfPage).filter((key) => opened?.has(key) !== true)).toEqual([]);
    expect(others.filter((key) => !isOfPage(key) && opened?.has(key) !== filter.has(key))).toEqual([]);
    expect([isFilterFileSound(folder.path, name), pages > 2]).toEqual([false, true]);
  });

  const allKeys = keysOf(4_000, createRandom(5));
  test.each([
    ["of ids", 4_096, "ids"],
    ["that both filters share", 3 * 4_096, "ids"],
    ["that both filters share", 3 * 4_096, "keys"],
    ["of keys", 4 * 4_096, "keys"],
  ] as const)("lets every key of a damaged page %s pass, in one test and in many", (_what, at, kind) => {
    using folder = temporaryFolder();
    const keys = createFilter(8_000);
    const ids = createIdFilter(5_600); // ends within a page
    for (const key of allKeys) for (const filter of [ids, keys]) filter.add(key);
    const name = writeFilters(folder.path, 1, { rows: 5_600, ids: allKeys, keysMax: 8_000, keys: allKeys });
    const path = `${folder.path}/${name}`;
    writeFileSync(path, readFileSync(path).fill(0, at, at + 4_096));
    const sought = soughtKeys(allKeys);
    for (const isRead of [false, true]) {
      const filters = openFilterFile(folder.path, name, 5_600);
      const filter = filters?.[kind];
      // Pages that were read before are known to be sound or damaged.
      if (isRead) for (const key of allKeys) for (const each of [filters?.ids, filters?.keys]) each?.has(key);
      expect(filter?.passing(sought).length).toBe(allKeys.length);
      expect(allKeys.filter((key) => filter?.has(key) !== true)).toEqual([]);
    }
    const others = keysOf(20_000, createRandom(seedOr(10)));
    const filter = openFilterFile(folder.path, name, 5_600)?.[kind];
    const passing = others.filter((key) => filter?.has(key));
    expect(filter?.passing(soughtKeys(others)).map((index) => others[index])).toEqual(passing);
    // All keys of the damaged page, and few others.
    const passingSound = others.filter({ ids, keys }[kind].has).length;
    expect(passing.length).toBeGreaterThan(passingSound + 1_000);
  });

  test("in a file is mapped by the runtime, which counts it, only when as many keys are tested as a batch has", () => {
    using folder = temporaryFolder();
    const name = writeFilters(folder.path, 1, { rows: allKeys.length, ids: allKeys, keysMax: 1 });
    // mapped-words.test.ts: the first mapping is not counted.
    const mappings = () => readFileSync("/proc/self/maps", "utf8").split(`/${name}\n`).length - 1;
    const ids = openFilterFile(folder.path, name, allKeys.length)?.ids;
    const few = soughtKeys(allKeys.slice(0, 1_023));
    expect([ids?.passing(few).length, mappings()]).toEqual([1_023, 1]);
    expect([ids?.passing(soughtKeys(allKeys)).length, mappings()]).toEqual([allKeys.length, 2]);
    expect([ids?.passing(soughtKeys(allKeys)).length, mappings()]).toEqual([allKeys.length, 2]);
  });

  test.each([
    ["half of it", (path: string) => truncateSync(path, statSync(path).size / 2)],
    ["nothing", (path: string) => truncateSync(path, 0)],
  ])("that was shortened to %s before a batch is tested lets no key be missed", (_what, shorten) => {
    using folder = temporaryFolder();
    const name = writeFilters(folder.path, 1, { rows: allKeys.length, ids: allKeys, keysMax: 1 });
    const ids = openFilterFile(folder.path, name, allKeys.length)?.ids;
    // The first page is read and sound; all others are as yet unread.
    expect(ids?.has(Math.min(...allKeys))).toBe(true);
    shorten(`${folder.path}/${name}`);
    const others = allKeys.filter((key) => key > 2 ** 39);
    expect(others.length).toBeGreaterThan(1_024);
    expect(ids?.passing(soughtKeys(others)).length).toBe(others.length);
    expect(openFilterFile(folder.path, name, allKeys.length)).toBeUndefined();
  });

  test("is written in pieces, and is then as one that is in memory", () => {
    using folder = temporaryFolder();
    const random = createRandom(seedOr(12));
    // 600 KB of ids, and 400 KB of keys that begin within a piece; some pieces have no key at all.
    const ids = keysOf(20_000, random).filter((key) => key < 2 ** 38 || key > 2 ** 39);
    const keys = keysOf(300_000, random);
    const inMemory = { ids: createIdFilter(250_001), keys: createFilter(keys.length) };
    for (const key of ids) inMemory.ids.add(key);
    for (const key of keys) inMemory.keys.add(key);
    const name = writeFilters(folder.path, 1, { rows: 250_001, ids, keysMax: keys.length, keys });
    expect(isFilterFileSound(folder.path, name)).toBe(true);
    const opened = openFilterFile(folder.path, name, 250_001);
    const sought = [...ids, ...keys, ...keysOf(100_000, random)];
    expect(opened?.ids?.passing(soughtKeys(sought))).toEqual(inMemory.ids.passing(soughtKeys(sought)));
    expect(opened?.keys.passing(soughtKeys(sought))).toEqual(inMemory.keys.passing(soughtKeys(sought)));
  });

  test("leaves no file when it is closed before its end", () => {
    using folder = temporaryFolder();
    const file = createFilterFile(folder.path, 1, { rows: 10, keysMax: 10 });
    file.addId(1);
    file.close();
    file.close();
    expect(readdirSync(folder.path)).toEqual([]);
  });

  test("has another name when it takes the place of a file, though its bytes are the same", () => {
    using folder = temporaryFolder();
    const made = (replaced: string | null) => createFilterFile(folder.path, 7, { rows: 1, keysMax: 1 }, replaced).end();
    const first = made(null);
    const second = made(first);
    const third = made(second);
    expect(new Set([first, second, third]).size).toBe(3);
    for (const name of [first, second, third]) expect(isFilterFileSound(folder.path, name)).toBe(true);
    expect(openFilterFile(folder.path, third, 1)?.ids?.has(1)).toBe(false);
    expect(made("7-0123456789012345")).toBe(second); // a name of an earlier release
  });

  test("is absent without its file, and files of other parts are removed", () => {
    using folder = temporaryFolder();
    expect(openFilterFile(folder.path, "1-0123456789abcdef", 1)).toBeUndefined();
    const names = [1, 2, 3].map((part) => writeFilters(folder.path, part, { keysMax: part }));
    removeOtherFilters(folder.path, new Set(names.slice(1, 2)));
    expect(readdirSync(folder.path)).toEqual(names.slice(1, 2));
    removeOtherFilters(`${folder.path}/none`, new Set());
  });

  test.each([
    ["/data/index.sqlite", "/data/index-filters"],
    ["index.sqlite", "index-filters"],
    ["/data/index", "/data/index-filters"],
  ])("of the index %s is in %s", (path, folder) => {
    expect(filterFolderOf(path)).toBe(folder);
  });
});
