/**
 * Mining: choosing from what waits, and turning it into the next block in one durable step.
 *
 * The first block: funded wallets, and one small transaction, so that every later block can prove that it has
 * data.
 *
 * It follows from seed, wallets and time alone. The transaction is signed by the miner's key.
 *
 * When blocks are mined: soon after something arrives, at an interval, or only when asked.
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
import type { MinedTransaction } from "./chain-history.ts";
import {
  anchorFault,
  inlineDataBytesMax,
  minerShare,
  type RulesView,
  soundFinding,
  transactionFaults,
} from "./chain-rules.ts";
import { emptyDataRoot, type SplitData, splitData } from "./chunk-store.ts";
import type { PendingTransaction } from "./mempool.ts";
import { type ChainBase, type ChainState, change, readTip, rulesView, writeAccounts, writeBalances } from "./state.ts";

type Choice = Readonly<{ chosen: readonly PendingTransaction[]; accounts: AccountOverlay }>;

/**
 * Mines one block from what waits, also an empty one.
 *
 * Transactions that can no longer be mined afterwards are dropped, and their reasons remembered.
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

/** The order in which waiting transactions are tried: wallet anchors first, then by worth, then by age of anchor. */
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

/** Format 1 with more than a little data is mined last: it makes blocks heavy. */
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
    // Blocks never go back in time, whatever the clock does.
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

/** The miner shows the first block's chunk; any other could be missing, and would make every block large. */
function recallOf(state: ChainState): Recall | undefined {
  const first = state.history.holding(1);
  if (first?.data === undefined) return undefined;
  const stored = state.chunks.at(first.data, 0);
  if (stored === undefined) return undefined;
  const { chunk, dataPath } = stored;
  return { byte: BigInt(first.data.weaveEnd - first.data.size), chunk, dataPath, txPath: first.data.txPath };
}

/** Drops what the new block has made impossible: spent funds, anchors that were used up or have grown too old. */
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

/** What each funded wallet begins with, in winston: a million AR. */
const fundsAtStart = 1_000_000n * winstonPerAr;

/** Height under which the first balances are stored: before any block, so that a reset finds them again. */
export const genesisBalanceHeight = -1;

const greeting = "A chain for development: the rules are real, the coins are not.\n";

/**
 * Makes and stores the first block.
 *
 * @param funded - Addresses that begin with funds.
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

/** How a chain mines besides when it is asked. */
export type MiningMode = "auto" | "manual" | Readonly<{ intervalMs: number }>;

/** Mines by itself until it is closed. */
export type Miner = Readonly<{
  /** Says that a transaction waits. */
  arrived: () => void;
  close: () => void;
}>;

/** What the miner drives. */
export type MinerWork = Readonly<{
  waiting: () => number;
  /** Mines one block. @returns How many transactions it took. */
  mine: () => number;
  log: Log;
}>;

/** Transactions that arrive together should share a block; nobody notices so short a wait. */
const gatherMs = 5;

/**
 * Blocks in a row that are mined at once. An anchor holds for 50 blocks: without a bound, a client that posts a batch
 * with one anchor would outlive it within a second of its own blocks.
 */
const blocksAtOnceMax = 10;

/** After that, one block in so long a time: an anchor then holds for 7 s at the least, and for ever when it is calm. */
const blockEveryMs = 200;

/** Starts mining. A block that cannot be made is logged, and tried again when there is a reason to. */
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
    // What did not fit into one block comes into the next.
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
