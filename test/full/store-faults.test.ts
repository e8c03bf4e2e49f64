/**
 * Each call by which the index and the map of the content cache are written fails once, one after another: what was
 * acknowledged is stored, other changes are stored completely or not at all, and the next process opens the file.
 *
 * strace makes the n-th call of a thread fail; FAULTS sets how many places are tried of each kind, SEED which.
 * @module
 */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import { noColumns } from "../../src/store/index/index-types.ts";
import { openIndexWriter } from "../../src/store/index/index-writer.ts";
import { madeBytes } from "../chain/data-node.ts";
import { killedRoot, killedRootBytes, openKilledExtents } from "../store/extents/killed-roots.ts";
import { describeWith } from "../support/helpers.ts";
import { inspectIndex } from "../support/inspect-index.ts";
import { createRandom } from "../support/random.ts";
import { newSeed } from "../support/seed.ts";
import { strace, writeFaults } from "./write-faults.ts";

const { FAULTS = "4" } = process.env;
const faultsEach = Number(FAULTS);
/** Places that are always tried. */
const firstPlaces = 2;

type Lines = readonly string[];

/** A store whose faults are tried. */
type Store = Readonly<{
  name: string;
  /** The process that writes. */
  words: (folder: string, seed: number) => readonly string[];
  /** Holds what is left against what was said; throws what is wrong. */
  verify: (folder: string, said: Lines) => void | Promise<void>;
}>;

const blocks = 5;
const roots = 12;
const indexPath = (folder: string) => join(folder, "index.sqlite");

const stores: readonly Store[] = [
  {
    name: "the index",
    words: (folder, seed) => [childOf("index"), indexPath(folder), `${seed}`, `${blocks}`],
    verify: verifyIndex,
  },
  {
    name: "the content cache",
    words: (folder) => [childOf("extents"), folder, `${roots}`],
    verify: verifyCache,
  },
];

function childOf(store: string): string {
  return resolve(import.meta.dir, `../store/${store}/fault-child.ts`);
}

function verifyIndex(folder: string, said: Lines): void {
  openIndexWriter(indexPath(folder), { clock: systemClock }).close();
  expect(inspectIndex(indexPath(folder)).faults).toEqual([]);
  const reader = openIndexReader(indexPath(folder));
  const columns = noColumns;
  const rowsAt = (height: number) =>
    reader.count({ block: { min: height, max: height }, order: "asc", limit: 1, columns }, 1_000);
  const items = new Map<number, number>();
  for (const line of said.filter((each) => /^\d+ \d+$/.test(each))) {
    const [height = 0, added = 0] = line.split(" ").map(Number);
    items.set(height, Math.max(added, items.get(height) ?? 0));
  }
  const found = [...items].map(([height, added]) => [height, added, rowsAt(height)] as const);
  // Five transactions a block; its forty items are all stored, or none if none was acknowledged.
  const wrong = found.filter(([, added, rows]) => rows !== 45 && !(added === 0 && rows === 5));
  const last = Math.max(-1, ...items.keys());
  const tip = reader.tip()?.height ?? -1;
  reader.close();
  expect({ wrong, isTipThere: tip >= last }).toEqual({ wrong: [], isTipThere: true });
}

async function verifyCache(folder: string, said: Lines): Promise<void> {
  const extents = openKilledExtents(folder);
  try {
    expect(extents.integrity()).toEqual([]);
    const lost = said.filter((line) => /^\d+$/.test(line)).filter((line) => !isThere(extents, Number(line)));
    expect(lost).toEqual([]);
    for (let number = 0; number < roots; number += 1) {
      const expected = madeBytes(number, killedRootBytes);
      for (let start = 0; start < killedRootBytes; start += 262_144) {
        const span = { start, end: Math.min(killedRootBytes, start + 262_144) };
        const bytes = await extents.read(killedRoot(number), span);
        if (bytes !== undefined) expect(Buffer.compare(bytes, expected.subarray(span.start, span.end))).toBe(0);
      }
    }
  } finally {
    await extents.close();
  }
}

function isThere(extents: ReturnType<typeof openKilledExtents>, number: number): boolean {
  return extents.present(killedRoot(number), { start: 0, end: killedRootBytes });
}

function work(words: readonly string[], log: string, options: readonly string[]) {
  const { stdout, exitCode } = Bun.spawnSync(
    ["strace", "-f", "-qq", "-o", log, ...options, process.execPath, ...words],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  return { said: stdout.toString().trim().split("\n"), exitCode };
}

/** Calls of these names that a run makes when nothing fails; the longest list of one thread. */
async function countCalls(store: Store, seed: number, calls: string): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "cairn-faults-"));
  const log = join(folder, "log");
  const { said, exitCode } = work(store.words(folder, seed), log, ["-e", `trace=${calls}`]);
  expect([exitCode, said.includes("failed"), said.length > 5]).toEqual([0, false, true]);
  await store.verify(folder, said);
  const threads = new Map<string, number>();
  for (const line of (await Bun.file(log).text()).split("\n")) {
    const [, thread = ""] = /^(\d+) +\w+\(\d+/.exec(line) ?? [];
    if (thread !== "") threads.set(thread, (threads.get(thread) ?? 0) + 1);
  }
  rmSync(folder, { recursive: true });
  return Math.max(0, ...threads.values());
}

/** Lets the n-th call of each thread fail, and holds what is left against what was said. */
async function failAt(
  store: Store,
  seed: number,
  [calls, error, forGood]: (typeof writeFaults)[number],
  at: number,
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "cairn-faults-"));
  const when = forGood ? `${at}+` : `${at}`;
  const options = ["-e", `trace=${calls}`, "-e", `inject=${calls}:error=${error}:when=${when}`];
  const { said, exitCode } = work(store.words(folder, seed), join(folder, "log"), options);
  const where = `${store.name}: ${calls} ${error} when=${when} seed=${seed}`;
  if (exitCode !== 0) throw new Error(`${where}: ended with ${exitCode} after ${said.length} lines`);
  try {
    await store.verify(folder, said);
  } catch (cause) {
    throw new Error(`${where}: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
  rmSync(folder, { recursive: true });
  if (said[0] === "not opened") return "not opened";
  return said.includes("failed") ? "a step failed" : "no step failed";
}

describeWith(strace, "a fault of the disk", () => {
  test.each(stores.flatMap((store) => writeFaults.map((kind) => [store.name, ...kind, store] as const)))(
    "under %s, of %s, %s, for good: %p, loses no acknowledged change and leaves no partial one",
    async (_name, calls, error, forGood, store) => {
      const seed = newSeed();
      const random = createRandom(seed);
      const count = await countCalls(store, seed, calls);
      const places = new Set(
        Array.from({ length: Math.min(count, faultsEach) }, (_, index) =>
          index < firstPlaces || count <= faultsEach ? index + 1 : 1 + random.below(count),
        ),
      );
      const ends = new Map<string, number>();
      for (const at of places) {
        const end = await failAt(store, seed, [calls, error, forGood], at);
        ends.set(end, (ends.get(end) ?? 0) + 1);
      }
      const kind = `${store.name}, ${calls} ${error}${forGood ? " for good" : ""}`;
      console.log(`${kind}: ${places.size} of ${count} places`, Object.fromEntries(ends));
    },
    60_000 + faultsEach * 20_000,
  );
});
