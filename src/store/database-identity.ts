/**
 * The identity of an SQLite file: a random id, and a generation that grows with each start that used the file.
 *
 * The identity table is not part of any schema, so programs that do not know it ignore it.
 * @module
 */
import { Database } from "bun:sqlite";
import { existsSync, renameSync, rmSync, statSync } from "node:fs";
import { writeSynced } from "./durable-file.ts";
import { closeDatabase, inTransaction, isDamage, openForReading, prepareQuery } from "./sqlite.ts";

export type DatabaseIdentity = Readonly<{ id: string; generation: number }>;

/** State of a file where a database is expected. */
export type DatabaseState =
  | Readonly<{ kind: "absent" | "empty" | "unmarked" }>
  | Readonly<{ kind: "damaged"; reason: string }>
  | (Readonly<{ kind: "marked" }> & DatabaseIdentity);

type MarkOptions = Readonly<{
  /** Page size of a new file, bytes; undefined selects SQLite's default. */
  pageBytes: number | undefined;
}>;

const readCacheBytes = 2 ** 18;
const busyTimeoutMs = 5_000;
/** Reads two rows in order to detect a second one. */
const identitySql = "SELECT id, generation FROM database_identity LIMIT 2";

/** First and end of the two bytes of a file's header that say how it is written and read. */
const versionsAt = [18, 20] as const;
/** With a write-ahead log. Source: SQLite's file format, "File format version numbers". */
const walVersion = 2;

/**
 * Reads a file's identity without writing to the file.
 *
 * @throws Error when the file cannot be opened for any reason but damage.
 */
export function readIdentity(path: string): DatabaseState {
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  if (size === undefined) return { kind: "absent" };
  // SQLite would delete the log of an empty file, and the log may hold the only copy of the data.
  if (size === 0) return { kind: "empty" };
  try {
    const db = openForReading(path, readCacheBytes);
    try {
      return stateOf(db);
    } finally {
      closeDatabase(db);
    }
  } catch (error) {
    if (!isDamage(error)) throw error;
    return { kind: "damaged", reason: reasonOf(error) };
  }
}

function stateOf(db: Database): DatabaseState {
  const tables = prepareQuery<{ name: string }>(db, "SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  if (tables.length === 0) return { kind: "empty" };
  if (!tables.some(({ name }) => name === "database_identity")) return { kind: "unmarked" };
  const rows = prepareQuery<DatabaseIdentity>(db, identitySql).all();
  const [row] = rows;
  return row === undefined || rows.length > 1 ? { kind: "unmarked" } : { kind: "marked", ...row };
}

/**
 * Writes a file's identity durably; creates the file when it is absent. The caller syncs the folder.
 *
 * A new file is made in memory, and gets its name when it is complete and on the disk: SQLite alone would sync it
 * eleven times.
 *
 * @throws Error from SQLite or the system.
 */
export function writeIdentity(path: string, identity: DatabaseIdentity, options: MarkOptions): void {
  if (existsSync(path)) {
    markFile(path, identity, options);
    return;
  }
  const draft = `${path}.new`;
  writeSynced(draft, newFile(identity, options));
  // SQLite would apply the log of a lost file to the new one.
  for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix, { force: true });
  renameSync(draft, path);
}

/** The bytes of a new file in WAL mode. */
function newFile(identity: DatabaseIdentity, options: MarkOptions): Uint8Array {
  const db = new Database(":memory:", { strict: true });
  try {
    setLayout(db, options);
    mark(db, identity);
    const bytes = db.serialize();
    bytes.fill(walVersion, ...versionsAt);
    return bytes;
  } finally {
    closeDatabase(db);
  }
}

function markFile(path: string, identity: DatabaseIdentity, options: MarkOptions): void {
  const db = new Database(path, { create: false, readwrite: true, strict: true });
  try {
    db.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    db.run("PRAGMA synchronous = FULL");
    setLayout(db, options);
    db.run("PRAGMA journal_mode = WAL");
    inTransaction(db, () => mark(db, identity));
  } finally {
    closeDatabase(db);
  }
}

/** Sets what only a new file takes: it must be as in `openForWriting`. */
function setLayout(db: Database, { pageBytes }: MarkOptions): void {
  if (pageBytes === undefined) return;
  db.run(`PRAGMA page_size = ${pageBytes}`);
  db.run("PRAGMA auto_vacuum = INCREMENTAL");
}

function mark(db: Database, { id, generation }: DatabaseIdentity): void {
  db.run("CREATE TABLE IF NOT EXISTS database_identity (id TEXT NOT NULL, generation INTEGER NOT NULL) STRICT");
  db.run("DELETE FROM database_identity");
  db.run("INSERT INTO database_identity VALUES (?, ?)", [id, generation]);
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
