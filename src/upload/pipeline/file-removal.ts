/**
 * Removes unneeded files of uploads: those of permanent or failed items, and the layouts of their bundles. The file
 * of one item is removed with the item, a segment with the last of its items.
 *
 * Each file is removed after a delay, for readers that have just found it. The removal of a segment is recorded
 * before it happens, so that no receipt promises bytes that a thread has just appended (`insertUpload`). Files that
 * remain after a crash are found at the next start.
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

export type Removal = Readonly<{
  /** Schedules a check of files that may be unneeded. @param files - Paths within the folder of uploads. */
  note: (files: readonly string[]) => void;
  /** Resolves when no check is scheduled; for tests. */
  idle: () => Promise<void>;
  close: () => Promise<void>;
}>;

export type RemovalParts = Readonly<{
  ledger: LedgerDatabase;
  /** The folder of uploads, as an absolute path. */
  folder: string;
  /** Called after a file was removed, or was found absent. */
  onGone: (file: string) => void;
  /** Delay of a removal after the end of the need for a file, or the last write to it. Milliseconds. */
  graceMs: number;
  clock: Clock;
  log: Log;
}>;

/** Wait before a retry. Milliseconds. */
const retryMs = 30_000;

/** Limit of the queue of checks. Files beyond it are found at the next start. */
const waitingMax = 100_000;

/** Lifetime of the record of a removed segment, far above the time from a write to its row. Milliseconds. */
const removedTtlMs = 24 * 60 * 60_000;

type Look = "gone" | "needed" | "later";

/**
 * Starts the removal with the files of an earlier run. No upload except multipart uploads may use the folder yet.
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
      const outcome = await look(parts, file);
      if (outcome === "later") add([file], clock() + graceMs);
      if (outcome === "gone") parts.onGone(file);
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
  await parts.ledger.write((tx) => tx.run("DELETE FROM removed_files WHERE at < ?", BigInt(clock() - removedTtlMs)));
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

/** Lists the unneeded files that exist before the first upload. */
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

/** Whether a file of parts has an item. Without an item the file belongs to the multipart uploads, which remove it. */
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
  log.debug("removed an unneeded file", { file });
  return "gone";
}

/** Time of the last write to a file, Unix milliseconds; `undefined` for a missing file. */
async function changeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if (isAbsence(error)) return undefined;
    throw error;
  }
}

/** Records a removal. @returns Whether the file is still unneeded. */
async function noteRemoved(tx: Tx, file: string, now: number): Promise<boolean> {
  if (await isNeeded(tx, file)) return false;
  await tx.run(
    "INSERT INTO removed_files (file, at) VALUES (?, ?) ON CONFLICT (file) DO NOTHING",
    ...[file, BigInt(now)],
  );
  return true;
}

/** Whether a file has an item that is not permanent, or is the layout of a bundle that is not permanent. */
async function isNeeded(tx: Tx, file: string): Promise<boolean> {
  if (file.startsWith(`${layoutFolder}/`)) return await isUnfinished(tx, file.slice(layoutFolder.length + 1));
  const waiting = await tx.get(
    "SELECT id FROM uploads WHERE file = ? AND bundle_id IS NULL AND failed_reason IS NULL LIMIT 1",
    file,
  );
  if (waiting !== undefined) return true;
  // A segment has thousands of items in a few bundles: one query for each bundle.
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
