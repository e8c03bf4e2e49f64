/**
 * The chain's state on disk, and the part of it that every request needs, in memory.
 *
 * Memory only ever repeats the disk. A change is made in one database transaction; when that fails, memory is read
 * anew, so that the two never differ.
 * @module
 */
import type { Database } from "bun:sqlite";
import { type Block, readBlock } from "../../arweave/block.ts";
import type { Address, Id } from "../../arweave/id.ts";
import type { Wallet } from "../../arweave/wallet.ts";
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Account } from "./accounts.ts";
import { createHistory, type History } from "./chain-history.ts";
import type { RulesView } from "./chain-rules.ts";
import { type ChunkStore, createChunkStore } from "./chunk-store.ts";
import { createMempool, type Mempool } from "./mempool.ts";

/** Blocks whose hashes serve as anchors, and whose transactions may not come again. */
const anchorBlocks = 50;

/** What never changes while a chain is open. */
export type ChainBase = Readonly<{
  database: Database;
  history: History;
  chunks: ChunkStore;
  clock: Clock;
  seed: string;
  miner: Wallet;
}>;

/** The whole state. */
export type ChainState = ChainBase & {
  tip: Block;
  accounts: Map<Address, Account>;
  mempool: Mempool;
  /** Hashes of the last blocks, newest first. */
  recentHashes: readonly string[];
};

/** Joins an open database with what the chain needs besides. */
export function createBase(database: Database, rest: Pick<ChainBase, "clock" | "seed" | "miner">): ChainBase {
  return { database, history: createHistory(database), chunks: createChunkStore(database), ...rest };
}

/** Reads the state. The first block must be there. */
export function loadState(base: ChainBase): ChainState {
  return { ...base, ...readMemory(base) };
}

/** Makes a change durable as a whole, or not at all. */
export function change<Result>(state: ChainState, work: () => Result): Result {
  try {
    return state.database.transaction(work).immediate();
  } catch (error) {
    readAll(state);
    throw error;
  }
}

/** Brings memory up to a block that has been stored. */
export function readTip(state: ChainState): void {
  Object.assign(state, readRecent(state));
}

/** Reads all of memory anew, after a change that left little as it was. */
export function readAll(state: ChainState): void {
  Object.assign(state, readMemory(state));
}

/** What the rules may ask. */
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

/** Keeps accounts as they stand from a height on, on disk and in memory. */
export function writeAccounts(state: ChainState, height: number, accounts: ReadonlyMap<Address, Account>): void {
  writeBalances(state, height, accounts);
  for (const [address, account] of accounts) state.accounts.set(address, account);
}

/** Keeps accounts as they stand from a height on, on disk. */
export function writeBalances({ database }: ChainBase, height: number, accounts: ReadonlyMap<Address, Account>): void {
  const insert = database.query<null, [string, number, string, string]>(
    "INSERT INTO balances (address, height, balance, last_tx) VALUES (?, ?, ?, ?) " +
      "ON CONFLICT DO UPDATE SET balance = excluded.balance, last_tx = excluded.last_tx",
  );
  for (const [address, account] of accounts) {
    insert.run(address, height, `${account.balance}`, account.lastTx);
  }
}

/** What an address held after a block, in winston. */
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
