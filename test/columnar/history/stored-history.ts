/**
 * A long history from its bundles to a pruned index: followed, exported, imported into a columnar store by the commands
 * of README, and pruned. Every page of ten query shapes has the same rows before and after, and every file has the rows
 * of the index for two readers.
 * @module
 */
import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { ColumnStore } from "../../../src/columnar/column-store.ts";
import { openDuckdbStore } from "../../../src/columnar/duckdb-store.ts";
import { exportTables } from "../../../src/columnar/export-tables.ts";
import { readPartition, writtenPartitions } from "../../../src/columnar/partition.ts";
import { complaintsIn } from "../../cli/command.ts";
import { temporaryFolder } from "../../store/folder.ts";
import { programPorts, type RunningProgram, repositoryRoot, startDev } from "../../support/program.ts";
import { eventually } from "../../support/until.ts";
import { rowsOfFiles, rowsOfStore } from "../exported-chain.ts";
import { rowsOfIndex } from "./index-rows.ts";
import { type LongChain, postLongChain } from "./long-chain.ts";
import { firstDifference, queryShapes, walkShapes } from "./page-walks.ts";

/** Time for each item on a busy machine. */
const itemMs = 20;

/** Heights of a partition: a chain has several, and the store not all of its heights. */
const partitionHeights = 9;

/** Free pages of a database after pruning at most: the others were returned to the file system. */
const freePagesLeft = 16;

/** What to check. */
export type HistoryCheck = Readonly<{
  items: number;
  seed: number;
  /** Settings of the store. */
  store: Readonly<Record<string, string>>;
  /** Opens the store of the settings beside the program; unset for DuckDB, whose files are compared in any case. */
  openStore?: () => Promise<ColumnStore>;
}>;

/** Long enough for a check. Milliseconds. */
export function checkTimeoutMs(items: number): number {
  return 240_000 + items * itemMs;
}

/** Runs the check, and prints its totals. */
export async function checkStoredHistory({ items, seed, store, openStore }: HistoryCheck): Promise<void> {
  using work = temporaryFolder();
  const laps = createLaps();
  const ports = programPorts();
  let program = await startDev({ ports });
  const { folder } = program;
  try {
    const chain = await postLongChain(program.line, seed, items);
    laps.end("posted");
    await indexed(program, chain);
    laps.end("indexed");
    const shapes = await queryShapes(program.line.gateway, chain);
    const walk = async (name: string) => {
      const rows = await walkShapes(program.line.gateway, shapes, join(work.path, name));
      laps.end(name);
      return rows;
    };
    const rows = await walk("walked");
    for (const [name, count] of Object.entries(rows)) expect([name, count > 0]).toEqual([name, true]);

    expect(await program.stop()).toBe(0);
    const history = join(work.path, "history");
    await cairn(folder, store, "export", history, "--partition", `${partitionHeights}`);
    laps.end("exported");
    const files = await compareFiles(history, indexOf(folder), work.path);
    laps.end("compared files");
    await cairn(folder, store, "import", history);
    laps.end("imported");
    if (openStore !== undefined) await compareStore(await openStore(), history, indexOf(folder));

    const same = async (name: string) => {
      expect(await walk(name)).toEqual(rows);
      expect(await firstDifference(shapes, join(work.path, "walked"), join(work.path, name))).toBe(undefined);
    };
    const before = sizesOf(indexOf(folder));
    program = await startDev({ ports, folder, environment: store });
    await same("walked with the store");
    await prune(program);
    laps.end("pruned");
    // Of an item that is in several bundles, the next place remains in the index; no query lists it.
    expect((await counts(program)).dataItems).toBe(chain.recentItems + chain.repeatedItems);
    await same("walked pruned");
    await readSample(program, chain);
    expect(await program.stop()).toBe(0);
    const pruned = sizesOf(indexOf(folder));
    console.log(JSON.stringify({ items, seed, last: chain.last, files, rows, before, pruned, ...laps.seconds }));
    expect(pruned.items).toBeLessThan(before.items / 10);
    expect(pruned.freePages).toBeLessThanOrEqual(freePagesLeft);
    expect(pruned.bytes).toBeLessThan(before.bytes);
  } finally {
    await program.remove();
  }
}

/**
 * Sizes of an index: its file without the journal, which pruning does not shorten, the rows of items, and free pages.
 * What remains of a pruned item is about three quarters of its row, and ids move from the file to parts as they are
 * merged: how much shorter the file is depends on when.
 */
