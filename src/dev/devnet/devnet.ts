/**
 * The development chain: the rules of the chain on one machine, with blocks in milliseconds.
 *
 * The same seed, wallets, calls and clock give the same blocks. Everything is durable, unless the chain is opened
 * without a folder. The routes convert the results to the responses of a node.
 * @module
 */
import type { Database } from "bun:sqlite";
import type { Block } from "../../arweave/block.ts";
import { type Address, readAddress } from "../../arweave/id.ts";
import { readTransactionHeader } from "../../arweave/transaction.ts";
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import { yieldToEventLoop } from "../../lib/event-loop.ts";
import { type Log, silentLog } from "../../lib/log.ts";
import { type MakeRsaJwk, makeRsaJwk } from "../../lib/rsa.ts";
import { createAccountOverlay, credit } from "./accounts.ts";
import { type StoredChunk, wholeData, writeData } from "./chunk-store.ts";
import type { BlockRow, MinedTransaction } from "./database.ts";
import { openDevnetDatabase } from "./database.ts";
import { genesisBalanceHeight, type Miner, type MiningMode, mineBlock, openMiner, writeGenesis } from "./mining.ts";
import { type ChunkOutcome, createIntake, type Intake, type TransactionOutcome } from "./node-intake.ts";
import { balanceAt, type ChainState, change, createBase, loadState, readAll, writeAccounts } from "./state.ts";
import { type GivenWallet, givenWallet, minerWallet, ownWallets, type TestWallet } from "./wallets.ts";

export type DevnetOptions = Readonly<{
  /** The chain's own folder, created if needed; `undefined` uses memory only. */
  dir: string | undefined;
  /** Any text. Chains with different seeds share no block and no key. */
  seed: string;
  clock: Clock;
  mining: MiningMode;
  /** Wallets that start with funds; by default an RSA-4096 wallet in the folder, and an ECDSA wallet of the seed. */
  wallets?: readonly GivenWallet[];
  /** Generates the RSA key if the folder has none. */
  makeRsaKey?: MakeRsaJwk;
  log?: Log;
}>;

export type Devnet = ChainQueries &
  Readonly<{
    wallets: readonly TestWallet[];
    isProcessed: (id: string) => boolean;
    /** Accepts the JSON of a transaction. */
    postTransaction: (text: string) => Promise<TransactionOutcome>;
    /** Accepts the JSON of a chunk, also before or after the block of its transaction. */
    postChunk: (text: string) => ChunkOutcome;
    /**
     * Mines blocks; the first includes the pending transactions.
     *
     * @param count - 1 to 10,000.
     * @throws Failure `malformed_input`; `busy` when the chain is closed meanwhile.
     */
    mine: (count: number) => Promise<Block>;
    /**
     * Mints tokens for an address, without a block.
     *
     * @param amount - Winston, above 0.
     * @returns The new balance.
     * @throws Failure `malformed_input` for an invalid address or amount.
     */
    mint: (address: string, amount: bigint) => bigint;
    /** Removes all blocks except the first. */
    reset: () => void;
    /** Stops mining and closes the files. */
    close: () => void;
  }>;

/** Maximum number of blocks of one call: 20 s at 2 ms a block. */
const mineCountMax = 10_000;

/**
 * Opens the chain of a folder, and creates it if needed.
 *
 * @throws Failure `malformed_input` when the folder has a chain of another version or seed, or an invalid key; `busy`
 *   when another process has the folder open.
 */
export async function openDevnet(options: DevnetOptions): Promise<Devnet> {
  const database = openDevnetDatabase(options.dir);
  try {
    return await openOn(database, options);
  } catch (error) {
    database.close();
    throw error;
  }
}

