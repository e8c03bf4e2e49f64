/**
 * `cairn restore`: writes a backup to an empty data folder, and compares each file with its hash in the record.
 *
 * The record of the databases comes first and the databases last: a program that is started on a folder whose restore
 * ended early does not start, because a recorded database is missing. The journal of the index gets a new name, so that
 * clients with a position after the backup read everything again.
 * @module
 */
import { readdirSync, rmSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { exitCodes, misuse } from "../../app/complaints.ts";
import { dataFolderAt, takeFolder } from "../../app/data-folder.ts";
import type { Config } from "../../config/settings.ts";
import { systemClock } from "../../lib/clock.ts";
import { createClosers } from "../../lib/closers.ts";
import { jsonText, printable } from "../../lib/printable.ts";
import { bytesText, countText, durationText } from "../../lib/quantity-text.ts";
import { syncFolder } from "../../store/durable-file.ts";
import { renameJournal } from "../../store/index/journal/journal.ts";
import { print } from "../print.ts";
import { createBar, errorScreen, rowsText } from "../terminal.ts";
import { type BackupFile, readBackupRecord } from "./backup-record.ts";
import { copyHashed } from "./hashed-copy.ts";

export type RestoreOptions = Readonly<{
  /** Folder of the backup. */
  source: string;
  json: boolean;
}>;

/** Restores a backup and prints its size. @returns The exit code. @throws Misuse when the folder or backup is unfit. */
export async function runRestore(config: Config, { source, json }: RestoreOptions): Promise<number> {
  const startedAt = systemClock();
  const from = resolve(source);
  const record = readBackupRecord(from);
  checkSizes(from, record.files);
  checkEmpty(dataFolderAt(config.DATA_DIR).root);
  const closers = createClosers((name, error) => process.stderr.write(`${name} could not be closed: ${error}\n`));
  const bar = createBar(errorScreen(), systemClock);
  try {
    const folder = takeFolder(config, closers);
    const bytes = record.files.reduce((sum, { size }) => sum + size, 0);
    await checkSpace(folder.root, bytes);
    let done = 0;
    for (const file of inOrder(record.files)) {
      const copied = await copyHashed(from, folder.root, file.path, (read) => {
        done += read;
        bar.show(bytes === 0 ? 1 : done / bytes, `restored ${bytesText(done)} of ${bytesText(bytes)}`);
      });
      if (copied.sha256 === file.sha256) continue;
      rmSync(join(folder.root, file.path));
      throw misuse(`${printable(join(from, file.path))} is damaged: its hash differs`);
    }
    if (record.files.some(({ path }) => join(folder.root, path) === folder.index)) renameJournal(folder.index);
    for (const made of new Set(record.files.map(({ path }) => dirname(join(folder.root, path))))) syncFolder(made);
    bar.end();
    const { length: files } = record.files;
    const ms = systemClock() - startedAt;
    const { at, program, ledger } = record;
    if (json) print(`${jsonText({ folder: folder.root, files, bytes, at, program, ledger, ms })}\n`);
    else
      print(
        rowsText(
          [
            ["restored", folder.root],
            ["size", `${bytesText(bytes)} in ${countText(files, "file")}, ${durationText(ms)}`],
            ["made", `${at}, by version ${program}`],
            ...(ledger === "file" ? [] : [["without", "the ledger on PostgreSQL: restore its dump"] as const]),
          ],
          8,
        ),
      );
    return exitCodes.done;
  } finally {
    bar.end();
    await closers.closeAll();
  }
}

/** @throws Misuse when a file of the backup is absent or has another size. */
function checkSizes(from: string, files: readonly BackupFile[]): void {
  for (const { path, size } of files) {
    const found = statSync(join(from, path), { throwIfNoEntry: false })?.size;
    if (found === size) continue;
    const what = found === undefined ? "is missing" : `has ${found} bytes instead of ${size}`;
    throw misuse(`${printable(join(from, path))} ${what}: the backup is damaged`);
  }
}

/** @throws Misuse when the data folder has anything but a lock. */
function checkEmpty(root: string): void {
  const found = statSync(root, { throwIfNoEntry: false });
  if (found === undefined) return;
  const names = found.isDirectory() ? readdirSync(root).filter((name) => !name.startsWith("lock.sqlite")) : [root];
  if (names.length > 0) throw misuse(`DATA_DIR ${root} is not empty: restore to an empty folder`);
}

async function checkSpace(root: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(root);
  if (bavail * bsize >= bytes) return;
  throw misuse(`DATA_DIR ${root} has ${bytesText(bavail * bsize)} free; the backup takes ${bytesText(bytes)}`);
}

/** The record of databases, the files, the databases. */
function inOrder(files: readonly BackupFile[]): readonly BackupFile[] {
  const rank = ({ path }: BackupFile) => (path === "databases.json" ? 0 : path.endsWith(".sqlite") ? 2 : 1);
  return files.toSorted((a, b) => rank(a) - rank(b));
}