function sizesOf(path: string): Readonly<{ bytes: number; items: number; freePages: number }> {
  const db = new Database(path, { readonly: true });
  try {
    const table = db.query<{ bytes: number | null }, [string]>(
      "SELECT sum(pgsize) AS bytes FROM dbstat WHERE name = ?",
    );
    const bytesOf = (name: string) => table.get(name)?.bytes ?? 0;
    const free = db.query<{ freelist_count: number }, []>("PRAGMA freelist_count").get();
    return {
      bytes: statSync(path).size - bytesOf("changes"),
      items: bytesOf("items"),
      freePages: free?.freelist_count ?? Number.NaN,
    };
  } finally {
    db.close();
  }
}

function indexOf(folder: string): string {
  return join(folder, "index.sqlite");
}

/** Seconds of each part of a check. */
function createLaps() {
  const seconds: Record<string, number> = {};
  let startedAt = performance.now();
  return {
    seconds,
    end: (name: string) => {
      seconds[name] = Math.round((performance.now() - startedAt) / 100) / 10;
      startedAt = performance.now();
    },
  };
}

type ItemCounts = Readonly<{ dataItems: number; queuedBundles: number }>;

async function counts({ line }: RunningProgram): Promise<ItemCounts> {
  const headers = { authorization: `Bearer ${line.adminKey}` };
  return (await (await fetch(`${line.gateway}/svc/admin/debug`, { headers })).json()).db.counts;
}

async function indexed(program: RunningProgram, { items }: LongChain): Promise<void> {
  const isIndexed = ({ dataItems, queuedBundles }: ItemCounts) => dataItems >= items && queuedBundles === 0;
  await eventually(() => counts(program), isIndexed, 60_000 + items * itemMs);
}

/** Runs a command on a data folder, as a user does. */
async function cairn(folder: string, settings: Readonly<Record<string, string>>, ...words: string[]): Promise<void> {
  const child = Bun.spawn([process.execPath, resolve(repositoryRoot, "src/main.ts"), ...words], {
    env: { ...process.env, ...settings, DATA_DIR: folder },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [errors, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  expect([words[0], complaintsIn(errors), code]).toEqual([words[0], "", 0]);
}

/** Compares each file for two readers with the index. @returns The number of files. */
async function compareFiles(history: string, index: string, work: string): Promise<number> {
  const store = await openDuckdbStore({ folder: history, libraryFolder: work });
  let files = 0;
  for (const heights of writtenPartitions(history)) {
    const partition = readPartition(history, heights);
    files += partition.files.length;
    const expected = rowsOfIndex(index, heights);
    for (const table of exportTables)
      expectSame(`${table} of ${heights.start}`, expected[table], await rowsOfFiles(partition, table));
  }
  await compareStore(store, history, index);
  return files;
}

/** Compares the rows of a store with the index. Closes the store. */
async function compareStore(store: ColumnStore, history: string, index: string): Promise<void> {
  for (const heights of writtenPartitions(history)) {
    const expected = rowsOfIndex(index, heights);
    for (const table of exportTables)
      expectSame(
        `${store.kind}: ${table} of ${heights.start}`,
        expected[table],
        await rowsOfStore(store, table, heights),
      );
  }
  await store.close();
}

/** Prints the first difference only: a table may have a million rows. */
function expectSame(name: string, expected: readonly string[], found: readonly string[]): void {
  const at = expected.findIndex((row, index) => row !== found[index]);
  expect([name, found.length, found[at]]).toEqual([name, expected.length, expected[at]]);
}

/** Removes all items from the index that are final and in the store. */
async function prune({ line }: RunningProgram): Promise<void> {
  const response = await fetch(`${line.gateway}/svc/admin/prune-stable-data-items`, {
    method: "POST",
    headers: { authorization: `Bearer ${line.adminKey}`, "content-type": "application/json" },
    body: JSON.stringify({ indexedAtThreshold: 2_000_000_000, startHeight: 0, endHeight: 100_000 }),
  });
  expect([response.status, await response.json()]).toEqual([200, { message: "Stable data items pruned successfully" }]);
}

/** Pruned items are served by id. */
async function readSample({ line }: RunningProgram, { sample }: LongChain): Promise<void> {
  for (const { id, payload } of sample) {
    const response = await fetch(`${line.gateway}/raw/${id}`);
    expect([id, response.status, Buffer.from(await response.arrayBuffer())]).toEqual([id, 200, Buffer.from(payload)]);
  }
}
