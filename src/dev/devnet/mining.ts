/**
 * Mining: selects pending transactions and stores the next block in one database transaction; creates the first block;
 * and mines on arrival of a transaction, at an interval, or only on request.
 *
 * The first block has the funded wallets and one small transaction, signed by the miner, so that every later block can
 * prove access to data. It depends only on seed, wallets and time.
 * Source: ArweaveTeam/arweave, ar_tx_replay_pool (pick_txs_to_mine), ar_node_utils (update_accounts).
 * @module
 */
import { type Block, blockTransactionsMax } from "../../arweave/block.ts";
import type { Address } from "../../arweave/id.ts";
import type { Transaction } from "../../arweave/transaction.ts";
import { signTransaction } from "../../arweave/transaction-sign.ts";
import { buildTxTree, type TxTree } from "../../arweave/tx-root.ts";
import { winstonPerAr } from "../../arweave/winston.ts";
import { assert } from "../../lib/assert.ts";
import { decodeBase64url, encodeBase64url } from "../../lib/base64url.ts";
import { utf8Bytes } from "../../lib/bytes.ts";
import { unixSeconds } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import {
  type Account,
  type AccountOverlay,
  accountTreeRoot,
  applyTransaction,
  createAccountOverlay,
  credit,
} from "./accounts.ts";
import { makeBlock, type Recall } from "./block-making.ts";
import {
  anchorFault,
  inlineDataBytesMax,
  minerShare,
  type RulesView,
  soundFinding,
  transactionFaults,
} from "./chain-rules.ts";
import { emptyDataRoot, type SplitData, splitData } from "./chunk-store.ts";
import type { MinedTransaction } from "./database.ts";
import type { PendingTransaction } from "./mempool.ts";
import { type ChainBase, type ChainState, change, readTip, rulesView, writeAccounts, writeBalances } from "./state.ts";

type Choice = Readonly<{ chosen: readonly PendingTransaction[]; accounts: AccountOverlay }>;

/**
 * Mines one block of the pending transactions; it may be empty.
 *
 * Transactions that become invalid are dropped, and their error codes stored.
 */
export function mineBlock(state: ChainState): Block {
  const { chosen, accounts } = choose(state);
  const tree = buildTxTree(chosen.map(placedOf), "padded");
  const block = composeBlock(state, chosen, accounts, tree);
  change(state, () => {
    state.history.add({ height: block.height, hash: block.hash, text: block.text }, minedOf(block, chosen, tree));
    state.mempool.remove(chosen.map(({ transaction }) => transaction.id));
    writeAccounts(state, block.height, accounts.changes);
    readTip(state);
    dropStale(state);
  });
  return block;
}

/** The order of pending transactions: wallet anchors first, then by reward, then by age of the anchor. */
export function miningOrder(waiting: readonly PendingTransaction[], recentHashes: readonly string[]) {
  const ranked = waiting.map((pending) => ({
    pending,
    anchorAge: recentHashes.indexOf(pending.transaction.lastTx),
    isLight: !isHeavy(pending.transaction),
  }));
  ranked.sort((left, right) => {
    const byKind = Number(left.anchorAge !== -1) - Number(right.anchorAge !== -1);
    if (byKind !== 0 || left.anchorAge === -1) return byKind || left.pending.sequence - right.pending.sequence;
    const { reward: leftReward } = left.pending.transaction;
    const { reward: rightReward } = right.pending.transaction;
    return (
      Number(right.isLight) - Number(left.isLight) ||
      (leftReward === rightReward ? 0 : leftReward > rightReward ? -1 : 1) ||
      right.anchorAge - left.anchorAge ||
      left.pending.sequence - right.pending.sequence
    );
  });
  return ranked.map(({ pending }) => pending);
}

/** Format 1 with data is mined last: the data is part of the block. */
function isHeavy({ format, dataSize }: Transaction): boolean {
  return format === 1 && dataSize > 100;
}

