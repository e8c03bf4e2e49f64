/**
 * Mining: choosing from what waits, and turning it into the next block in one durable step.
 *
 * Source: ArweaveTeam/arweave, ar_tx_replay_pool (pick_txs_to_mine), ar_node_utils (update_accounts).
 * @module
 */
import { type Block, blockTransactionsMax } from "../../arweave/block.ts";
import type { Transaction } from "../../arweave/transaction.ts";
import { buildTxTree, type TxTree } from "../../arweave/tx-root.ts";
import { assert } from "../../lib/assert.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { unixSeconds } from "../../lib/clock.ts";
import { accountTreeRoot } from "./account-tree.ts";
import { type AccountOverlay, applyTransaction, createAccountOverlay, credit } from "./accounts.ts";
import { makeBlock, type Recall } from "./blocks.ts";
import { emptyDataRoot } from "./data-tree.ts";
import { minerShare } from "./fees.ts";
import type { MinedTransaction } from "./history.ts";
import type { PendingTransaction } from "./mempool.ts";
import { anchorFault, inlineDataBytesMax, type RulesView, soundFinding, transactionFaults } from "./rules.ts";
import { type ChainState, change, readTip, rulesView, writeAccounts } from "./state.ts";

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
