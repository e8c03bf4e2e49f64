/**
 * One connection to a ledger file: its pragmas, its prepared statements, and rows in which integers are bigint.
 *
 * @module
 */
import { Database, type Statement } from "bun:sqlite";
import { assert } from "../../lib/assert.ts";
import { namingFile } from "../sqlite.ts";
import { checkValues } from "./check-values.ts";
import type { Row, Value } from "./database.ts";

/** A connection. All calls are synchronous and throw what SQLite throws. */
export type Connection = Readonly<{
  all: (sql: string, values: readonly Value[]) => Row[];
  run: (sql: string, values: readonly Value[]) => number;
  inTransaction: () => boolean;
  close: () => void;
}>;

/** How long a connection that has no better way waits for another process's lock. */
const lockTimeoutMs = 5_000;
/** More statements than the rules have; lists of different lengths are statements of their own. */
const statementsMax = 500;
/** Page cache of a connection: the upper levels of all trees of a large ledger. */
const cacheKibibytes = 16 * 1_024;
/** The log is cut back to this after a checkpoint that emptied it. */
const walBytesStored = 16 * 2 ** 20;

/**
 * Opens the file for writing; creates it when absent.
 *
 * Once open it never waits for locks: its owner tries again without holding up the event loop.
 */
export function connectForWriting(path: string): Connection {
  const db = new Database(path, { create: true, readwrite: true, strict: true, safeIntegers: true });
  return prepared(db, path, [
    `busy_timeout = ${lockTimeoutMs}`,
    "journal_mode = WAL",
    // A commit does not wait for the disk: the owner of the connection does, for many at once.
    "synchronous = NORMAL",
    `journal_size_limit = ${walBytesStored}`,
    "foreign_keys = ON",
    "cell_size_check = ON",
    // Of each page what it was at the last mark is kept until the commit: in memory, not in a file for each group
    // (measured: 40 of 66 writes to files an upload, and a sixth of its CPU here).
    "temp_store = MEMORY",
    `cache_size = -${cacheKibibytes}`,
    "busy_timeout = 0",
  ]);
}

/** Opens a file that exists for reading; the connection refuses to write. */
export function connectForReading(path: string): Connection {
  // Opened read-write: a reader that comes first after a crash must be able to recover the log.
  const db = new Database(path, { create: false, readwrite: true, strict: true, safeIntegers: true });
  return prepared(db, path, [`busy_timeout = ${lockTimeoutMs}`, "query_only = ON", `cache_size = -${cacheKibibytes}`]);
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

/** SQLite goes on in floating point where a sum passes 64 bits; no such number leaves here. */
function checkRow(row: Row): void {
  for (const name in row) assert(typeof row[name] !== "number", "a ledger's numbers are whole");
}
