/**
 * Opening SQLite files: one place for pragmas, migrations and transactions.
 *
 * Every file is in WAL mode, so that readers never wait for the writer. A statement that is used more than once is
 * prepared once and kept by its owner.
 * Source: docs/decisions/030-index.md.
 * @module
 */
import { Database, type SQLQueryBindings, type Statement } from "bun:sqlite";
import { rmSync } from "node:fs";
import { schemaFingerprint, scriptsToRun } from "../lib/schema-scripts.ts";

/** How a file is opened for writing. */
export type WriteOptions = Readonly<{
  /** SQL scripts in order; the n-th takes a file from version n to n + 1. Never edited once released. */
  migrations: readonly string[];
  /** NORMAL may lose the last transactions with the machine's power, never with the process; FULL loses none. */
  synchronous: "NORMAL" | "FULL";
  /** Page cache of this connection, bytes. */
  cacheBytes: number;
}>;

/** Large enough for a whole row of postings to fit often, small enough for point reads (index.md: 4k to 16k alike). */
export const pageBytes = 8_192;
/** How long a connection waits for another one's lock before it fails. */
const busyTimeoutMs = 5_000;
/** The log file is cut back to this after a checkpoint that emptied it. */
const walBytesStored = 64 * 2 ** 20;

/**
 * Opens a file for writing, creates it when absent, and brings it to the newest version.
 *
 * @throws Error when the file is no database, is damaged where it is read first, is of a newer version, or was made
 *   by scripts that have been edited since.
 */
export function openForWriting(path: string, options: WriteOptions): Database {
  return opened(path, () => {
    const db = new Database(path, { create: true, readwrite: true, strict: true });
    try {
      db.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
      db.run(`PRAGMA page_size = ${pageBytes}`);
      db.run("PRAGMA journal_mode = WAL");
      db.run(`PRAGMA synchronous = ${options.synchronous}`);
      db.run(`PRAGMA journal_size_limit = ${walBytesStored}`);
      db.run("PRAGMA foreign_keys = ON");
      db.run("PRAGMA cell_size_check = ON");
      setCache(db, options.cacheBytes);
      migrate(db, options.migrations);
      return db;
    } catch (error) {
      closeDatabase(db);
      throw error;
    }
  });
}

/**
 * Opens a file that exists for reading; the connection refuses to write.
 *
 * @param cacheBytes - Page cache of this connection, bytes.
 * @throws Error when the file does not exist or is no database.
 */
export function openForReading(path: string, cacheBytes: number): Database {
  return opened(path, () => {
    // Opened read-write: a reader that comes first after a crash must be able to recover the log.
    const db = new Database(path, { create: false, readwrite: true, strict: true });
    try {
      db.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
      db.run("PRAGMA query_only = ON");
      setCache(db, cacheBytes);
      db.run("SELECT count(*) FROM sqlite_schema");
      return db;
    } catch (error) {
      closeDatabase(db);
      throw error;
    }
  });
}

/** Removes a database that is not open, with its log: a log that is left would be taken for the next file's. */
export function removeDatabase(path: string): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
}

/** Runs work in one transaction: all of it is written, or, when it throws, nothing. */
export function inTransaction<Result>(db: Database, work: () => Result): Result {
  return between(db, "BEGIN IMMEDIATE", work);
}

/** Runs reads that must see one state of the database. */
export function inSnapshot<Result>(db: Database, work: () => Result): Result {
  return db.inTransaction ? work() : between(db, "BEGIN", work);
}

/**
 * Prepared statements of each open connection: a connection whose statements live on stays open behind a `close`,
 * holds its locks and keeps its log (seen: SQLite's `close_v2`).
 */
const prepared = new WeakMap<Database, Set<Statement>>();

/** Prepares a statement that is run again and again, until `closeDatabase`. */
export function prepare(db: Database, sql: string): Statement<unknown, SQLQueryBindings[]> {
  const statement: Statement<unknown, SQLQueryBindings[]> = db.prepare(sql);
  const statements = prepared.get(db) ?? new Set();
  prepared.set(db, statements.add(statement));
  return statement;
}

/** Closes a connection with all it prepared; the last one to close folds the log into the file. */
export function closeDatabase(db: Database): void {
  for (const statement of prepared.get(db) ?? []) statement.finalize();
  prepared.delete(db);
  db.close(true);
}

