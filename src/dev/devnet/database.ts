/**
 * The devnet's one SQLite file: blocks, transactions, chunks, accounts, and what waits.
 *
 * Every change of the chain is one transaction of the database, so that a process killed at any moment leaves a
 * chain that is whole.
 * @module
 */
import { Database, SQLiteError } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../../failures.ts";
import { schemaFingerprint, scriptsToRun } from "../../lib/schema-scripts.ts";

const schema = `
  CREATE TABLE blocks (
    height INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL
  ) STRICT;

  CREATE TABLE transactions (
    id TEXT PRIMARY KEY,
    height INTEGER NOT NULL,
    position INTEGER NOT NULL,      -- in the block's list
    text TEXT NOT NULL,             -- without data, which is in chunks alone
    data_root TEXT NOT NULL,        -- of the data tree, also for format 1; '' without data
    data_size INTEGER NOT NULL,
    weave_end INTEGER,              -- absolute end of the data; NULL without data
    tx_path BLOB
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX transactions_by_place ON transactions (height, position);
  CREATE INDEX transactions_by_data ON transactions (data_root, data_size) WHERE weave_end IS NOT NULL;
  CREATE INDEX transactions_by_weave ON transactions (weave_end) WHERE weave_end IS NOT NULL;

  CREATE TABLE pending (
    sequence INTEGER PRIMARY KEY,   -- order of arrival
    id TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL,
    data_root TEXT NOT NULL
  ) STRICT;

  CREATE TABLE rejected (
    sequence INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    codes TEXT NOT NULL             -- separated by spaces
  ) STRICT;

  CREATE TABLE chunks (
    data_root TEXT NOT NULL,
    data_size INTEGER NOT NULL,
    chunk_end INTEGER NOT NULL,     -- in the data, exclusive
    chunk_start INTEGER NOT NULL,
    data_path BLOB NOT NULL,
    chunk BLOB NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX chunks_by_place ON chunks (data_root, data_size, chunk_end);

  CREATE TABLE balances (
    address TEXT NOT NULL,
    height INTEGER NOT NULL,        -- from this block on
    balance TEXT NOT NULL,
    last_tx TEXT NOT NULL,
    PRIMARY KEY (address, height)
  ) STRICT, WITHOUT ROWID;
`;

/**
 * Opens or makes the database.
 *
 * @param dir - Folder, made when absent; `undefined` keeps everything in memory.
 * @throws Failure `malformed_input` when another program's scripts made its tables, `busy` when another process has it.
 */
export function openDevnetDatabase(dir: string | undefined): Database {
  if (dir !== undefined) mkdirSync(dir, { recursive: true });
  const database = new Database(dir === undefined ? ":memory:" : join(dir, "devnet.sqlite"), {
    strict: true,
  });
  claim(database, dir);
  // A killed process loses nothing that was acknowledged; a power cut may lose the last moments, never the order.
  database.run("PRAGMA synchronous = NORMAL");
  try {
    makeTables(database);
    return database;
  } catch (error) {
    database.close();
    const why = error instanceof Error ? error.message : String(error);
    throw new Failure("malformed_input", { reason: `devnet.sqlite cannot be opened: ${why}`, dir }, error);
  }
}

function makeTables(database: Database): void {
  database.transaction(() => {
    database.run("CREATE TABLE IF NOT EXISTS schema_fingerprint (fingerprint TEXT NOT NULL) STRICT");
    const sql = "SELECT fingerprint FROM schema_fingerprint";
    const fingerprint = database.query<{ fingerprint: string }, []>(sql).get()?.fingerprint;
    const scripts = scriptsToRun([schema], { version: versionOf(database), fingerprint });
    if (scripts.length === 0) return;
    for (const script of scripts) database.run(script);
    database.run("INSERT INTO schema_fingerprint VALUES (?)", [schemaFingerprint([schema])]);
    database.run("PRAGMA user_version = 1");
  })();
}

/** Two processes on one chain would each mine their own: the file belongs to one, until it ends. */
function claim(database: Database, dir: string | undefined): void {
  try {
    database.run("PRAGMA locking_mode = EXCLUSIVE");
    database.run("PRAGMA journal_mode = WAL");
    database.run("BEGIN IMMEDIATE");
    database.run("COMMIT");
  } catch (error) {
    database.close();
    if (!(error instanceof SQLiteError) || error.code !== "SQLITE_BUSY") throw error;
    throw new Failure("busy", { reason: "another process has this devnet open", dir }, error);
  }
}

function versionOf(database: Database): number {
  const row = database.query<{ user_version: number }, []>("PRAGMA user_version").get();
  return row?.user_version ?? 0;
}