function choose(state: ChainState): Choice {
  const accounts = createAccountOverlay(state.accounts);
  const ids = new Set<string>();
  const view: RulesView = { ...rulesView(state), accounts, isPending: (id) => ids.has(id) };
  const chosen: PendingTransaction[] = [];
  let inlineBytes = 0;
  for (const pending of miningOrder(state.mempool.list(), state.recentHashes)) {
    const { transaction } = pending;
    const size = transaction.format === 1 ? transaction.dataSize : 0;
    if (chosen.length === blockTransactionsMax) break;
    if (inlineBytes + size > inlineDataBytesMax || !isMineable(transaction, view)) continue;
    applyTransaction(accounts, transaction);
    ids.add(transaction.id);
    inlineBytes += size;
    chosen.push(pending);
  }
  return { chosen, accounts };
}

function isMineable(transaction: Transaction, view: RulesView): boolean {
  if (transactionFaults(transaction, soundFinding, view.accounts).length > 0) return false;
  return anchorFault(transaction, view) === undefined;
}

function composeBlock(
  state: ChainState,
  chosen: readonly PendingTransaction[],
  accounts: AccountOverlay,
  tree: TxTree,
): Block {
  const { tip, miner, seed, clock } = state;
  const fees = chosen.map(({ transaction }) => transaction.reward);
  const reward = fees.reduce((sum, fee) => sum + minerShare(fee), 0n);
  const toEndowment = fees.reduce((sum, fee) => sum + fee - minerShare(fee), 0n);
  if (reward > 0n) credit(accounts, miner.address, reward);
  const draft = {
    previous: tip,
    // Timestamps never decrease, even if the clock is set back.
    timestamp: Math.max(tip.timestamp, unixSeconds(clock)),
    txs: chosen.map(({ transaction }) => transaction.id),
    txRoot: tree.root,
    size: tree.size,
    accountsRoot: accountTreeRoot(new Map([...state.accounts, ...accounts.changes])),
    endowment: BigInt(`${tip.fields["reward_pool"]}`) + toEndowment,
    reward,
    recall: recallOf(state),
  };
  return makeBlock(draft, miner, seed);
}

function placedOf({ transaction, data }: PendingTransaction) {
  const empty = transaction.format === 1 ? encodeBase64url(emptyDataRoot()) : "";
  return {
    id: transaction.id,
    format: transaction.format,
    dataSize: transaction.dataSize,
    dataRoot: data?.root ?? empty,
  };
}

function minedOf(block: Block, chosen: readonly PendingTransaction[], tree: TxTree): MinedTransaction[] {
  const start = block.weaveSize - block.blockSize;
  const places = new Map(tree.places.map((place) => [place.id, place]));
  return chosen.map(({ transaction, data }, position) => {
    const { id, text } = transaction;
    const place = places.get(id);
    assert(place !== undefined, "every transaction of a block has a place");
    const placed = data && { ...data, weaveEnd: Number(start + place.end), txPath: place.path() };
    return { id, height: block.height, position, text, data: placed };
  });
}

/** The proof of access is of the first block's chunk: other chunks may be missing, and would make every block large. */
function recallOf(state: ChainState): Recall | undefined {
  const first = state.history.holding(1);
  if (first?.data === undefined) return undefined;
  const stored = state.chunks.at(first.data, 0);
  if (stored === undefined) return undefined;
  const { chunk, dataPath } = stored;
  return { byte: BigInt(first.data.weaveEnd - first.data.size), chunk, dataPath, txPath: first.data.txPath };
}

/** Drops transactions that the new block made invalid: spent funds, used or expired anchors. */
function dropStale(state: ChainState): void {
  const view = { ...rulesView(state), isPending: () => false };
  for (const { transaction, data } of state.mempool.list()) {
    const codes: string[] = transactionFaults(transaction, soundFinding, state.accounts).map(({ code }) => code);
    if (codes.length === 0 && anchorFault(transaction, view) !== undefined) codes.push("last_tx_not_valid");
    if (codes.length === 0) continue;
    state.mempool.reject(transaction.id, codes);
    state.mempool.remove([transaction.id]);
    const isUnused = data !== undefined && !state.mempool.hasData(data) && !state.history.hasData(data);
    if (isUnused) state.chunks.drop(data);
  }
}

/** Balance of each funded wallet in the first block: a million AR, in winston. */
const fundsAtStart = 1_000_000n * winstonPerAr;

/** Height of the stored first balances: before any block, so that a reset restores them. */
export const genesisBalanceHeight = -1;

const greeting = "A chain for development: the rules are real, the coins are not.\n";