/** A statement that reads rows of a known shape; the shape is the SQL's, stated once beside it. */
export type Query<Row> = Readonly<{
  get: (...parameters: SQLQueryBindings[]) => Row | undefined;
  all: (...parameters: SQLQueryBindings[]) => Row[];
  /** Gives the statement back before the connection closes. */
  finalize: () => void;
}>;

/**
 * Prepares a statement that reads.
 *
 * The shape of its rows is the caller's word: nothing checks it against the SQL.
 */
export function prepareQuery<Row>(db: Database, sql: string): Query<Row> {
  const statement = prepare(db, sql) as Statement<Row, SQLQueryBindings[]>;
  return {
    get: (...parameters) => {
      try {
        return statement.get(...parameters) ?? undefined;
      } catch (error) {
        throw namingFile(db.filename, error);
      }
    },
    all: (...parameters) => {
      try {
        return statement.all(...parameters);
      } catch (error) {
        throw namingFile(db.filename, error);
      }
    },
    finalize: () => {
      prepared.get(db)?.delete(statement);
      statement.finalize();
    },
  };
}

/**
 * Reads all of a file and tells what is damaged.
 *
 * @param faultsMax - At most so many lines are answered.
 * @returns One line a fault; empty when the file is whole.
 */
export function checkIntegrity(db: Database, faultsMax: number): string[] {
  try {
    const check = prepareQuery<{ integrity_check: string }>(db, `PRAGMA integrity_check(${faultsMax})`);
    const rows = check.all();
    check.finalize();
    return rows.map((row) => row.integrity_check).filter((line) => line !== "ok");
  } catch (error) {
    // Damage that keeps SQLite from walking the file at all is thrown, not listed: it is a finding all the same.
    return [error instanceof Error ? error.message : String(error)];
  }
}

/** What SQLite says of a file that is not what it wrote. */
const damageCodes = /^SQLITE_(CORRUPT|NOTADB)/;

/** Whether an error, or one that caused it, says that a database is damaged. */
export function isDamage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ("code" in error && damageCodes.test(String(error.code))) || isDamage(error.cause);
}

/** An error of damage with the file in its message, and the same code. Other errors stay as they are. */
export function namingFile(path: string, error: unknown): unknown {
  if (!isDamage(error) || !(error instanceof Error) || error.message.includes(path)) return error;
  const named = new Error(`the database ${path} is damaged: ${error.message}`, { cause: error });
  return "code" in error ? Object.assign(named, { code: error.code }) : named;
}

function opened(path: string, open: () => Database): Database {
  try {
    return open();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`cannot open the database ${path}: ${reason}`, { cause: error });
  }
}

function setCache(db: Database, bytes: number): void {
  db.run(`PRAGMA cache_size = -${Math.ceil(bytes / 1_024)}`);
}

function migrate(db: Database, migrations: readonly string[]): void {
  inTransaction(db, () => {
    db.run("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL) STRICT");
    db.run("CREATE TABLE IF NOT EXISTS schema_fingerprint (fingerprint TEXT NOT NULL) STRICT");
    const stored = prepareQuery<{ version: number; fingerprint: string | null }>(
      db,
      "SELECT version, (SELECT fingerprint FROM schema_fingerprint) AS fingerprint FROM schema_version",
    ).get();
    const version = stored?.version ?? 0;
    const scripts = scriptsToRun(migrations, { version, fingerprint: stored?.fingerprint ?? undefined });
    if (scripts.length === 0 && stored !== undefined) return;
    for (const script of scripts) db.run(script);
    for (const table of ["schema_version", "schema_fingerprint"]) db.run(`DELETE FROM ${table}`);
    db.run("INSERT INTO schema_version VALUES (?)", [migrations.length]);
    db.run("INSERT INTO schema_fingerprint VALUES (?)", [schemaFingerprint(migrations)]);
  });
}

function between<Result>(db: Database, begin: string, work: () => Result): Result {
  db.run(begin);
  try {
    const response = work();
    db.run("COMMIT");
    return response;
  } catch (error) {
    // A full disk or a damaged page may have ended the transaction already.
    if (db.inTransaction) db.run("ROLLBACK");
    throw namingFile(db.filename, error);
  }
}
