/**
 * The ledger on SQLite: one writer in the process, several processes on a file, group commit.
 *
 * Transactions run one after another on the main thread; those that wait together share one, each within a savepoint,
 * so that each can fail alone. A commit goes to the log without waiting; then one `fdatasync` of the log, off
 * the event loop, makes all of them durable, and only then do callers get their results. `synchronous=FULL`
 * does the same, one transaction at a time. SQLite itself synchronises log and file around checkpoints (NORMAL).
 * Source: docs/decisions/070-ledger.md.
 * @module
 */
import { Database, type Statement } from "bun:sqlite";
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import { namingFile } from "../sqlite.ts";
import { createGroupSync } from "./group-sync.ts";
import { checkValues, type LedgerDatabase, type Row, type Value, type Work } from "./ledger-database.ts";
import { migrate } from "./ledger-migration.ts";
import { ledgerSchema } from "./ledger-schema.ts";
import {
  createReads,
  createWrites,
  type Fault,
  openedLedger,
  type Reads,
  runWork,
  type Session,
} from "./ledger-transactions.ts";

type SqliteLedgerOptions = Readonly<{
  /** Created when absent, in an existing folder. The log and its index are beside it. */
  path: string;
  /** Brings the log to the disk; tests make it slow or fail. */
  sync?: (log: FileHandle) => Promise<void>;
}>;

/**
 * Opens the ledger and brings it to the newest version.
 *
 * @throws Error when the file is not a ledger, or a newer program wrote it.
 */
export async function openSqliteLedger(options: SqliteLedgerOptions): Promise<LedgerDatabase> {
  const { path, sync = (log: FileHandle) => log.datasync() } = options;
  const opened: (() => Promise<void> | void)[] = [];
  const closeAll = async () => {
    for (const close of opened.splice(0).reverse()) await close();
  };
  try {
    const writer = closing(connectForWriting(path), opened);
    // The log exists as soon as the file has been read.
    writer.all("SELECT count(*) AS tables FROM sqlite_schema", []);
    await syncFolder(dirname(path));
    const log = await open(`${path}-wal`, "r");
    opened.push(() => log.close());
    const writes = createWrites(createSqliteSession(writer, () => sync(log)));
    await writes.write((tx) => migrate(tx, inSqlite));
    const reads = createSqliteReads(closing(connectForReading(path), opened));
    return openedLedger("sqlite", writes, reads, closeAll);
  } catch (error) {
    await closeAll();
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`cannot open the ledger ${path}: ${reason}`, { cause: error });
  }
}

/** Whether opening a ledger changes nothing: it has all tables of this program. @throws Error for another file. */
export function isNewestLedger(path: string): boolean {
  const ledger = connectForReading(path);
  try {
    const [row] = ledger.all("SELECT version FROM ledger_version", []);
    return row?.["version"] === BigInt(ledgerSchema.length);
  } finally {
    ledger.close();
  }
}

/**
 * A statement of the schema for SQLite. STRICT tables reject a sum that is no longer an integer. WITHOUT ROWID stores
 * rows in the order of their keys, once instead of twice (measured: half the bytes).
 */
function inSqlite(statement: string): string {
  if (!statement.startsWith("CREATE TABLE")) return statement;
  const stored = statement.includes("PRIMARY KEY") ? "STRICT, WITHOUT ROWID" : "STRICT";
  return `${statement.replace(/\bBIGINT\b/g, "INTEGER")} ${stored}`;
}

function closing(connection: Connection, opened: (() => void)[]): Connection {
  opened.push(connection.close);
  return connection;
}

/** Brings the names of new files to the disk: SQLite does so only when it synchronises by itself. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** A connection to a ledger file. All calls are synchronous; integers are bigint. */
type Connection = Readonly<{
  all: (sql: string, values: readonly Value[]) => Row[];
  run: (sql: string, values: readonly Value[]) => number;
  inTransaction: () => boolean;
  close: () => void;
}>;

/** Longest wait of a new connection or a reader for another process's lock. */
const connectionLockTimeoutMs = 5_000;
/** More than the distinct statements of the payment rules. Lists of different lengths need separate statements. */
const statementsMax = 500;
/** Page cache of a connection: the upper levels of the trees. The operating system has the other pages in memory. */
const cacheKibibytes = 4 * 1_024;
/** The log is truncated to this after a checkpoint that emptied it. */
const walBytesMax = 16 * 2 ** 20;

/**
 * Opens the file for writing; creates it when absent.
 *
 * Once open it never waits for locks: `begin` retries without blocking the event loop.
 */
function connectForWriting(path: string): Connection {
  const db = new Database(path, { create: true, readwrite: true, strict: true, safeIntegers: true });
  return prepared(db, path, [
    `busy_timeout = ${connectionLockTimeoutMs}`,
    "journal_mode = WAL",
    // A commit does not wait for the disk: `durable` waits once for many commits.
    "synchronous = NORMAL",
    `journal_size_limit = ${walBytesMax}`,
    "foreign_keys = ON",
    "cell_size_check = ON",
    // Savepoints keep old pages until the commit: in memory, not in a file for each group
    // (measured: 40 of 66 file writes an upload, and a sixth of its CPU here).
    "temp_store = MEMORY",
    `cache_size = -${cacheKibibytes}`,
    "busy_timeout = 0",
  ]);
}

