/**
 * Indexes of manifests on disk: they resolve paths as the manifest does, survive restarts, are checked for damage,
 * and stay within their budget.
 *
 * `PATHS=1000000 KILLS=300 RUNS=2000` are the sizes that docs/evidence.md records.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import fc from "fast-check";
import { idFromBytes } from "../../../src/arweave/id.ts";
import { type Manifest, readManifest, resolvePath } from "../../../src/arweave/manifest.ts";
import { openManifestIndexes } from "../../../src/store/manifests/manifest-indexes.ts";
import { manifestText } from "../../support/manifest-text.ts";
import { createRecordingLog } from "../../support/recording-log.ts";
import { newSeed } from "../../support/seed.ts";
import { testKey } from "../../support/signers.ts";
import { temporaryFolder } from "../folder.ts";
import { buildInto } from "./manifest-index-fixture.ts";

const paths = Number(process.env["PATHS"] ?? 100_000);
const kills = Number(process.env["KILLS"] ?? 12);
const runs = Number(process.env["RUNS"] ?? 60);

const root = temporaryFolder();
afterAll(() => root[Symbol.dispose]());
let folders = 0;
const newFolder = () => join(root.path, String(++folders));

function open(folder: string, options: Readonly<{ bytesMax?: number; clock?: () => number }> = {}) {
  const { log, lines } = createRecordingLog();
  const indexes = openManifestIndexes({ folder, bytesMax: 2 ** 30, clock: Date.now, log, ...options });
  return { ...indexes, lines };
}

const key = (number: number, verified = true) => ({ id: idFromBytes(testKey(number)), verified });
const utf8 = (text: string) => new TextEncoder().encode(text);
const filesIn = (folder: string) =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((each) => each.isFile())
        .map((each) => join(each.parentPath, each.name))
    : [];

describe("M1: an index", () => {
  test("resolves every path as the manifest does, at any size", async () => {
    const name = fc.oneof(
      fc.string({ maxLength: 6 }),
      fc.constantFrom("a", "a/", "a/b", "a/b/", "a/index.html", "__proto__", "é", "\ud800", "x".repeat(5_000)),
    );
    const id = fc.integer({ min: 1, max: 200 }).map((number) => idFromBytes(testKey(number)));
    const manifest = fc.record({
      version: fc.constantFrom("0.1.0", "0.2.0"),
      entries: fc.array(fc.tuple(name, fc.option(id)), { maxLength: 400 }),
      index: fc.option(
        fc.oneof(
          name.map((path) => ({ path })),
          id.map((each) => ({ id: each })),
        ),
      ),
      fallback: fc.option(id),
      more: fc.array(name, { maxLength: 20 }),
    });
    const indexes = open(newFolder());
    await fc.assert(
      fc.asyncProperty(manifest, async ({ version, entries, index, fallback, more }) => {
        const fields = {
          manifest: "arweave/paths",
          version,
          index,
          fallback: fallback && { id: fallback },
          paths: Object.fromEntries(entries.map(([path, each]) => [path, { id: each }])),
        };
        const bytes = utf8(JSON.stringify(fields));
        expect(buildInto(indexes, key(1), bytes).kind).toBe("built");
        const whole = readManifest(bytes);
        for (const path of new Set(["", "/", ...more, ...entries.map(([each]) => each)]))
          expect([path, await indexes.lookUp(key(1), path)]).toMatchObject([
            path,
            { kind: "found", resolved: resolvePath(whole, path) },
          ]);
      }),
      { numRuns: runs, seed: newSeed() },
    );
    await indexes.close();
  });

  test(`of ${paths} paths finds each of them in a few pages of 4 KiB, and no other`, async () => {
    const indexes = open(newFolder());
    const bytes = manifestText(key(3).id, paths);
    const built = buildInto(indexes, key(2), bytes);
    expect(built).toEqual({ kind: "built", bytes: 4_096 * (1 + Math.ceil(paths / 85)) });
    const step = Math.max(1, Math.floor(paths / 1_000));
    const before = readCalls();
    let asked = 0;
    for (let at = 0; at < paths; at += step, asked += 1) {
      const response = await indexes.lookUp(key(2), `p/${at}.html`);
      if (response?.kind !== "found" || response.resolved?.id !== key(3).id) throw new Error(`p/${at}.html is lost`);
    }
    const bytesEach = (readCalls() - before) / asked;
    console.log(`${Math.round(bytesEach)} bytes read a look-up`);
    expect(bytesEach).toBeLessThan(64 * 2 ** 10);
    for (let at = 0; at < 100; at += 1)
      expect(await indexes.lookUp(key(2), `q/${at}.html`)).toMatchObject({
        kind: "found",
        resolved: undefined,
      });
    await indexes.close();
  });

  test("of an unreadable manifest states the reason, without reading the manifest again", async () => {
    const folder = newFolder();
    const indexes = open(folder);
    for (const text of ["{", "[".repeat(10 * 2 ** 20), "[]", '{"manifest":"arweave/paths"}', ""]) {
      expect(buildInto(indexes, key(1), utf8(text)).kind).toBe("built");
      const reason = (() => {
        try {
          return readManifest(utf8(text)) satisfies Manifest;
        } catch (error) {
          return (error as { context: { reason: string } }).context.reason;
        }
      })();
      expect(await open(folder).lookUp(key(1), "a")).toMatchObject({ kind: "unreadable", reason });
    }
    await indexes.close();
  });

  test("survives a restart and is counted", async () => {
    const folder = newFolder();
    const first = open(folder);
    for (const number of [1, 2, 3]) buildInto(first, key(number), manifestText(key(9).id, 5_000 * number));
    await first.close();
    const second = open(folder);
    await second.close(); // existing files were counted by then
    expect(second.stats()).toEqual({ ...first.stats(), count: 3 });
    expect(await second.lookUp(key(2), "p/9999.html")).toMatchObject({ resolved: { id: key(9).id } });
  });

  test("of unverified bytes is separate, and is built again after a minute", async () => {
    let now = 1_000_000;
    const indexes = open(newFolder(), { clock: () => now });
    buildInto(indexes, key(1, false), manifestText(key(5).id, 10), now);
    expect(await indexes.lookUp(key(1), "p/1.html")).toBeUndefined();
    expect(await indexes.lookUp(key(1, false), "p/1.html")).toMatchObject({ resolved: { id: key(5).id } });
    now += 60_001;
    expect(await indexes.lookUp(key(1, false), "p/1.html")).toBeUndefined();
    await indexes.close();
  });
});

/** Bytes that this process has read from files. */
function readCalls(): number {
  return Number(/rchar: (\d+)/.exec(readFileSync("/proc/self/io", "utf8"))?.[1]);
}

