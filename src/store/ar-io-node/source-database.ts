/**
 * The SQLite files of an ar-io-node, opened so that nothing in its folder changes.
 *
 * A file without a log is opened as immutable. A file with a log, which a program that was killed leaves, is linked or
 * copied to a folder of ours together with a copy of the log. Both are checked again at the end.
 * Source: docs/reference/ar-io-node-folder.md.
 * @module
 */
import { constants, Database, type SQLQueryBindings } from "bun:sqlite";
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { removeFolder } from "../../lib/remove-folder.ts";
import { linkOrCopyFile } from "../durable-file.ts";
import { closeDatabase, namingFile, prepare, prepareQuery, type Query } from "../sqlite.ts";

/** One database of the folder. */
export type SourceDatabase = Readonly<{
  /** The columns of a table; empty when the table is absent. @throws Error when the name is not that of a table. */
  columns: (table: string) => ReadonlySet<string>;
  /**
   * The first of several names that a table has as a column.
   *
   * @throws Error without one.
   */
  column: (table: string, names: readonly string[]) => string;
  query: <Row>(sql: string) => Query<Row>;
  /** Prepares a statement whose rows are read one by one. */
  rows: <Row>(sql: string) => (...given: SQLQueryBindings[]) => Generator<Row>;
  /** @throws Error when the file changed since it was opened. */
  checkUnchanged: () => void;
  close: () => void;
}>;

/** Page cache of a connection. Bytes. */
const cacheBytes = 32 * 2 ** 20;

/**
 * Opens a database; undefined when the file does not exist.
 *
 * @param scratch - Folder for links and copies. It is created and removed.
 * @throws Error when a program has the file open, or when the file is not a readable database.
 */
export function openSourceDatabase(path: string, scratch: string): SourceDatabase | undefined {
  if (!existsSync(path)) return undefined;
  if (isLocked(path)) throw stillRunning(path);
  if (sizeOf(`${path}-journal`) > 0)
    throw new Error(`${path} has an unfinished journal: start ar-io-node, stop it, and run the command again`);
  const before = stampOf(path);
  const db = opened(path, scratch);
  const columns = createColumns(db, path);
  return {
    columns,
    column: (table, names) => {
      const found = names.find((name) => columns(table).has(name));
      if (found === undefined)
        throw new Error(`${path} is not a database of ar-io-node: ${table} has no column ${names[0] ?? ""}`);
      return found;
    },
    query: <Row>(sql: string) => reading<Row>(path, db, sql),
    rows: <Row>(sql: string) => iterating<Row>(path, db, sql),
    checkUnchanged: () => {
      if (isLocked(path) || stampOf(path) !== before) throw stillRunning(path);
    },
    close: () => {
      closeDatabase(db);
      removeFolder(scratch);
    },
  };
}

function opened(path: string, scratch: string): Database {
  try {
    const db = sizeOf(`${path}-wal`) > 0 ? openWithLog(path, scratch) : openImmutable(path);
    // Neither expressions of its schema nor damaged cells may do more than fail.
    for (const pragma of ["query_only = ON", "trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"])
      db.run(`PRAGMA ${pragma}`);
    db.run(`PRAGMA cache_size = -${cacheBytes / 1_024}`);
    db.run("SELECT count(*) FROM sqlite_schema");
    return db;
  } catch (error) {
    removeFolder(scratch);
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`${path} cannot be read as a SQLite database: ${reason}`, { cause: error });
  }
}

/** Opens a file without locks and without files beside it. */
function openImmutable(path: string): Database {
  const flags = constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI;
  return new Database(`${pathToFileURL(path).href}?immutable=1`, flags);
}

/** Opens a link to the file, with a copy of its log. SQLite creates the file of shared memory beside the link. */
function openWithLog(path: string, scratch: string): Database {
  removeFolder(scratch);
  mkdirSync(scratch, { recursive: true, mode: 0o700 });
  const link = join(scratch, basename(path));
  linkOrCopyFile(path, link);
  copyFileSync(`${path}-wal`, `${link}-wal`);
  return new Database(link, { readonly: true });
}

