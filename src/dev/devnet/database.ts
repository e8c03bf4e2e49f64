/**
 * The SQLite file of the devnet, with the schema of blocks, transactions, chunks, accounts and the mempool, and the
 * statements for blocks and mined transactions.
 *
 * Every change of the chain is one database transaction, so that a kill at any moment leaves a consistent chain.
 * @module
 */
import { Database, SQLiteError } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../../failures.ts";
import { schemaFingerprint, scriptsToRun } from "../../lib/schema-scripts.ts";
import type { DataKey } from "./chunk-store.ts";

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
 * Opens the database, and creates it if needed.
 *
 * @param dir - Folder, created if needed; `undefined` uses memory only.
 * @throws Failure `malformed_input` for another schema, `busy` when another process has the file open.
 */
export function openDevnetDatabase(dir: string | undefined): Database {
  if (dir !== undefined) mkdirSync(dir, { recursive: true });
  const database = new Database(dir === undefined ? ":memory:" : join(dir, "devnet.sqlite"), {
    strict: true,
  });
  claim(database, dir);
  // A killed process loses no acknowledged change; a power cut may lose the last changes, never their order.
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

/** Locks the file for this process: two processes on one chain would each mine their own blocks. */
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

export type BlockRow = Readonly<{ height: number; hash: string; text: string }>;

export type MinedTransaction = Readonly<{
  id: string;
  height: number;
  position: number; // in the block's list
  text: string; // the JSON that a node sends, without data
  data: MinedData | undefined; // absent without data
}>;

/** The data of a mined transaction: bytes `[weaveEnd - size, weaveEnd)` of the weave. */
export type MinedData = DataKey & Readonly<{ weaveEnd: number; txPath: Uint8Array }>;

/** Blocks and mined transactions. */
export type History = Readonly<{
  tip: () => BlockRow | undefined;
  blockAt: (height: number) => BlockRow | undefined;
  blockOf: (hash: string) => BlockRow | undefined;
  /** Blocks of a range of heights, both inclusive, newest first. */
  blocks: (from: number, to: number) => readonly BlockRow[];
  /** The hashes of a range of heights, both inclusive, newest first. */
  hashes: (from: number, to: number) => readonly string[];
  transaction: (id: string) => MinedTransaction | undefined;
  heightOf: (id: string) => number | undefined;
  /** The transaction whose data has the byte before `end` of the weave (chunk requests have 1-based offsets). */
  holding: (end: number) => MinedTransaction | undefined;
  hasData: (key: DataKey) => boolean;
  add: (block: BlockRow, transactions: readonly MinedTransaction[]) => void;
  /** Removes every block above a height. */
  cut: (height: number) => void;
}>;

type TransactionRow = {
  id: string;
  height: number;
  position: number;
  text: string;
  data_root: string;
  data_size: number;
  weave_end: number | null;
  tx_path: Uint8Array | null;
};

export function createHistory(database: Database): History {
  const tip = database.query<BlockRow, []>("SELECT * FROM blocks ORDER BY height DESC LIMIT 1");
  const byHeight = database.query<BlockRow, [number]>("SELECT * FROM blocks WHERE height = ?");
  const byHash = database.query<BlockRow, [string]>("SELECT * FROM blocks WHERE hash = ?");
  const range = database.query<BlockRow, [number, number]>(
    "SELECT * FROM blocks WHERE height BETWEEN ? AND ? ORDER BY height DESC",
  );
  const byId = database.query<TransactionRow, [string]>("SELECT * FROM transactions WHERE id = ?");
  const hashRange = database.query<{ hash: string }, [number, number]>(
    "SELECT hash FROM blocks WHERE height BETWEEN ? AND ? ORDER BY height DESC",
  );
  const height = database.query<{ height: number }, [string]>("SELECT height FROM transactions WHERE id = ?");
  const byEnd = database.query<TransactionRow, [number]>(
    "SELECT * FROM transactions WHERE weave_end >= ? ORDER BY weave_end LIMIT 1",
  );
  const byData = database.query<{ found: number }, [string, number]>(
    "SELECT 1 AS found FROM transactions WHERE data_root = ? AND data_size = ? AND weave_end IS NOT NULL LIMIT 1",
  );
  return {
    tip: () => tip.get() ?? undefined,
    blockAt: (height) => byHeight.get(height) ?? undefined,
    blockOf: (hash) => byHash.get(hash) ?? undefined,
    blocks: (from, to) => range.all(from, to),
    hashes: (from, to) => hashRange.all(from, to).map(({ hash }) => hash),
    transaction: (id) => readRow(byId.get(id)),
    heightOf: (id) => height.get(id)?.height,
    holding: (end) => {
      const found = readRow(byEnd.get(end));
      if (found?.data === undefined) return undefined;
      return found.data.weaveEnd - found.data.size < end ? found : undefined;
    },
    hasData: ({ root, size }) => byData.get(root, size) !== null,
    ...createHistoryWriter(database),
  };
}

function createHistoryWriter(database: Database): Pick<History, "add" | "cut"> {
  const insertBlock = database.query<null, [number, string, string]>(
    "INSERT INTO blocks (height, hash, text) VALUES (?, ?, ?)",
  );
  type Values = [string, number, number, string, string, number, number | null, Uint8Array | null];
  const insertTransaction = database.query<null, Values>(
    "INSERT INTO transactions (id, height, position, text, data_root, data_size, weave_end, tx_path) " +
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
  );
  const cutBlocks = database.query<null, [number]>("DELETE FROM blocks WHERE height > ?");
  const cutTransactions = database.query<null, [number]>("DELETE FROM transactions WHERE height > ?");
  return {
    add: (block, transactions) => {
      insertBlock.run(block.height, block.hash, block.text);
      for (const { id, height, position, text, data } of transactions) {
        const { root = "", size = 0, weaveEnd = null, txPath = null } = data ?? {};
        insertTransaction.run(id, height, position, text, root, size, weaveEnd, txPath);
      }
    },
    cut: (height) => {
      cutBlocks.run(height);
      cutTransactions.run(height);
    },
  };
}

function readRow(row: TransactionRow | null): MinedTransaction | undefined {
  if (row === null) return undefined;
  const { id, height, position, text } = row;
  const data =
    row.weave_end === null || row.tx_path === null
      ? undefined
      : { root: row.data_root, size: row.data_size, weaveEnd: row.weave_end, txPath: row.tx_path };
  return { id, height, position, text, data };
}