describe("M1: a damaged index", () => {
  const count = 1_000;
  const bytes = manifestText(key(8).id, count);
  const fileIn = (folder: string) => filesIn(folder)[0] ?? "";

  async function wrongResponses(folder: string): Promise<Readonly<{ wrong: number; absent: number }>> {
    const indexes = open(folder);
    let [wrong, absent] = [0, 0];
    // So many that every page is looked at, wherever its salt puts each path.
    for (let at = 0; at < count; at += 3) {
      const response = await indexes.lookUp(key(1), `p/${at}.html`);
      if (response === undefined) absent += 1;
      else if (response.kind !== "found" || response.resolved?.id !== key(8).id) wrong += 1;
    }
    await indexes.close();
    return { wrong, absent };
  }

  test.each(["flipped bit", "zeroes", "page of another place", "cut short", "empty", "folder", "another id"])(
    "by a %s is never believed, and is removed",
    async (kind) => {
      const folder = newFolder();
      buildInto(open(folder), key(1), bytes);
      const path = fileIn(folder);
      const whole = readFileSync(path);
      const places = kind === "flipped bit" ? [0, 9, 60, 120, 4_100, 4_200, whole.length - 2_000] : [1];
      for (const place of places) {
        const other = Buffer.from(whole);
        if (kind === "flipped bit") other[place] = (other[place] ?? 0) ^ 4;
        if (kind === "zeroes") other.fill(0, 4_096);
        if (kind === "page of another place") whole.copy(other, 4_096, 8_192, 12_288);
        writeFileSync(path, other);
        if (kind === "cut short") truncateSync(path, 4_096 + 100);
        if (kind === "empty") truncateSync(path, 0);
        if (kind === "folder") {
          rmSync(path);
          mkdirSync(path);
        }
        if (kind === "another id") {
          const elsewhere = newFolder();
          buildInto(open(elsewhere), key(2), bytes);
          writeFileSync(path, readFileSync(fileIn(elsewhere)));
        }
        const seen = await wrongResponses(folder);
        expect([kind, place, seen.wrong]).toEqual([kind, place, 0]);
        expect(seen.absent).toBeGreaterThan(0);
        expect(existsSync(path)).toBeFalse();
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, whole);
        expect(await wrongResponses(folder)).toEqual({ wrong: 0, absent: 0 });
      }
    },
  );

  test("with any one byte changed returns the right result or none", async () => {
    const folder = newFolder();
    const few = manifestText(key(8).id, 30);
    buildInto(open(folder), key(1), few);
    const path = fileIn(folder);
    const whole = readFileSync(path);
    const indexes = open(folder);
    for (let place = 0; place < whole.length; place += 7) {
      const other = Buffer.from(whole);
      other[place] = (other[place] ?? 0) ^ 0x10;
      writeFileSync(path, other);
      const response = await indexes.lookUp(key(1), "p/7.html");
      if (response !== undefined) expect(response).toMatchObject({ kind: "found", resolved: { id: key(8).id } });
    }
    await indexes.close();
  });
});

