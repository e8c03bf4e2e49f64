/**
 * Removing files of uploads that nobody needs any more: those of items that are on the chain for good, or have failed,
 * and the layouts of their bundles. A file of one item goes with it, a segment with the last of its items.
 *
 * A file stays for a while after it is left, for those who found it just before. That a segment was removed is written
 * down first: what a thread appended to it a moment earlier is then not promised to anyone (`insertUpload`). What a
 * crash left behind is found at the next start.
 * Source: docs/reference/upload.md#files.
 * @module
 */
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { openBackgroundLoop } from "../../lib/loop.ts";
import type { LedgerDatabase, Tx } from "../../store/ledger/ledger-database.ts";
import { layoutFolder } from "../../store/uploads/bundle-layout.ts";
import { itemFolder, segmentFolder } from "../../store/uploads/item-files.ts";
import { partFolder } from "../../store/uploads/part-files.ts";

/** Removes files, at work. */
export type Removal = Readonly<{
  /** Says that files may not be needed any more; names below the folder of uploads. */
  note: (files: readonly string[]) => void;
  /** Resolves when nothing is left to do; for tests. */
  idle: () => Promise<void>;
  close: () => Promise<void>;
}>;

/** What it is made of. */
export type RemovalParts = Readonly<{
  ledger: LedgerDatabase;
  /** That of uploads, as an absolute path. */
  folder: string;
  /** How long a file stays after it was left, or written to. Milliseconds. */
  graceMs: number;
  clock: Clock;
  log: Log;
}>;

/** After a failure the next try waits so long. Milliseconds. */
const retryMs = 30_000;

/** Files that wait to be looked at; those beyond are found at the next start. */
const waitingMax = 100_000;

/** That a segment was removed is of interest while something that was written to it may be on its way. Milliseconds. */
const rememberedMs = 24 * 60 * 60_000;

/** What became of a file that was looked at. */
type Look = "gone" | "needed" | "later";

/**
 * Starts it, with what an earlier run left behind. Nothing may be under way in the folder yet but uploads in parts.
 *
 * Rejects when the folder cannot be read.
 */
export async function openRemoval(parts: RemovalParts): Promise<Removal> {
  const { graceMs, clock, log } = parts;
  /** The time at which each file is to be checked, Unix milliseconds. Ordered by time. */
  const waiting = new Map<string, number>();
  let isWorking = false;

  function add(files: readonly string[], at: number): void {
    for (const file of files.slice(0, waitingMax - waiting.size)) {
      waiting.delete(file);
      waiting.set(file, at);
    }
  }

  async function lookAt(file: string): Promise<void> {
    waiting.delete(file);
    try {
      if ((await look(parts, file)) === "later") add([file], clock() + graceMs);
    } catch (error) {
      log.error("an unneeded file could not be removed", { file, error });
      add([file], clock() + retryMs);
    }
  }

  async function removeDue(signal: AbortSignal): Promise<number> {
    while (!signal.aborted) {
      const [next] = waiting;
      isWorking = next !== undefined && next[1] <= clock();
      if (next === undefined) return idleMs;
      if (!isWorking) return Math.min(idleMs, next[1] - clock());
      await lookAt(next[0]);
    }
    return idleMs;
  }

  add(await leftBehind(parts), clock());
  await parts.ledger.write((tx) => tx.run("DELETE FROM removed_files WHERE at < ?", BigInt(clock() - rememberedMs)));
  const loop = openBackgroundLoop("file removal", removeDue, (error) => {
    log.error("unneeded files could not be removed", { error });
    return retryMs;
  });
  return {
    note: (files) => {
      add(files, clock() + graceMs);
      loop.wake();
    },
    idle: async () => {
      while (waiting.size > 0 || isWorking) await Bun.sleep(idlePollMs);
    },
    close: loop.close,
  };
}

const idleMs = 60_000;
const idlePollMs = 5;

/** Files that nobody needs, of those that are there before anything is taken in. */
async function leftBehind({ ledger, folder }: RemovalParts): Promise<string[]> {
  const found: string[] = [];
  for (const kind of [segmentFolder, itemFolder, partFolder, layoutFolder])
    for (const name of await namesIn(join(folder, kind))) {
      const file = `${kind}/${name}`;
      const isLeft = kind === partFolder ? await wasItem(ledger, file) : true;
      if (isLeft && !(await ledger.read((tx) => isNeeded(tx, file)))) found.push(file);
    }
  return found;
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isAbsence(error)) return [];
    throw error;
  }
}

/** A file of parts without an item belongs to the multipart uploads: it is not removed here. */
async function wasItem(ledger: LedgerDatabase, file: string): Promise<boolean> {
  const row = await ledger.read((tx) => tx.get("SELECT id FROM uploads WHERE file = ? LIMIT 1", file));
  return row !== undefined;
}

async function look({ ledger, folder, graceMs, clock, log }: RemovalParts, file: string): Promise<Look> {
  const path = join(folder, file);
  const now = clock();
  if (await ledger.read((tx) => isNeeded(tx, file))) return "needed";
  if (file.startsWith(segmentFolder)) {
    const changedAt = await changeOf(path);
    if (changedAt === undefined) return "gone";
    if (now - changedAt < graceMs) return "later";
    if (!(await ledger.write((tx) => noteRemoved(tx, file, now)))) return "needed";
  }
  await rm(path, { force: true });
  log.debug("a file that nobody needs was removed", { file });
  return "gone";
}

/** When a file was written to last, Unix milliseconds; `undefined` for none. */
async function changeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if (isAbsence(error)) return undefined;
    throw error;
  }
}

/** @returns Whether it is still so that nobody needs it. */
async function noteRemoved(tx: Tx, file: string, now: number): Promise<boolean> {
  if (await isNeeded(tx, file)) return false;
  await tx.run(
    "INSERT INTO removed_files (file, at) VALUES (?, ?) ON CONFLICT (file) DO NOTHING",
    ...[file, BigInt(now)],
  );
  return true;
}

/** Whether a file is one of an item that is not on the chain for good, or the layout of a bundle that is not. */
async function isNeeded(tx: Tx, file: string): Promise<boolean> {
  if (file.startsWith(`${layoutFolder}/`)) return await isUnfinished(tx, file.slice(layoutFolder.length + 1));
  const waiting = await tx.get(
    "SELECT id FROM uploads WHERE file = ? AND bundle_id IS NULL AND failed_reason IS NULL LIMIT 1",
    file,
  );
  if (waiting !== undefined) return true;
  // A segment has thousands of items in a few bundles: one step of the index a bundle.
  for (let bundleId = ""; ; ) {
    const next = await tx.get<{ bundle_id: string }>(
      "SELECT bundle_id FROM uploads WHERE file = ? AND failed_reason IS NULL AND bundle_id > ? " +
        "ORDER BY bundle_id LIMIT 1",
      ...[file, bundleId],
    );
    if (next === undefined) return false;
    if (await isUnfinished(tx, next.bundle_id)) return true;
    bundleId = next.bundle_id;
  }
}

async function isUnfinished(tx: Tx, bundleId: string): Promise<boolean> {
  const row = await tx.get<{ state: string }>("SELECT state FROM bundles WHERE id = ?", bundleId);
  return row !== undefined && row.state !== "permanent" && row.state !== "dropped";
}

function isAbsence(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
