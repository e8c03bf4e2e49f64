/**
 * `cairn backup`: copies a data folder to another folder, also beside the program that uses it, and checks the copy.
 *
 * Databases are copied at one moment each. The ledger is copied after the files of uploads, and the files that are new
 * or grew meanwhile are copied again: an item's bytes are on the disk before its row. A file that was removed in
 * between is found by the check, and the ledger is then copied anew. The chain of `cairn dev` comes last, as a chain
 * that continues after a backup does.
 * @module
 */
import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { mkdir, readdir, stat, statfs } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { exitCodes, misuse } from "../../app/complaints.ts";
import { type DataFolder, existingDataFolder, lockFolder } from "../../app/data-folder.ts";
import {
  type DatabaseRecord,
  type ExaminedDatabase,
  examineDatabases,
  type KnownDatabase,
  type RecordedDatabase,
  writeDatabaseRecord,
} from "../../app/databases.ts";
import type { Config } from "../../config/settings.ts";
import { systemClock } from "../../lib/clock.ts";
import { createClosers } from "../../lib/closers.ts";
import { jsonText, printable } from "../../lib/printable.ts";
import { bytesText, countText, durationText } from "../../lib/quantity-text.ts";
import { removeFolder } from "../../lib/remove-folder.ts";
import { readIdentity } from "../../store/database-identity.ts";
import { syncFolder } from "../../store/durable-file.ts";
import { checkLedger } from "../../store/ledger/ledger-check.ts";
import { isNewestLedger, openSqliteLedger } from "../../store/ledger/sqlite-ledger.ts";
import { checkIntegrity, closeDatabase, copyDatabase, openForReading } from "../../store/sqlite.ts";
import { storedStoreName } from "../../store/uploads/item-files.ts";
import { neededFiles } from "../../upload/upload-rows.ts";
import { print } from "../print.ts";
import { type Bar, createBar, errorScreen, rowsText } from "../terminal.ts";
import { type BackupFile, writeBackupRecord } from "./backup-record.ts";
import { copyHashed, hashFile } from "./hashed-copy.ts";

export type BackupOptions = Readonly<{
  /** Folder to write to; absent or empty. */
  target: string;
  /** Whether to copy what can be built again from the chain: the index and the files of the columnar store. */
  withIndex: boolean;
  json: boolean;
}>;

/** Most copies of the ledger, while files that it needs are removed. */
const attemptsMax = 5;

/** Page cache of an integrity check, bytes. */
const walkCacheBytes = 16 * 2 ** 20;

/** Most faults that are printed of one database. */
const faultsMax = 5;

/** Writes a backup and prints its size. @returns The exit code. @throws Misuse when it cannot be written or checked. */
export async function runBackup(config: Config, { target, withIndex, json }: BackupOptions): Promise<number> {
  const startedAt = systemClock();
  const folder = existingDataFolder(config.DATA_DIR);
  const to = checkTarget(folder, target);
  const closers = createClosers((name, error) => process.stderr.write(`${name} could not be closed: ${error}\n`));
  const bar = createBar(errorScreen(), systemClock);
  try {
    const unlock = lockFolder(folder);
    if (unlock === undefined) checkCopyable(folder, config);
    else closers.add("folder's lock", unlock);
    const databases = await soundDatabases(folder, config, withIndex);
    const total = await checkSpace(folder, to, databases, withIndex);
    await mkdir(to, { recursive: true, mode: 0o700 });
    const copy = createCopy(folder, to, { bar, total });
    const { at, ledger } = await copyAll(folder, copy, databases, withIndex);
    const files = await copy.check();
    writeBackupRecord(to, { at, ledger, files });
    bar.end();
    const bytes = files.reduce((sum, { size }) => sum + size, 0);
    printEnd({ to, files: files.length, bytes, ledger, hasIndex: withIndex, ms: systemClock() - startedAt }, json);
    return exitCodes.done;
  } catch (error) {
    bar.end();
    // Without its record it is not a backup; a later attempt needs an empty folder.
    for (const name of namesIn(to)) removeFolder(join(to, name));
    throw error;
  } finally {
    await closers.closeAll();
  }
}

/** @throws Misuse when the folder can be copied only while no program runs on it. */
function checkCopyable(folder: DataFolder, config: Config): void {
  if (existsSync(folder.devnet))
    throw misuse(`cairn dev runs on ${folder.root}, and its chain can be copied only while it is stopped`);
  if (config.LEDGER_URL !== undefined)
    throw misuse("the ledger is on PostgreSQL: stop the program, dump that database with pg_dump, and repeat this");
}

/** @returns The absolute path. @throws Misuse when it has files, or when one folder is within the other. */
function checkTarget(folder: DataFolder, target: string): string {
  const to = resolve(target);
  const isWithin = (path: string, outer: string) => !/^\.\.(\/|$)/.test(relative(outer, path));
  if (isWithin(to, folder.root) || isWithin(folder.root, to))
    throw misuse(`${printable(to)} and the data folder ${folder.root} must be apart`);
  const found = statSync(to, { throwIfNoEntry: false });
  if (found !== undefined && (!found.isDirectory() || namesIn(to).length > 0))
    throw misuse(`${printable(to)} is not an empty folder`);
  return to;
}

