/**
 * Opens SQLite files: pragmas, migrations and transactions.
 *
 * Every file is in WAL mode, so that readers never wait for the writer. A statement that is used more than once is
 * prepared once and stored by its owner.
 * Source: docs/decisions/030-index.md; docs/decisions/102-page-caches.md.
 * @module
 */
import { Database, type SQLQueryBindings, type Statement } from "bun:sqlite";
import { rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { schemaFingerprint, scriptsToRun } from "../lib/schema-scripts.ts";

type WriteOptions = Readonly<{
  /** SQL scripts in order; the n-th takes a file from version n to n + 1. Never edited once released. */
  migrations: readonly string[];
  /** NORMAL may lose the last transactions when the machine loses power, not when the process ends. FULL loses none. */
  synchronous: "NORMAL" | "FULL";
  /** Page cache of this connection, bytes. */
  cacheBytes: number;
  /** Pages in the log at which this connection folds it into the file; SQLite's default is 1,000. */
  checkpointPages?: number;
}>;

/** Most rows of postings fit into one page, and point reads stay fast (measured: 4 KiB to 16 KiB are equally fast). */
export const pageBytes = 8_192;
/** How long a connection waits for another connection's lock before it fails. */
const busyTimeoutMs = 5_000;
/** The log file is truncated to this size after a checkpoint that emptied it. */
const walBytesStored = 64 * 2 ** 20;

/**
 * Opens a file for writing, creates it when absent, and brings it to the newest version.
 *
 * @throws Error when the file is not a database, is damaged in its first pages, has a newer version, or was made by
 *   scripts that have been edited since.
 */
export function openForWriting(path: string, options: WriteOptions): Database {
  return opened(path, () => {
    const db = new Database(path, { create: true, readwrite: true, strict: true });
    try {
      db.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
      db.run(`PRAGMA page_size = ${pageBytes}`);
      // Only a new file takes it: `releaseFreePages` returns space of removed rows.
      db.run("PRAGMA auto_vacuum = INCREMENTAL");
      db.run("PRAGMA journal_mode = WAL");
      db.run(`PRAGMA synchronous = ${options.synchronous}`);
      db.run(`PRAGMA journal_size_limit = ${walBytesStored}`);
      db.run("PRAGMA foreign_keys = ON");
      db.run("PRAGMA cell_size_check = ON");
      if (options.checkpointPages !== undefined) db.run(`PRAGMA wal_autocheckpoint = ${options.checkpointPages}`);
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
 * Opens an existing file for reading; the connection rejects writes.
 *
 * @param cacheBytes - Page cache of this connection, bytes.
 * @throws Error when the file does not exist or is not a database.
 */
export function openForReading(path: string, cacheBytes: number): Database {
  return opened(path, () => {
    // Opened read-write: the first reader after a crash must be able to recover the log.
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

/**
 * Writes the state of a database at one moment to a new file and syncs it, beside the programs that use the database.
 * Their logs grow until it is done, because a checkpoint waits for readers. The caller syncs the folder.
 *
 * @throws Error when the source is absent or damaged, or the target exists or cannot be written.
 */
export async function copyDatabase(source: string, target: string): Promise<void> {
  const db = opened(source, () => new Database(source, { create: false, readwrite: true, strict: true }));
  try {
    db.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    db.run("VACUUM INTO ?", [target]);
  } catch (error) {
    throw namingFile(source, error);
  } finally {
    closeDatabase(db);
  }
  const copy = await open(target, "r");
  try {
    await copy.sync();
  } finally {
    await copy.close();
  }
}

/**
 * Changes an existing file of any version, that no program uses, in one transaction.
 *
 * @throws Error when the file is absent or damaged, or cannot be written.
 */
export function changeDatabase(path: string, change: (db: Database) => void): void {
  const db = opened(path, () => new Database(path, { create: false, readwrite: true, strict: true }));
  try {
    inTransaction(db, () => change(db));
  } catch (error) {
    throw namingFile(path, error);
  } finally {
    closeDatabase(db);
  }
}

/** Releases a lock. */
export type Unlock = () => void;

/**
 * Locks a file, which is created when absent, as long as the returned function is referenced. The system releases the
 * lock when the process dies.
 *
 * @returns Undefined when it is locked already, by this or another process.
 */
export function lockFile(path: string): Unlock | undefined {
  const db = new Database(path);
  try {
    db.run("PRAGMA busy_timeout = 0");
    db.run("BEGIN EXCLUSIVE");
  } catch (error) {
    db.close();
    if (error instanceof Error && "code" in error && error.code === "SQLITE_BUSY") return undefined;
    throw error;
  }
  return () => db.close();
}

/** Removes a closed database, its log first: SQLite would apply a leftover log to the next file of that name. */
export function removeDatabase(path: string): void {
  for (const suffix of ["-wal", "-shm", ""]) rmSync(path + suffix, { force: true });
}

/** Runs work in one transaction: everything is written, or nothing when the work throws. */
export function inTransaction<Result>(db: Database, work: () => Result): Result {
  return between(db, "BEGIN IMMEDIATE", work);
}

/** Runs reads that must see one state of the database. */
export function inSnapshot<Result>(db: Database, work: () => Result): Result {
  return db.inTransaction ? work() : between(db, "BEGIN", work);
}

/** As `inSnapshot`, for reads with waits between them. Nothing else may use the connection meanwhile. */
export async function inSnapshotAcrossWaits<Result>(db: Database, work: () => Promise<Result>): Promise<Result> {
  db.run("BEGIN");
  try {
    return await work();
  } finally {
    // Reads have nothing to commit. A damaged page may have ended the transaction already.
    if (db.inTransaction) db.run("ROLLBACK");
  }
}

/**
 * Prepared statements of each open connection. A connection with live statements stays open after `close`, holds its
 * locks and keeps its log file (observed with SQLite's `close_v2`).
 */
const prepared = new WeakMap<Database, Set<Statement>>();

/** Prepares a statement for repeated use, until `closeDatabase`. */
export function prepare(db: Database, sql: string): Statement<unknown, SQLQueryBindings[]> {
  const statement: Statement<unknown, SQLQueryBindings[]> = db.prepare(sql);
  const statements = prepared.get(db) ?? new Set();
  prepared.set(db, statements.add(statement));
  return statement;
}

/**
 * Returns a function that folds the log of another connection's file into the file, without waiting for anyone, once it
 * has this many pages that are not in the file yet.
 */
export function createCheckpoints(db: Database, pagesMin: number): () => void {
  const state = prepareQuery<{ log: number; checkpointed: number }>(db, "PRAGMA wal_checkpoint(NOOP)");
  const fold = prepare(db, "PRAGMA wal_checkpoint(PASSIVE)");
  return () => {
    const found = state.get();
    if (found !== undefined && found.log - found.checkpointed >= pagesMin) fold.run();
  };
}

/** Closes a connection and finalizes its statements; the last connection to close folds the log into the file. */
export function closeDatabase(db: Database): void {
  for (const statement of prepared.get(db) ?? []) statement.finalize();
  prepared.delete(db);
  db.close(true);
}

/** Pages that one step releases: bounds the log and the time that readers wait. */
const pagesReleasedPerStep = 2_000;

/**
 * Returns some free pages to the file system, unless the file was made without that ability. The last step folds the
 * log into the file.
 *
 * @returns Whether there are more: call it again.
 */
export function releaseFreePages(db: Database): boolean {
  const free = prepareQuery<{ freelist_count: number }>(db, "PRAGMA freelist_count");
  const count = (): number => free.get()?.freelist_count ?? 0;
  const before = count();
  if (before > 0) db.run(`PRAGMA incremental_vacuum(${pagesReleasedPerStep})`);
  const after = count();
  free.finalize();
  const hasMore = after > 0 && after < before;
  if (!hasMore) db.run("PRAGMA wal_checkpoint(PASSIVE)");
  return hasMore;
}

/** A statement that reads rows. `Row` declares the columns of the SQL and is not checked against it. */
export type Query<Row> = Readonly<{
  get: (...parameters: SQLQueryBindings[]) => Row | undefined;
  all: (...parameters: SQLQueryBindings[]) => Row[];
  /** Releases the statement before the connection closes. */
  finalize: () => void;
}>;

/** Prepares a statement that reads. The caller guarantees that `Row` matches the SQL. */
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
 * Checks a complete file for damage.
 *
 * @param faultsMax - Maximum number of returned lines.
 * @returns One line a fault; empty when the file is intact.
 */
export function checkIntegrity(db: Database, faultsMax: number): string[] {
  try {
    const check = prepareQuery<{ integrity_check: string }>(db, `PRAGMA integrity_check(${faultsMax})`);
    const rows = check.all();
    check.finalize();
    return rows.map((row) => row.integrity_check).filter((line) => line !== "ok");
  } catch (error) {
    // SQLite throws, instead of listing, damage that prevents it from reading the file. It is a fault as well.
    return [error instanceof Error ? error.message : String(error)];
  }
}

/** Error codes of SQLite for a file with damaged or foreign content. */
const damageCodes = /^SQLITE_(CORRUPT|NOTADB)/;

/** Whether an error, or one of its causes, reports a damaged database. */
export function isDamage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ("code" in error && damageCodes.test(String(error.code))) || isDamage(error.cause);
}

/** Adds the file to the message of a damage error and keeps its code. Returns other errors unchanged. */
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

/** Sets the page cache of a connection. */
export function setCache(db: Database, bytes: number): void {
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

function between<Result>(db: Database, begin: Begin, work: () => Result): Result {
  const sql = transactionSteps(db);
  sql[begin].run();
  try {
    const result = work();
    sql.COMMIT.run();
    return result;
  } catch (error) {
    // A full disk or a damaged page may have ended the transaction already.
    if (db.inTransaction) db.run("ROLLBACK");
    throw namingFile(db.filename, error);
  }
}

type Begin = "BEGIN" | "BEGIN IMMEDIATE";

/** Prepared once: a short read would take twice as long. */
const steps = new WeakMap<Database, Readonly<Record<Begin | "COMMIT", Statement>>>();

function transactionSteps(db: Database): Readonly<Record<Begin | "COMMIT", Statement>> {
  const known = steps.get(db);
  if (known !== undefined) return known;
  const made = {
    BEGIN: prepare(db, "BEGIN"),
    "BEGIN IMMEDIATE": prepare(db, "BEGIN IMMEDIATE"),
    COMMIT: prepare(db, "COMMIT"),
  };
  steps.set(db, made);
  return made;
}
