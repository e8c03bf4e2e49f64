/**
 * N2: the commands of snapshots, killed at any moment or given a full disk, are completed by the same command: each
 * file is uploaded once, and each item is listed once.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, mkdirSync, readdirSync, readFileSync, realpathSync, statfsSync } from "node:fs";
import { join, relative } from "node:path";
import { openDuckdbStore } from "../../src/columnar/duckdb-store.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import { allColumns } from "../../src/store/index/index-types.ts";
import { complaintsIn, runCairn } from "../cli/command.ts";
import { readTable } from "../columnar/read-parquet.ts";
import { createTextPages } from "../columnar/text-pages.ts";
import { temporaryFolder } from "../store/folder.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { createRandom } from "../support/random.ts";
import { newSeed } from "../support/seed.ts";
import { canMount, enlargeDisk, withDisk } from "../support/small-disk.ts";
import { eventually } from "../support/until.ts";

const kills = Number(process.env["KILLS"] ?? 4);
const seed = newSeed();
const random = createRandom(seed);

const place = temporaryFolder();
const history = join(place.path, "history");
let program: RunningProgram;
let manifest = "";
let expected: string[];

beforeAll(async () => {
  program = await startDev();
  await fetch(`${program.line.node}/mine/30`, { method: "POST" });
  await eventually(
    async () => (await run(program.folder, ["export", history, "--partition", "10", "--items-only"])).code,
    (code) => code === 0,
  );
  const items = (await readTable(history, "transactions")).filter((row) => row["is_data_item"] === true);
  expected = items.map((row) => Buffer.from(row["id"] as Uint8Array).toString("base64url"));
  expect(expected.length).toBeGreaterThan(5);
}, 120_000);
afterAll(async () => {
  await program.remove();
  place[Symbol.dispose]();
});

/** Runs a command, and kills it so long after its start. Milliseconds. */
async function run(dataFolder: string, words: readonly string[], killAfterMs?: number, environment = {}) {
  let timer: Timer | undefined;
  const ran = await runCairn(words, {
    environment: { DATA_DIR: dataFolder, COLUMNAR_STORE: "duckdb", ...environment },
    cwd: place.path,
    onStart: (child) => {
      if (killAfterMs !== undefined) timer = setTimeout(() => child.kill("SIGKILL"), killAfterMs);
    },
  });
  clearTimeout(timer);
  return { ...ran, err: complaintsIn(ran.err) };
}

/** Data items that the program has indexed. */
async function dataItemCount(): Promise<number> {
  const headers = { authorization: `Bearer ${program.line.adminKey}` };
  const response = await fetch(`${program.line.gateway}/svc/admin/debug`, { headers });
  return (await response.json()).db.counts.dataItems;
}

const fetchWords = () => ["snapshot", "fetch", manifest, "--gateway", program.line.gateway];

/** The sentence of a command that a full disk has ended. */
const fullDisk = /^(cairn: )?(ENOSPC: no space left on device.*|.*database or disk is full.*)\n$/i;

function incompleteFiles(folder: string): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return names.filter((name) => name.endsWith(".part"));
}

/** Every item of the export is listed once, and no file is incomplete. */
async function expectAll(data: string): Promise<void> {
  const folder = realpathSync(join(data, "columnar"));
  expect({ seed, parts: incompleteFiles(folder) }).toEqual({ seed, parts: [] });
  const reader = openIndexReader(join(data, "index.sqlite"));
  const store = await openDuckdbStore({ folder, libraryFolder: place.path });
  const { signal } = new AbortController();
  const plan = { order: "asc", limit: 100_000, columns: allColumns } as const;
  const { rows } = await createTextPages(reader, store, () => signal).page(plan);
  expect({ seed, ids: rows.map(({ id }) => String(id)) }).toEqual({ seed, ids: expected });
  expect({ seed, count: reader.counts().storedItems }).toEqual({ seed, count: expected.length });
  await store.close();
  reader.close();
}

