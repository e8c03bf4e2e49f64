/**
 * Queries of the chain in its own terms; the routes make a node's responses of them.
 * @module
 */
import type { Address } from "../../arweave/id.ts";
import { readTransactionHeader } from "../../arweave/transaction.ts";
import { assert } from "../../lib/assert.ts";
import type { StoredChunk } from "./chunk-store.ts";
import type { BlockRow, MinedTransaction } from "./history.ts";
import { balanceAt, type ChainState } from "./state.ts";
import { wholeData, writeData } from "./whole-data.ts";

/** What is known of a transaction. */
export type TransactionFinding =
  | Readonly<{ kind: "mined"; transaction: MinedTransaction }>
  | Readonly<{ kind: "pending" }>
  | Readonly<{ kind: "rejected"; codes: readonly string[] }>
  | Readonly<{ kind: "unknown" }>;

/** A chunk with everything that proves it, in the weave. */
export type WeaveChunk = StoredChunk & Readonly<{ txPath: Uint8Array; weaveEnd: number /* after its last byte */ }>;

/** Reading the chain. */
export type ChainQueries = Readonly<{
  /** Milliseconds, by the chain's clock. */
  now: () => number;
  height: () => number;
  tipHash: () => string;
  /** The hash that clients are advised to anchor to: six blocks deep, or the first. */
  suggestedAnchor: () => string;
  weaveSize: () => bigint;
  blockAt: (height: number) => BlockRow | undefined;
  blockOf: (hash: string) => BlockRow | undefined;
  /** Blocks of a range of heights, both inclusive, newest first. */
  blocks: (from: number, to: number) => readonly BlockRow[];
  /** The hashes of such a range. */
  hashes: (from: number, to: number) => readonly string[];
  transaction: (id: string) => TransactionFinding;
  /** The JSON that a node sends for a mined or pending transaction. */
  written: (id: string) => Promise<string | undefined>;
  pendingIds: () => readonly string[];
  /** The chunk that covers a byte of the weave, asked for by its 1-based offset. */
  chunkAt: (offset: number) => WeaveChunk | undefined;
  /** A chunk by its transaction and a byte of its data, also before the transaction is mined. */
  chunkOf: (id: string, byte: number) => StoredChunk | undefined;
  /** The chunks of a mined transaction in order, or `undefined` while some are missing (see `wholeData`). */
  chunksOf: (transaction: MinedTransaction) => Iterable<StoredChunk> | undefined;
  account: (address: Address) => Readonly<{ balance: bigint; lastTx: string }> | undefined;
  balanceAt: (address: Address, height: number) => bigint;
  /** Winston of all accounts. */
  supply: () => bigint;
}>;

/** Where the data belongs in a stored text. */
const noData = '"data":""';

/** Depth of the suggested anchor. Blocks. */
const anchorDepth = 6;

/** Makes the queries over a chain's state. */
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

/** Data is stored as chunks alone; a node sends that of format 1 with its transaction. */
async function write(state: ChainState, id: string): Promise<string | undefined> {
  const pending = state.mempool.get(id);
  const mined = pending === undefined ? state.history.transaction(id) : undefined;
  const text = pending?.transaction.text ?? mined?.text;
  const key = pending?.data ?? mined?.data;
  if (text === undefined || key === undefined || readTransactionHeader(text).format === 2) return text;
  const place = text.indexOf(noData); // within no string: there a quote has a backslash before it
  if (place === -1) return text; // stored with its data, by an earlier version
  const chunks = wholeData(state.chunks, key);
  assert(chunks !== undefined, "data of format 1 comes with its transaction");
  const at = place + noData.length - 1;
  return text.slice(0, at) + (await writeData(chunks, key.size)) + text.slice(at);
}