/** The folder is locked: no other process creates its wallets or its first block. */
async function openOn(database: Database, options: DevnetOptions): Promise<Devnet> {
  const { dir, seed, clock, log = silentLog } = options;
  const wallets = options.wallets?.map(givenWallet) ?? (await ownWallets(dir, seed, options.makeRsaKey ?? makeRsaJwk));
  const base = createBase(database, { clock, seed, miner: minerWallet(seed) });
  if (base.history.tip() === undefined)
    await writeGenesis(
      base,
      wallets.map(({ address }) => address),
    );
  const state = loadState(base);
  if (state.tip.fields["reward_addr"] !== base.miner.address)
    throw new Failure("malformed_input", { reason: "the folder has a chain with another seed", dir });
  const intake = createIntake(state);
  const miner = openMiner(options.mining, {
    waiting: () => state.mempool.size(),
    mine: () => mineBlock(state).txs.length,
    log,
  });
  const closing = new AbortController();
  return {
    wallets,
    ...createQueries(state),
    ...createActions(state, intake, miner),
    mine: (count) => mineMany(state, count, closing.signal),
    close: () => {
      closing.abort(new Failure("busy", { reason: "the chain was closed" }));
      miner.close();
      database.close();
    },
  };
}

type Actions = Pick<Devnet, "isProcessed" | "postTransaction" | "postChunk" | "mint" | "reset">;

function createActions(state: ChainState, intake: Intake, miner: Miner): Actions {
  return {
    isProcessed: intake.isProcessed,
    postTransaction: async (text) => {
      const outcome = await intake.takeTransaction(text);
      if (outcome.kind === "accepted") miner.arrived();
      return outcome;
    },
    postChunk: intake.takeChunk,
    mint: (address, amount) => mint(state, readAddress(address), amount),
    reset: () => {
      intake.clear();
      reset(state);
    },
  };
}

async function mineMany(state: ChainState, count: number, closed: AbortSignal): Promise<Block> {
  if (!Number.isSafeInteger(count) || count < 1 || count > mineCountMax) {
    throw new Failure("malformed_input", { reason: `invalid number of blocks: expected 1 to ${mineCountMax}` });
  }
  let block = mineBlock(state);
  for (let mined = 1; mined < count; mined += 1) {
    await yieldToEventLoop();
    closed.throwIfAborted();
    block = mineBlock(state);
  }
  return block;
}

function mint(state: ChainState, address: Address | undefined, amount: bigint): bigint {
  if (address === undefined || amount <= 0n) {
    throw new Failure("malformed_input", {
      reason: "invalid mint: expected an address of 43 characters and an amount of winston above 0",
    });
  }
  const overlay = createAccountOverlay(state.accounts);
  credit(overlay, address, amount);
  change(state, () => writeAccounts(state, state.tip.height, overlay.changes));
  return state.accounts.get(address)?.balance ?? 0n;
}

function reset(state: ChainState): void {
  change(state, () => {
    state.history.cut(0);
    state.mempool.clear();
    state.database.run("DELETE FROM balances WHERE height > ?", [genesisBalanceHeight]);
    const first = state.history.holding(1)?.data;
    if (first !== undefined) state.chunks.dropAllBut(first);
    readAll(state);
  });
}

/** The status of a transaction. */
export type TransactionFinding =
  | Readonly<{ kind: "mined"; transaction: MinedTransaction }>
  | Readonly<{ kind: "pending" }>
  | Readonly<{ kind: "rejected"; codes: readonly string[] }>
  | Readonly<{ kind: "unknown" }>;

/** A chunk with its proofs and its place in the weave. */
export type WeaveChunk = StoredChunk & Readonly<{ txPath: Uint8Array; weaveEnd: number /* after its last byte */ }>;