/**
 * Creates and stores the first block.
 *
 * @param funded - Addresses that start with funds.
 */
export async function writeGenesis(base: ChainBase, funded: readonly Address[]): Promise<void> {
  const split = await splitData(encodeBase64url(utf8Bytes(greeting)));
  assert(split !== undefined, "the greeting is data");
  const transaction = greetingTransaction(base, split);
  const tree = buildTxTree([transaction], "padded");
  const [place] = tree.places;
  assert(place !== undefined, "the first transaction has a place");
  const accounts = new Map<Address, Account>(funded.map((address) => [address, { balance: fundsAtStart, lastTx: "" }]));
  const draft = {
    previous: undefined,
    timestamp: unixSeconds(base.clock),
    txs: [transaction.id],
    txRoot: tree.root,
    size: tree.size,
    accountsRoot: accountTreeRoot(accounts),
    endowment: 0n,
    reward: 0n,
    recall: undefined,
  };
  const { height, hash, text } = makeBlock(draft, base.miner, base.seed);
  const data = { ...split.key, weaveEnd: Number(place.end), txPath: place.path() };
  base.database
    .transaction(() => {
      base.history.add({ height, hash, text }, [
        { id: transaction.id, height, position: 0, text: transaction.text, data },
      ]);
      for (const chunk of split.chunks) base.chunks.put(split.key, chunk);
      writeBalances(base, genesisBalanceHeight, accounts);
    })
    .immediate();
}

function greetingTransaction({ miner }: ChainBase, { key }: SplitData) {
  const dataRoot = decodeBase64url(key.root) ?? new Uint8Array(0);
  return signTransaction(
    {
      format: 2,
      lastTx: "",
      reward: 0n,
      tags: [{ name: "Content-Type", value: "text/plain" }],
      stated: { dataSize: key.size, dataRoot },
    },
    miner,
  );
}

/** When the chain mines without a request. */
export type MiningMode = "auto" | "manual" | Readonly<{ intervalMs: number }>;

export type Miner = Readonly<{
  /** Notifies the miner of a pending transaction. */
  arrived: () => void;
  close: () => void;
}>;

export type MinerWork = Readonly<{
  waiting: () => number;
  /** Mines one block. @returns How many transactions it took. */
  mine: () => number;
  log: Log;
}>;

/** Wait before a block, so that transactions that arrive together share it. Milliseconds. */
const gatherMs = 5;

/**
 * Maximum burst of blocks. An anchor is valid for 50 blocks: without a limit, the blocks of a client's own batch would
 * invalidate its anchor within a second.
 */
const blocksAtOnceMax = 10;

/** Interval between blocks after the burst: an anchor is then valid for at least 7 s. Milliseconds. */
const blockEveryMs = 200;

/** Starts mining. A failure is logged, and the next arrival or interval tries again. */
export function openMiner(mode: MiningMode, work: MinerWork): Miner {
  if (mode === "manual") return { arrived: () => undefined, close: () => undefined };
  if (mode === "auto") return openAutomatic(work);
  const interval = setInterval(() => attempt(work), mode.intervalMs);
  return { arrived: () => undefined, close: () => clearInterval(interval) };
}

function openAutomatic(work: MinerWork): Miner {
  let atOnce = blocksAtOnceMax;
  let gathering: ReturnType<typeof setTimeout> | undefined;
  let earning: ReturnType<typeof setTimeout> | undefined;

  const arrived = () => {
    if (gathering === undefined && atOnce > 0 && work.waiting() > 0) gathering = setTimeout(mine, gatherMs);
  };
  const mine = () => {
    gathering = undefined;
    atOnce -= 1;
    earning ??= setTimeout(earn, blockEveryMs);
    // Transactions that did not fit into the block go into the next.
    if (attempt(work) > 0) arrived();
  };
  const earn = () => {
    atOnce += 1;
    earning = atOnce < blocksAtOnceMax ? setTimeout(earn, blockEveryMs) : undefined;
    arrived();
  };

  arrived();
  return {
    arrived,
    close: () => {
      clearTimeout(gathering);
      clearTimeout(earning);
    },
  };
}

function attempt({ mine, log }: MinerWork): number {
  try {
    return mine();
  } catch (error) {
    log.error("a block could not be mined", { error });
    return 0;
  }
}