function namesIn(folder: string): readonly string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** The databases to copy, in this order. @throws Misuse when the program could not start on one of them. */
async function soundDatabases(folder: DataFolder, config: Config, withIndex: boolean): Promise<ExaminedDatabase[]> {
  // Also those of settings that this command was not given.
  const isThere = ({ isUsed, path }: KnownDatabase) => isUsed || existsSync(path);
  const { databases } = await examineDatabases(folder, config, isThere);
  const faults = databases.flatMap(({ finding }) => (finding?.outcome === "rejected" ? [finding.sentence] : []));
  if (faults.length > 0) throw misuse(faults.join("\n"));
  const isCopied = ({ known, found }: ExaminedDatabase) =>
    known.name === "index" ? withIndex && found.kind === "marked" : known.name !== "content" && found.kind !== "absent";
  // The index first: it may be older than the ledger, but not newer.
  return databases.filter(isCopied).sort((a, b) => Number(b.known.name === "index") - Number(a.known.name === "index"));
}

/** @returns The bytes to copy. @throws Misuse when the disk has less space. */
async function checkSpace(
  folder: DataFolder,
  to: string,
  databases: readonly ExaminedDatabase[],
  withIndex: boolean,
): Promise<number> {
  const paths = [...databases.map(({ known }) => known.path), folder.sandbox, ...foldersOf(folder, withIndex)];
  const sizes = await Promise.all(paths.map(sizeOf));
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const { bavail, bsize } = await statfs(existingParent(to));
  if (bavail * bsize < total)
    throw misuse(`${printable(to)} has ${bytesText(bavail * bsize)} free; the backup takes ${bytesText(total)}`);
  return total;
}

function foldersOf(folder: DataFolder, withIndex: boolean): readonly string[] {
  return [folder.uploads, folder.keys, ...(withIndex ? [folder.columnar] : []), folder.devnet];
}

function existingParent(path: string): string {
  return existsSync(path) ? path : existingParent(dirname(path));
}

async function sizeOf(path: string): Promise<number> {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return 0;
  if (!found.isDirectory()) return found.size;
  const files = await filesIn(path);
  return files.reduce((sum, file) => sum + (statSync(join(path, file), { throwIfNoEntry: false })?.size ?? 0), 0);
}

/** The files below a folder, as paths within it; none when it is absent. */
async function filesIn(folder: string): Promise<readonly string[]> {
  if (!existsSync(folder)) return [];
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}

/** The backup while it is written. */
type Copy = ReturnType<typeof createCopy>;

type Shown = Readonly<{ bar: Bar; total: number }>;

function createCopy(folder: DataFolder, to: string, { bar, total }: Shown) {
  const databases: string[] = [];
  const files = new Map<string, BackupFile & Readonly<{ changedAt: number }>>();
  let done = 0;
  const count = (verb: string) => (bytes: number) => {
    done += bytes;
    const share = total === 0 ? 1 : Math.min(1, done / total);
    bar.show(share, `${verb} ${bytesText(done)} of ${bytesText(total)}`);
  };

  async function file(path: string): Promise<void> {
    const from = join(folder.root, path);
    const before = await orAbsent(stat(from));
    const known = files.get(path);
    if (before === undefined || (known?.size === before.size && known.changedAt === before.mtimeMs)) return;
    const copied = await orAbsent(copyHashed(folder.root, to, path, count("copied")));
    if (copied !== undefined) files.set(path, { ...copied, changedAt: before.mtimeMs });
  }

  return {
    to,
    /** Copies a database of the folder. */
    database: async (path: string) => {
      const name = relative(folder.root, path);
      bar.show(0, `copying ${name}`);
      await mkdir(dirname(join(to, name)), { recursive: true, mode: 0o700 });
      rmSync(join(to, name), { force: true });
      await copyDatabase(path, join(to, name));
      if (!databases.includes(name)) databases.push(name);
      count("copied")(statSync(path).size);
    },
    /** Copies the files of a folder that are new or changed since they were copied; databases are left out. */
    folder: async (path: string) => {
      const names = (await filesIn(path)).filter((name) => !/\.sqlite(-wal|-shm)?$/.test(name));
      for (const name of names) await file(join(relative(folder.root, path), name));
    },
    /** Writes the record of the databases, as the program does in its data folder. */
    record: (record: DatabaseRecord) => writeDatabaseRecord(join(to, recordedAs), record),
    /** Reads everything again. @returns All files. @throws Error when one is damaged. */
    check: async (): Promise<readonly BackupFile[]> => {
      done = 0;
      const checked: BackupFile[] = [];
      for (const name of databases) checked.push(await checkDatabase(to, name, count("checked")));
      for (const { path, sha256 } of files.values()) {
        const found = await hashFile(to, path, count("checked"));
        if (found.sha256 !== sha256) throw new Error(`the copy of ${path} differs from the file that was read`);
        checked.push(found);
      }
      const record = await hashFile(to, recordedAs, count("checked"));
      for (const made of new Set([...checked.map(({ path }) => dirname(join(to, path))), to])) syncFolder(made);
      // The start fails without a recorded database: a restore that ends early leaves a folder that says so.
      return [record, ...checked];
    },
  };
}