test(
  `N2: ${kills} kills of snapshot publish`,
  async () => {
    const before = await dataItemCount();
    const words = ["snapshot", "publish", history, "--to", program.line.upload, "--yes", "--json"];
    for (let kill = 0; kill < kills; kill += 1) await run(program.folder, words, 300 + random.below(1_500));
    const published = await run(program.folder, words);
    expect({ seed, code: published.code, err: published.err }).toEqual({ seed, code: 0, err: "" });
    manifest = JSON.parse(published.out).manifest.id;
    const again = await run(program.folder, words);
    expect({ seed, manifest: JSON.parse(again.out).manifest.id }).toEqual({ seed, manifest });
    const { paths } = await (await fetch(`${program.line.gateway}/raw/${manifest}`)).json();
    const ids = new Set(Object.values(paths as Record<string, { id: string }>).map(({ id }) => id));
    await eventually(
      async () => {
        await fetch(`${program.line.node}/mine`, { method: "POST" });
        return (await fetch(`${program.line.gateway}/svc/proof/${manifest}`)).json();
      },
      ({ block }) => block !== undefined && block !== null,
    );
    expect({ seed, count: await dataItemCount() }).toEqual({ seed, count: before + ids.size + 1 });
  },
  120_000 + kills * 10_000,
);

test(
  `N2: ${kills} kills of snapshot fetch`,
  async () => {
    let data = "";
    let completed = true;
    for (let kill = 0; kill < kills; kill += 1) {
      if (completed) data = join(place.path, `fetched-${kill}`);
      mkdirSync(data, { recursive: true });
      completed = (await run(data, fetchWords(), 200 + random.below(1_300))).code === 0;
      if (completed) await expectAll(data);
    }
    expect(await run(data, fetchWords())).toMatchObject({ code: 0, err: "" });
    await expectAll(data);
  },
  120_000 + kills * 10_000,
);

test.skipIf(!canMount()).each([0.3, 0.7, 0.9])(
  "a fetch to a disk of %d times the size that it needs fails in one sentence, and is continued",
  async (share) => {
    const disk = join(place.path, "disk");
    let needed = 0;
    await withDisk(disk, 200_000, async () => {
      expect(await run(disk, fetchWords())).toMatchObject({ code: 0, err: "" });
      const { blocks, bfree, bsize } = statfsSync(disk);
      needed = ((blocks - bfree) * bsize) / 1_024;
    });
    await withDisk(disk, Math.floor(needed * share), async () => {
      const { code, out, err } = await run(disk, fetchWords());
      expect([code, out]).toEqual([1, ""]);
      expect(err).toMatch(fullDisk);
      expect(incompleteFiles(disk)).toEqual([]);
      enlargeDisk(disk);
      expect(await run(disk, fetchWords())).toMatchObject({ code: 0, err: "" });
      await expectAll(disk);
    });
  },
  60_000,
);

test.skipIf(!canMount()).each([0, 0.3, 0.6, 0.9])(
  "a publish from a disk with %d times the free space that it needs fails in one sentence, and is continued",
  async (share) => {
    const disk = join(place.path, "disk");
    const folder = join(disk, "history");
    const words = ["snapshot", "publish", folder, "--to", program.line.upload, "--yes", "--json"];
    // The description and the receipts are written to the disk; the export is there already.
    const publish = () => run(program.folder, words, undefined, { XDG_STATE_HOME: disk });
    const used = () => {
      const { blocks, bfree, bsize } = statfsSync(disk);
      return ((blocks - bfree) * bsize) / 1_024;
    };
    let before = 0;
    let needed = 0;
    await withDisk(disk, 200_000, async () => {
      copyExport(folder);
      before = used();
      expect(await publish()).toMatchObject({ code: 0, err: "" });
      needed = used() - before;
    });
    await withDisk(disk, before + Math.floor(needed * share), async () => {
      copyExport(folder);
      const { code, out, err } = await publish();
      expect({ code, out, err }).toEqual({ code: 1, out: "", err: expect.stringMatching(fullDisk) });
      expect(incompleteFiles(disk)).toEqual([]);
      enlargeDisk(disk);
      const published = await publish();
      expect(published).toMatchObject({ code: 0, err: "" });
      const { paths } = await (
        await fetch(`${program.line.gateway}/raw/${JSON.parse(published.out).manifest.id}`)
      ).json();
      const files = readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && !entry.name.startsWith("."))
        .map(({ parentPath, name }) => relative(folder, join(parentPath, name)));
      expect(Object.keys(paths).toSorted()).toEqual(files.toSorted());
      const description = await fetch(`${program.line.gateway}/raw/${paths["snapshot.json"].id}`);
      expect(await description.text()).toBe(readFileSync(join(folder, "snapshot.json"), "utf8"));
    });
  },
  60_000,
);

/** Copies the export, without the description that an earlier publish has written. */
function copyExport(folder: string): void {
  cpSync(history, folder, { recursive: true, filter: (path) => !path.endsWith("snapshot.json") });
}
