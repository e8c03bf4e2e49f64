/**
 * Blocks, mined transactions, and the place of their data in the weave.
 * @module
 */
import type { Database } from "bun:sqlite";
import type { DataKey } from "./chunk-store.ts";

/** A block as it is stored. */
export type BlockRow = Readonly<{ height: number; hash: string; text: string }>;

/** A mined transaction as it is stored. */
export type MinedTransaction = Readonly<{
  id: string;
  height: number;
  position: number; // in the block's list
  text: string; // the JSON that a node sends, without data
  data: MinedData | undefined; // absent without data
}>;

/** Place of a mined transaction's data: bytes `[weaveEnd - size, weaveEnd)` of the weave. */
export type MinedData = DataKey & Readonly<{ weaveEnd: number; txPath: Uint8Array }>;

/** Reading and writing what is mined. */
export type History = Readonly<{
  tip: () => BlockRow | undefined;
  blockAt: (height: number) => BlockRow | undefined;
  blockOf: (hash: string) => BlockRow | undefined;
  /** Blocks of a range of heights, both inclusive, newest first. */
  blocks: (from: number, to: number) => readonly BlockRow[];
  /** The hashes of such a range. */
  hashes: (from: number, to: number) => readonly string[];
  transaction: (id: string) => MinedTransaction | undefined;
  heightOf: (id: string) => number | undefined;
  /** The transaction whose data holds the byte before `end` of the weave (chunks are asked for by 1-based offset). */
  holding: (end: number) => MinedTransaction | undefined;
  hasData: (key: DataKey) => boolean;
  add: (block: BlockRow, transactions: readonly MinedTransaction[]) => void;
  /** Forgets every block above a height. */
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

/** Makes the history over an open database. */
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