export type ChainQueries = Readonly<{
  /** Milliseconds since the Unix epoch, by the chain's clock. */
  now: () => number;
  height: () => number;
  tipHash: () => string;
  /** The recommended anchor: the hash of a block six blocks deep, or of the first block. */
  suggestedAnchor: () => string;
  weaveSize: () => bigint;
  blockAt: (height: number) => BlockRow | undefined;
  blockOf: (hash: string) => BlockRow | undefined;
  /** Blocks of a range of heights, both inclusive, newest first. */
  blocks: (from: number, to: number) => readonly BlockRow[];
  /** The hashes of a range of heights, both inclusive, newest first. */
  hashes: (from: number, to: number) => readonly string[];
  transaction: (id: string) => TransactionFinding;
  /** The JSON that a node sends for a mined or pending transaction. */
  written: (id: string) => Promise<string | undefined>;
  pendingIds: () => readonly string[];
  /** The chunk with a byte of the weave. @param offset - 1-based. */
  chunkAt: (offset: number) => WeaveChunk | undefined;
  /** The chunk with a byte of a transaction's data, also of a pending transaction. */
  chunkOf: (id: string, byte: number) => StoredChunk | undefined;
  /** The chunks of a mined transaction in order; `undefined` while chunks are missing (see `wholeData`). */
  chunksOf: (transaction: MinedTransaction) => Iterable<StoredChunk> | undefined;
  account: (address: Address) => Readonly<{ balance: bigint; lastTx: string }> | undefined;
  balanceAt: (address: Address, height: number) => bigint;
  /** Total balance of all accounts, winston. */
  supply: () => bigint;
}>;

/** The field of a stored text that gets the data. */
const noData = '"data":""';

/** Depth of the suggested anchor. Blocks. */
const anchorDepth = 6;

export function createQueries(state: ChainState): ChainQueries {
  const { history, clock } = state;
  return {
    now: clock,
    height: () => state.tip.height,
    tipHash: () => state.tip.hash,
    suggestedAnchor: () => state.recentHashes[Math.min(state.recentHashes.length, anchorDepth) - 1] ?? "",
    weaveSize: () => state.tip.weaveSize,
    blockAt: history.blockAt,
    blockOf: history.blockOf,
    blocks: history.blocks,
    hashes: history.hashes,
    transaction: (id) => findTransaction(state, id),
    written: (id) => write(state, id),
    pendingIds: () => state.mempool.list().map(({ transaction }) => transaction.id),
    chunkAt: (offset) => weaveChunk(state, offset),
    chunkOf: (id, byte) => {
      const data = state.mempool.get(id)?.data ?? history.transaction(id)?.data;
      return data === undefined ? undefined : state.chunks.at(data, byte);
    },
    chunksOf: ({ data }) => (data === undefined ? [] : wholeData(state.chunks, data)),
    account: (address) => state.accounts.get(address),
    balanceAt: (address, height) => balanceAt(state, address, height),
    supply: () => state.accounts.values().reduce((sum, { balance }) => sum + balance, 0n),
  };
}

function findTransaction(state: ChainState, id: string): TransactionFinding {
  const transaction = state.history.transaction(id);
  if (transaction !== undefined) return { kind: "mined", transaction };
  if (state.mempool.get(id) !== undefined) return { kind: "pending" };
  const codes = state.mempool.rejection(id);
  return codes === undefined ? { kind: "unknown" } : { kind: "rejected", codes };
}

function weaveChunk(state: ChainState, offset: number): WeaveChunk | undefined {
  const holder = state.history.holding(offset);
  if (holder?.data === undefined) return undefined;
  const { weaveEnd, size, txPath } = holder.data;
  const start = weaveEnd - size;
  const found = state.chunks.at(holder.data, offset - 1 - start);
  return found && { ...found, txPath, weaveEnd: start + found.end };
}

/** The JSON of a transaction. A node sends the data of format 1 with it, which is stored only as chunks. */
async function write(state: ChainState, id: string): Promise<string | undefined> {
  const pending = state.mempool.get(id);
  const mined = pending === undefined ? state.history.transaction(id) : undefined;
  const text = pending?.transaction.text ?? mined?.text;
  const key = pending?.data ?? mined?.data;
  if (text === undefined || key === undefined || readTransactionHeader(text).format === 2) return text;
  const place = text.indexOf(noData); // never within a string, where a quote is escaped
  if (place === -1) return text; // stored with its data, by an earlier version
  const chunks = wholeData(state.chunks, key);
  assert(chunks !== undefined, "data of format 1 comes with its transaction");
  const at = place + noData.length - 1;
  return text.slice(0, at) + (await writeData(chunks, key.size)) + text.slice(at);
}
