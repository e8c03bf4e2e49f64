/**
 * The state of the chain on disk, and a copy in memory of the part that every request needs.
 *
 * A change is one database transaction. If it fails, the copy is read again, so that memory and disk never differ.
 * @module
 */
import type { Database } from "bun:sqlite";
import { type Block, readBlock } from "../../arweave/block.ts";
import type { Address, Id } from "../../arweave/id.ts";
import type { Wallet } from "../../arweave/wallet.ts";
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Account } from "./accounts.ts";
import type { RulesView } from "./chain-rules.ts";
import { type ChunkStore, createChunkStore } from "./chunk-store.ts";
import { createHistory, type History } from "./database.ts";
import { createMempool, type Mempool } from "./mempool.ts";

/** Number of blocks whose hashes are valid anchors, and whose transactions cannot be repeated. */
const anchorBlocks = 50;

/** The constant parts of an open chain. */
export type ChainBase = Readonly<{
  database: Database;
  history: History;
  chunks: ChunkStore;
  clock: Clock;
  seed: string;
  miner: Wallet;
}>;

export type ChainState = ChainBase & {
  tip: Block;
  accounts: Map<Address, Account>;
  mempool: Mempool;
  /** Hashes of the last blocks, newest first. */
  recentHashes: readonly string[];
};

export function createBase(database: Database, rest: Pick<ChainBase, "clock" | "seed" | "miner">): ChainBase {
  return { database, history: createHistory(database), chunks: createChunkStore(database), ...rest };
}

/** Reads the state. The first block must exist. */
export function loadState(base: ChainBase): ChainState {
  return { ...base, ...readMemory(base) };
}

/** Performs a change in one database transaction. */
export function change<Result>(state: ChainState, work: () => Result): Result {
  try {
    return state.database.transaction(work).immediate();
  } catch (error) {
    readAll(state);
    throw error;
  }
}

/** Updates memory after a block was stored. */
export function readTip(state: ChainState): void {
  Object.assign(state, readRecent(state));
}

/** Reads all of memory again. */
export function readAll(state: ChainState): void {
  Object.assign(state, readMemory(state));
}

export function rulesView(state: ChainState): RulesView {
  return {
    accounts: state.accounts,
    isRecentBlock: (hash) => state.recentHashes.includes(hash),
    isRecentTransaction: (id) => {
      const height = state.history.heightOf(id);
      return height !== undefined && height > state.tip.height - anchorBlocks;
    },
    isPending: (id) => state.mempool.get(id) !== undefined,
  };
}

/** Stores accounts from a height on, on disk and in memory. */
export function writeAccounts(state: ChainState, height: number, accounts: ReadonlyMap<Address, Account>): void {
  writeBalances(state, height, accounts);
  for (const [address, account] of accounts) state.accounts.set(address, account);
}

/** Stores accounts from a height on, on disk. */
export function writeBalances({ database }: ChainBase, height: number, accounts: ReadonlyMap<Address, Account>): void {
  const insert = database.query<null, [string, number, string, string]>(
    "INSERT INTO balances (address, height, balance, last_tx) VALUES (?, ?, ?, ?) " +
      "ON CONFLICT DO UPDATE SET balance = excluded.balance, last_tx = excluded.last_tx",
  );
  for (const [address, account] of accounts) {
    insert.run(address, height, `${account.balance}`, account.lastTx);
  }
}

/** The balance of an address after a block, winston. */
export function balanceAt({ database }: ChainBase, address: Address, height: number): bigint {
  const row = database
    .query<{ balance: string }, [string, number]>(
      "SELECT balance FROM balances WHERE address = ? AND height <= ? ORDER BY height DESC LIMIT 1",
    )
    .get(address, height);
  return BigInt(row?.balance ?? "0");
}

function readMemory(base: ChainBase): Omit<ChainState, keyof ChainBase> {
  return {
    ...readRecent(base),
    accounts: readAccounts(base.database),
    mempool: createMempool(base.database),
  };
}

function readRecent({ history }: ChainBase): Pick<ChainState, "tip" | "recentHashes"> {
  const row = history.tip();
  assert(row !== undefined, "a chain has a first block");
  const hashes = history.hashes(row.height - anchorBlocks + 1, row.height);
  return { tip: readBlock(row.text), recentHashes: hashes };
}

function readAccounts(database: Database): Map<Address, Account> {
  type Row = { address: Address; balance: string; last_tx: Id | "" };
  const rows = database
    .query<Row, []>("SELECT address, max(height), balance, last_tx FROM balances GROUP BY address")
    .all();
  return new Map(rows.map(({ address, balance, last_tx: lastTx }) => [address, { balance: BigInt(balance), lastTx }]));
}