describe("M1: the folder of indexes", () => {
  test("evicts the least recently used ones, and always stores the newest one", async () => {
    const folder = newFolder();
    const indexes = open(folder, { bytesMax: 4 * 64 * 2 ** 10 });
    for (const number of [1, 2, 3, 4]) buildInto(indexes, key(number), manifestText(key(9).id, 10));
    await indexes.lookUp(key(1), "p/1.html");
    buildInto(indexes, key(5), manifestText(key(9).id, 10));
    const stored = async () =>
      (
        await Promise.all([1, 2, 3, 4, 5].map(async (each) => ((await indexes.lookUp(key(each), "")) ? each : 0)))
      ).filter(Boolean);
    expect(await stored()).toEqual([1, 3, 4, 5]);
    buildInto(indexes, key(2), manifestText(key(9).id, 30_000));
    expect(await stored()).toEqual([2]);
    expect([indexes.stats().count, filesIn(folder).length]).toEqual([1, 1]);
    await indexes.close();
  });

  test("evicts in order of use also after a restart", async () => {
    const folder = newFolder();
    const first = open(folder);
    for (const number of [1, 2, 3]) buildInto(first, key(number), manifestText(key(9).id, 10));
    await first.close();
    const hour = 3_600_000;
    for (const [number, age] of [
      [1, 1],
      [2, 3],
      [3, 2],
    ] as const) {
      const time = (Date.now() - age * hour) / 1_000;
      utimesSync(first.place(key(number)).path, time, time);
    }
    const second = open(folder, { bytesMax: 2 * 64 * 2 ** 10 });
    await second.close();
    expect(filesIn(folder).toSorted()).toEqual([1, 3].map((each) => first.place(key(each)).path).toSorted());
  });

  test(`has only complete indexes, whenever the process that builds them is killed (${kills} times)`, async () => {
    const seed = newSeed();
    const folder = newFolder();
    const expected = idFromBytes(testKey(0));
    for (let kill = 0; kill < kills; kill += 1) {
      const child = startChild(folder, 0, 3);
      await child.ready;
      await Bun.sleep((seed * (kill + 1) * 7_919) % 60);
      await child.kill();
      const indexes = open(folder);
      await indexes.close();
      expect(filesIn(folder).filter((path) => path.endsWith(".part"))).toEqual([]);
      const response = await indexes.lookUp({ id: expected, verified: true }, "m0/1999.html");
      if (response !== undefined) expect(response).toMatchObject({ resolved: { id: expected } });
      expect(indexes.lines).toEqual([]);
    }
  }, 120_000);

  test("can be shared by two processes that build and look up the same manifests", async () => {
    const folder = newFolder();
    const children = [startChild(folder, 0, 2), startChild(folder, 0, 2)];
    for (const child of children) await child.ready;
    const indexes = open(folder);
    const [one, two] = [0, 1].map((each) => ({ id: idFromBytes(testKey(each)), verified: true }));
    if (one === undefined || two === undefined) throw new Error("there are two");
    let found = 0;
    for (let round = 0; round < 400; round += 1) {
      if (round % 10 === 0) buildInto(indexes, one, manifestText(one.id, 2_000, "m0"));
      for (const [at, each] of [one, two].entries()) {
        const response = await indexes.lookUp(each, `m${at}/${round}.html`);
        if (response === undefined) continue;
        found += 1;
        expect(response).toMatchObject({ resolved: { id: each.id } });
      }
    }
    for (const child of children) await child.kill();
    expect(found).toBeGreaterThan(400);
    expect(indexes.lines).toEqual([]);
    await indexes.close();
  }, 60_000);
});

function startChild(folder: string, first: number, count: number) {
  const child = Bun.spawn(
    [process.execPath, resolve(import.meta.dir, "index-child.ts"), folder, String(first), String(count)],
    { stdout: "pipe", stderr: "inherit", stdin: "ignore" },
  );
  const reader = child.stdout.getReader();
  return {
    ready: reader.read(),
    kill: async () => {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