/** Opens a file that exists for reading; the connection rejects writes. */
function connectForReading(path: string): Connection {
  // Opened read-write: a reader that comes first after a crash must be able to recover the log.
  const db = new Database(path, { create: false, readwrite: true, strict: true, safeIntegers: true });
  return prepared(db, path, [
    `busy_timeout = ${connectionLockTimeoutMs}`,
    "query_only = ON",
    `cache_size = -${cacheKibibytes}`,
  ]);
}

function prepared(db: Database, path: string, pragmas: readonly string[]): Connection {
  const statements = new Map<string, Statement<Row, Value[]>>();

  function statement(sql: string): Statement<Row, Value[]> {
    const known = statements.get(sql);
    if (known !== undefined) return known;
    const [oldest] = statements;
    if (oldest !== undefined && statements.size >= statementsMax) {
      oldest[1].finalize();
      statements.delete(oldest[0]);
    }
    const made = db.prepare<Row, Value[]>(sql);
    statements.set(sql, made);
    return made;
  }

  function close(): void {
    for (const one of statements.values()) one.finalize();
    statements.clear();
    db.close(true);
  }

  try {
    for (const pragma of pragmas) db.run(`PRAGMA ${pragma}`);
  } catch (error) {
    close();
    throw error;
  }
  /** SQLite does not say which file is damaged. */
  const naming = <Result>(work: () => Result): Result => {
    try {
      return work();
    } catch (error) {
      throw namingFile(path, error);
    }
  };

  return {
    all: (sql, values) => {
      checkValues(values);
      const rows = naming(() => statement(sql).all(...values));
      for (const row of rows) checkRow(row);
      return rows;
    },
    run: (sql, values) => {
      checkValues(values);
      return naming(() => Number(statement(sql).run(...values).changes));
    },
    inTransaction: () => db.inTransaction,
    close,
  };
}

/** SQLite continues in floating point when a sum exceeds 64 bits; such a number never leaves this file. */
function checkRow(row: Row): void {
  for (const name in row) assert(typeof row[name] !== "number", "a ledger's numbers are whole");
}

/** Longest wait for the lock of another process. */
const lockTimeoutMs = 10_000;
/** First and longest pause between two tries: short, because a busy process releases it for moments only. */
const lockPauseMs = { first: 1, longest: 4 } as const;

/**
 * Creates the session of a connection. The caller closes the connection.
 *
 * @param sync - Brings the log to the disk, off the event loop.
 */
function createSqliteSession(connection: Connection, sync: () => Promise<void>): Session {
  const run = (sql: string) => {
    connection.run(sql, []);
  };
  return {
    statements: connection,
    begin: () => begin(connection),
    mark: () => run("SAVEPOINT work"),
    keep: () => run("RELEASE work"),
    undo: () => {
      run("ROLLBACK TO work");
      run("RELEASE work");
    },
    commit: async () => run("COMMIT"),
    abandon: async () => {
      try {
        if (connection.inTransaction()) run("ROLLBACK");
      } catch {
        // When a rollback fails, the next BEGIN fails too, and its caller gets the error.
      }
    },
    durable: createGroupSync(sync),
    faultOf: sharedFaultOf,
  };
}

/** Takes the write lock without blocking the event loop. */
async function begin(connection: Connection): Promise<void> {
  const deadline = performance.now() + lockTimeoutMs;
  let pauseMs: number = lockPauseMs.first;
  while (true) {
    try {
      connection.run("BEGIN IMMEDIATE", []);
      return;
    } catch (error) {
      if (!isBusy(error)) throw new Failure("database_unavailable", { reason: "cannot begin" }, error);
      if (performance.now() > deadline)
        throw new Failure("busy", { reason: "another process holds the ledger" }, error);
    }
    await Bun.sleep(pauseMs);
    pauseMs = Math.min(2 * pauseMs, lockPauseMs.longest);
  }
}

/** Creates reads that take one snapshot after another. The caller closes the connection. */
function createSqliteReads(connection: Connection): Reads {
  let last: Promise<unknown> = Promise.resolve();

  async function snapshot<Result>(work: Work<Result>): Promise<Result> {
    try {
      connection.run("BEGIN", []);
      return await runWork(connection, work);
    } catch (error) {
      throw explained(error);
    } finally {
      if (connection.inTransaction()) connection.run("ROLLBACK", []);
    }
  }

  return createReads((work) => {
    const mine = last.then(() => snapshot(work));
    // The next snapshot waits for this one, whether it succeeds or fails; only its own caller gets the error.
    last = mine.catch(() => "ended");
    return mine;
  });
}

/** Errors after which the state of the disk is unknown. */
const damagePattern = /^SQLITE_(IOERR|CORRUPT|NOTADB)/;
/** Errors of the environment that leave the file unchanged. */
const lossPattern = /^SQLITE_(BUSY|FULL|CANTOPEN|NOMEM|PROTOCOL)/;

function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith("SQLITE_BUSY");
}

/** The effect of a statement's error on its transaction. */
function sharedFaultOf(error: unknown): Fault {
  const code = codeOf(error);
  if (damagePattern.test(code)) return "damage";
  // A full disk may have ended the transaction and its savepoints.
  return lossPattern.test(code) ? "lost" : "own";
}

/** Errors of the environment become `database_unavailable`; a defect (a write within a read) stays as it is. */
function explained(error: unknown): unknown {
  if (sharedFaultOf(error) === "own") return error;
  return new Failure("database_unavailable", { reason: "the ledger's file cannot be used" }, error);
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