function createColumns(db: Database, path: string): SourceDatabase["columns"] {
  const known = new Map<string, ReadonlySet<string>>();
  const kind = prepareQuery<{ type: string; sql: string | null }>(
    db,
    "SELECT type, sql FROM sqlite_schema WHERE name = ?",
  );
  const names = prepareQuery<{ name: string }>(db, "SELECT name FROM pragma_table_info(?)");
  return (table) => {
    const before = known.get(table);
    if (before !== undefined) return before;
    const found = kind.get(table);
    if (found !== undefined && (found.type !== "table" || /^\s*CREATE\s+VIRTUAL/i.test(found.sql ?? "")))
      throw new Error(`${path} is not a database of ar-io-node: ${table} is not a table`);
    const columns = new Set(found === undefined ? [] : names.all(table).map(({ name }) => name));
    known.set(table, columns);
    return columns;
  };
}

/** Reads rows; an error of SQLite names the file. */
function reading<Row>(path: string, db: Database, sql: string): Query<Row> {
  const query = naming(path, () => prepareQuery<Row>(db, sql));
  return {
    get: (...given: SQLQueryBindings[]) => naming(path, () => query.get(...given)),
    all: (...given: SQLQueryBindings[]) => naming(path, () => query.all(...given)),
    finalize: query.finalize,
  };
}

function iterating<Row>(path: string, db: Database, sql: string) {
  const statement = naming(path, () => prepare(db, sql));
  return function* (...given: SQLQueryBindings[]): Generator<Row> {
    const rows = statement.iterate(...given) as IterableIterator<Row>;
    for (;;) {
      const { done, value } = naming(path, () => rows.next());
      if (done === true) return;
      yield value;
    }
  };
}

function naming<Result>(path: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    const found = namingFile(path, error);
    if (found !== error || !(error instanceof Error)) throw found;
    throw new Error(`${path} cannot be read: ${error.message}`, { cause: error });
  }
}

function stillRunning(path: string): Error {
  return new Error(`${path} is in use: stop ar-io-node, and run the command again`);
}

/** The state of a file and its log; another text means that a program wrote to them. */
function stampOf(path: string): string {
  return [path, `${path}-wal`]
    .map((each) => {
      const stats = statSync(each, { bigint: true, throwIfNoEntry: false });
      return stats === undefined ? "none" : `${stats.ino} ${stats.size} ${stats.mtimeNs}`;
    })
    .join(", ");
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Whether another process has a lock on a database; each connection to a file with a log has one. Linux only. */
function isLocked(path: string): boolean {
  const files = [path, `${path}-shm`].flatMap((each) => statSync(each, { throwIfNoEntry: false }) ?? []);
  return readLocks().some(
    ({ pid, device, inode }) =>
      pid !== process.pid && files.some((file) => file.ino === inode && isDevice(device, file.dev)),
  );
}

/** Compares a device of /proc/locks, such as `fe:00`, with that of a file. */
function isDevice(device: string, number: number): boolean {
  const major = Math.floor(number / 256) & 0xfff;
  const minor = (number & 0xff) | (Math.floor(number / 4_096) & 0xfff00);
  const [first, second] = device.split(":").map((part) => Number.parseInt(part, 16));
  // Layered file systems have a device of their own, with major number 0.
  return major === 0 || (first === major && second === minor);
}

type Lock = Readonly<{ pid: number; device: string; inode: number }>;

function readLocks(): readonly Lock[] {
  try {
    const line = /^\d+: (?:-> )?\w+ +\w+ +\w+ +(-?\d+) ([0-9a-f]+:[0-9a-f]+):(\d+) /gm;
    return [...readFileSync("/proc/locks", "utf8").matchAll(line)].map(([, pid, device = "", inode]) => ({
      pid: Number(pid),
      device,
      inode: Number(inode),
    }));
  } catch {
    // Other systems do not list locks: the check at the end finds a program that writes.
    return [];
  }
}