const recordedAs = "databases.json";

/** Copies everything. @returns When the ledger was copied, and where it is. */
async function copyAll(
  folder: DataFolder,
  copy: Copy,
  databases: readonly ExaminedDatabase[],
  withIndex: boolean,
): Promise<Readonly<{ at: string; ledger: RecordedDatabase["place"] }>> {
  const inFolder = databases.filter(({ known }) => known.place === "file");
  const others = inFolder.filter(({ known }) => known.name !== "ledger");
  for (const { known } of others) await copy.database(known.path);
  await copy.folder(folder.keys);
  if (withIndex) await copy.folder(folder.columnar);
  await copy.folder(folder.uploads);
  const hasLedger = others.length < inFolder.length;
  const at = hasLedger ? await copyLedger(folder, copy) : new Date(systemClock()).toISOString();
  await copy.folder(folder.devnet);
  for (const path of [join(folder.devnet, "devnet.sqlite"), folder.sandbox])
    if (existsSync(path)) await copy.database(path);
  copy.record(recordOf(copy.to, databases));
  return { at, ledger: databases.some(({ known }) => known.place === "PostgreSQL") ? "PostgreSQL" : "file" };
}

/** Copies the ledger, and the files of uploads that it needs. @returns When the ledger was copied. */
async function copyLedger(folder: DataFolder, copy: Copy): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    const at = new Date(systemClock()).toISOString();
    await copy.database(folder.ledger);
    await copy.folder(folder.uploads);
    const missing = await missingFile(copy.to, folder);
    if (missing === undefined) return at;
    if (attempt === attemptsMax) throw new Error(`${missing}, which the ledger needs, is absent or too short`);
  }
}

/** Checks the copied ledger. @returns A file that it needs and the copy lacks. @throws Error for a violated rule. */
async function missingFile(to: string, folder: DataFolder): Promise<string | undefined> {
  const path = join(to, basename(folder.ledger));
  // The check would migrate a ledger of an older version, and its own program could not read the copy.
  if (!isNewestLedger(path))
    throw misuse("the ledger has the tables of another version: make the backup with the program that runs on it");
  const ledger = await openSqliteLedger({ path });
  try {
    const [finding] = await checkLedger(ledger);
    if (finding !== undefined)
      throw new Error(`the ledger is not consistent: ${finding.rule}; ${finding.subject}: ${finding.found}`);
    const uploads = join(to, basename(folder.uploads));
    if (!existsSync(uploads)) return undefined;
    const store = storedStoreName(uploads, () => crypto.randomUUID());
    const needed = await ledger.read((tx) => neededFiles(tx, store));
    return needed.find(({ file, size }) => !(sizeAt(join(uploads, file)) >= size))?.file;
  } finally {
    await ledger.close();
  }
}

function sizeAt(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? Number.NaN;
}

/** @throws Error with the faults of a damaged copy. */
async function checkDatabase(to: string, name: string, onBytes: (bytes: number) => void): Promise<BackupFile> {
  const db = openForReading(join(to, name), walkCacheBytes);
  try {
    const faults = checkIntegrity(db, faultsMax);
    if (faults.length > 0) throw new Error(`the copy of ${name} is damaged: ${faults.join("; ")}`);
  } finally {
    closeDatabase(db);
  }
  return await hashFile(to, name, onBytes);
}

/** The record of the copied databases; a start may have changed the one of the folder meanwhile. */
function recordOf(to: string, databases: readonly ExaminedDatabase[]): DatabaseRecord {
  const record = new Map<ExaminedDatabase["known"]["name"], RecordedDatabase>();
  for (const { known, recorded } of databases) {
    if (known.place === "PostgreSQL") {
      if (recorded !== undefined) record.set(known.name, recorded);
      continue;
    }
    const found = readIdentity(join(to, basename(known.path)));
    if (found.kind === "marked") record.set(known.name, { place: "file", id: found.id, generation: found.generation });
  }
  return record;
}

async function orAbsent<Result>(work: Promise<Result>): Promise<Result | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

type End = Readonly<{
  to: string;
  files: number;
  bytes: number;
  ledger: RecordedDatabase["place"];
  hasIndex: boolean;
  ms: number;
}>;

function printEnd(end: End, json: boolean): void {
  const { to, files, bytes, ledger, hasIndex, ms } = end;
  if (json) {
    print(`${jsonText({ folder: to, files, bytes, ledger, index: hasIndex, ms })}\n`);
    return;
  }
  const rows: (readonly [string, string])[] = [
    ["backup", to],
    ["size", `${bytesText(bytes)} in ${countText(files, "file")}, ${durationText(ms)}`],
    ["checked", "every database, the rules of the ledger, and the bytes of every file"],
    ...(hasIndex ? [] : [["without", "the index: it is built again from the chain after a restore"] as const]),
    ...(ledger === "file"
      ? []
      : [["without", "the ledger on PostgreSQL: dump it with pg_dump before the program starts again"] as const]),
  ];
  print(rowsText(rows, 7));
}
