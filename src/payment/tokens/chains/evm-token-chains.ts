/**
 * Payments on EVM chains, in the coin and in ERC-20 tokens.
 *
 * A payment in the coin is a transaction to the watched address. Transfers by contracts have no transaction of their
 * own and are not found. The scan reads complete blocks, which are large; the balance and the nonce of an account with
 * a plain key show whether a range of blocks contains payments.
 * Source: docs/reference/payment.md#sources-of-payments.
 * @module
 */
import { type Fault, fault } from "../../../lib/http-client.ts";
import { isJsonObject, readJson, writeJson } from "../../../lib/json.ts";
import type { Token, UserAddress } from "../../addresses.ts";
import { readTransferCall, readTransferLogs, type TransferLog } from "../../evm/authorization.ts";
import type { EvmAccount, EvmChain, EvmReceipt, EvmTransaction } from "../../evm/evm-chain.ts";
import {
  type BlockRef,
  beginningOf,
  bySender,
  type Depths,
  destinationInBytes,
  type Found,
  type MinedObservation,
  type Observation,
  type Outline,
  type TokenChain,
  type TransferStatus,
} from "../token-chain.ts";

type EvmCoinOptions = Depths &
  Readonly<{
    token: Token;
    address: UserAddress;
    evm: EvmChain;
  }>;

/** Blocks read in one step; a busy block has 300 KB. */
const blocksReadMax = 16;

/** Blocks skipped in one step when they cannot contain a payment. */
const blocksPassedMax = 4_096;

export function createEvmCoin({ token, address, evm, ...depths }: EvmCoinOptions): TokenChain {
  // The transaction contains the amount, also before it is mined.
  const paid = (transaction: EvmTransaction) => paidBy(transaction, address);
  return {
    token,
    addressType: "ethereum",
    address,
    ...depths,
    look: (id, signal) => lookAtEvm(evm, { waiting: paid, mined: paid }, id, signal),
    status: (block, signal) => statusOf(evm, block, signal),
    scan: (cursor, signal) => scan(evm, address, depths, cursor, signal),
    beginsAt: beginningOf,
  };
}

function paidBy({ from, to, value, input }: EvmTransaction, address: UserAddress): Paid {
  const outline = { target: to ?? "", amount: value };
  if (to !== address) return { transfers: [], outline };
  return { transfers: [{ sender: from, amount: value, destination: destinationInBytes(input) }], outline };
}

async function scan(
  evm: EvmChain,
  address: UserAddress,
  depths: Depths,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<Found | Fault> {
  const range = await nextRange(evm, depths, cursor, signal);
  if (range.kind !== "range") return range;
  const { first } = range;
  let last = Math.min(range.last, first + blocksPassedMax - 1);
  while (first <= last) {
    const change = await changeOf(evm, address, first - 1, last, signal);
    if (change === "none") return await foundUpTo(evm, range, last, [], signal);
    if (last - first < blocksReadMax) break;
    const count = change === "unknown" ? 0 : halfOf(last - first + 1);
    last = first - 1 + Math.max(count, blocksReadMax);
  }
  const ids: string[] = [];
  for (let height = first; height <= last; height += 1) {
    const payments = await evm.paymentsTo(address, height, signal);
    if (payments.kind === "fault") return payments;
    if (payments.value === undefined) return fault("status", `block ${height} is gone`);
    ids.push(...payments.value.transactions);
  }
  return await foundUpTo(evm, range, last, ids, signal);
}

/**
 * Whether a payment is possible between two blocks: the balance of a plain key falls only by its own transactions,
 * which raise its nonce. Servers may no longer have the old state of an account.
 */
async function changeOf(
  evm: EvmChain,
  address: UserAddress,
  before: number,
  after: number,
  signal: AbortSignal,
): Promise<"none" | "some" | "unknown"> {
  if (before < 0) return "unknown";
  const [old, now] = await Promise.all([evm.account(address, before, signal), evm.account(address, after, signal)]);
  if (old.kind === "fault" || now.kind === "fault") return "unknown";
  return isSame(old.value, now.value) ? "none" : "some";
}

function isSame(one: EvmAccount, other: EvmAccount): boolean {
  if (one.hasCode || other.hasCode) return false;
  return one.balance === other.balance && one.nonce === other.nonce;
}

function halfOf(count: number): number {
  return (count + (count % 2)) / 2;
}

type EvmTokenOptions = Depths &
  Readonly<{
    token: Token;
    address: UserAddress;
    /** The token's contract. */
    contract: UserAddress;
    evm: EvmChain;
  }>;

/** Blocks of one request for logs; the limits of servers are found by trial. */
const blocksPerQueryMax = 500;

/** Blocks scanned again: one of several servers behind an address may not have had the newest block. */
const blocksRepeated = 32;

/**
 * Payments in an ERC-20 token: the transfer events of its contract to the watched address, by any caller.
 *
 * One transaction may transfer for several senders; each sender has its own payment. Before it is mined, only a plain
 * call of `transfer` shows its amount.
 * Source: EIP-20; docs/reference/payment.md#sources-of-payments.
 */
export function createEvmToken({ token, address, contract, evm, ...depths }: EvmTokenOptions): TokenChain {
  const receiver = { address, contract };
  const ask = createLogQuestions(evm, receiver);
  const reader: EvmPaidReader = {
    waiting: (transaction) => waiting(transaction, receiver),
    mined: (transaction, receipt) => moved(transaction, receipt, receiver),
  };
  return {
    token,
    addressType: "ethereum",
    address,
    ...depths,
    look: (id, signal) => lookAtEvm(evm, reader, id, signal),
    status: (block, signal) => statusOf(evm, block, signal),
    beginsAt: beginningOf,
    scan: async (cursor, signal) => {
      const range = await nextRange(evm, depths, cursor, signal);
      if (range.kind !== "range") return range;
      if (range.first > range.last) return await foundUpTo(evm, range, range.last, [], signal);
      const asked = await ask(Math.max(range.first - blocksRepeated, range.from), range, signal);
      if (asked.kind === "fault") return asked;
      // Transfers of amount 0 are spam.
      const ids = asked.logs.filter(({ amount }) => amount > 0n).map((log) => log.transactionHash);
      return await foundUpTo(evm, range, asked.last, ids, signal);
    },
  };
}

type Receiver = Readonly<{ address: UserAddress; contract: UserAddress }>;

/** The outline of a call of `transfer`. */
function called({ from, to, input }: EvmTransaction, { address, contract }: Receiver) {
  const call = to === contract ? readTransferCall(input) : undefined;
  if (call === undefined) return undefined;
  const outline: Outline = { target: call.to, amount: call.amount };
  const destination = destinationInBytes(call.rest);
  const transfer = { sender: from, amount: call.amount, destination };
  return { outline, destination, transfers: call.to === address ? [transfer] : [] };
}

function waiting(transaction: EvmTransaction, receiver: Receiver): ReturnType<EvmPaidReader["waiting"]> {
  const call = called(transaction, receiver);
  const outline = call?.outline ?? { target: transaction.to ?? "", amount: 0n };
  return { transfers: call?.transfers, outline };
}

function moved(transaction: EvmTransaction, receipt: EvmReceipt, receiver: Receiver): Paid | undefined {
  const call = called(transaction, receiver);
  const logs = readTransferLogs(receipt.logs, receiver.contract);
  if (logs === undefined) return undefined;
  const [first] = logs;
  const outline = first === undefined ? { target: transaction.to ?? "", amount: 0n } : outlineOf(first);
  // A failed transfer has no logs; its call shows the intended transfer.
  if (!receipt.succeeded) return { transfers: call?.transfers ?? [], outline: call?.outline ?? outline };
  const moves = logs.filter(({ to }) => to === receiver.address).map(({ from, amount }) => ({ sender: from, amount }));
  return { transfers: bySender(moves, call?.destination), outline: call?.outline ?? outline };
}

function outlineOf({ to, amount }: TransferLog): Outline {
  return { target: to, amount };
}

type LogQuery = Readonly<{ kind: "logs"; logs: readonly TransferLog[]; last: number }>;

/** Requests logs in ranges as large as the server allows. */
function createLogQuestions(evm: EvmChain, { address, contract }: Receiver) {
  let span = blocksPerQueryMax;
  return async (
    begin: number,
    range: Readonly<{ first: number; last: number }>,
    signal: AbortSignal,
  ): Promise<LogQuery | Fault> => {
    for (;;) {
      const first = Math.max(begin, range.first - span + 1);
      const last = Math.min(range.last, range.first + span - 1);
      const asked = await evm.transfersTo({ contract, to: address, first, last }, signal);
      if (asked.kind === "ok") {
        span = Math.min(span * 2, blocksPerQueryMax);
        return { kind: "logs", logs: asked.value, last };
      }
      const isTooMuch = asked.reason === "status" || asked.reason === "too_large";
      if (!isTooMuch || span === 1) return asked;
      span = (span - (span % 2)) / 2;
    }
  };
}

/** The payment of a transaction, and its outline. */
type Paid = Pick<MinedObservation, "transfers" | "outline">;

/** A parser of payments in one coin. */
type EvmPaidReader = Readonly<{
  /** For an unmined transaction; without `transfers` when only the block will show them. */
  waiting: (transaction: EvmTransaction) => Pick<Extract<Observation, { kind: "waiting" }>, "transfers" | "outline">;
  /** For a mined transaction; `undefined` when its logs cannot be parsed. */
  mined: (transaction: EvmTransaction, receipt: EvmReceipt) => Paid | undefined;
}>;

/** Reads a transaction. @param id - canonical. */
async function lookAtEvm(
  evm: Pick<EvmChain, "transaction" | "receipt" | "latest">,
  reader: EvmPaidReader,
  id: string,
  signal: AbortSignal,
): Promise<Observation | Fault> {
  const [transaction, receipt] = await Promise.all([evm.transaction(id, signal), evm.receipt(id, signal)]);
  if (transaction.kind === "fault") return transaction;
  if (receipt.kind === "fault") return receipt;
  if (transaction.value === undefined) return { kind: "absent" };
  if (receipt.value === undefined) return { kind: "waiting", ...reader.waiting(transaction.value) };
  const paid = reader.mined(transaction.value, receipt.value);
  if (paid === undefined) return fault("malformed", "invalid logs in a receipt");
  const latest = await evm.latest(signal);
  if (latest.kind === "fault") return latest;
  const { height, blockHash: hash, succeeded } = receipt.value;
  return {
    kind: "mined",
    block: { height, hash },
    confirmations: confirmationsOf(height, latest.value),
    succeeded,
    ...paid,
  };
}

/** Confirmations of a known block: the next of several servers behind an address may be behind it. */
function confirmationsOf(height: number, latest: number): number {
  return Math.max(latest - height + 1, 1);
}

/** Compares the block at this height with the expected hash. */
async function statusOf(
  evm: EvmChain,
  { height, hash }: BlockRef,
  signal: AbortSignal,
): Promise<TransferStatus | Fault> {
  const stored = await evm.blockHash(height, signal);
  if (stored.kind === "fault") return stored;
  if (stored.value === undefined) return { kind: "unknown" };
  const latest = await evm.latest(signal);
  if (latest.kind === "fault") return latest;
  const confirmations = confirmationsOf(height, latest.value);
  return { kind: stored.value === hash ? "unchanged" : "replaced", confirmations };
}

/**
 * Blocks to scan, heights inclusive; `first` > `last`: none.
 *
 * Only confirmed blocks are scanned, so that found payments can be credited. When the last scanned block was replaced,
 * the mark goes back by the deepest possible reorg; finding a payment twice has no effect.
 */
type BlockRange = Readonly<{
  kind: "range";
  /** Blocks below are not scanned: they precede the first accepted payment. */
  from: number;
  first: number;
  /** The newest confirmed block. */
  last: number;
}>;

type Mark = Readonly<{ from: number; height: number; hash: string }>;

/** Finds the next range. Without a valid cursor it begins after the newest block. */
async function nextRange(
  evm: EvmChain,
  { confirmations, finalConfirmations }: Depths,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<BlockRange | Found | Fault> {
  const latest = await evm.latest(signal);
  if (latest.kind === "fault") return latest;
  const last = latest.value - confirmations + 1;
  const mark = readMark(cursor);
  if (cursor === undefined || mark === undefined) {
    const from = latest.value + 1;
    return { kind: "range", from, first: from, last };
  }
  const { from, height } = mark;
  // The server is behind, or the chain has become shorter.
  if (last < height) return { kind: "found", ids: [], cursor, hasMore: false };
  const stored = height < 0 ? noHash : await evm.blockHash(height, signal);
  if (stored.kind === "fault") return stored;
  const done = stored.value === mark.hash ? height : height - finalConfirmations;
  return { kind: "range", from, first: Math.max(done + 1, from), last };
}

/** The result of a scan. @param reached - The last scanned block. */
async function foundUpTo(
  evm: EvmChain,
  range: BlockRange,
  reached: number,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<Found | Fault> {
  const hash = reached < 0 ? noHash : await evm.blockHash(reached, signal);
  if (hash.kind === "fault") return hash;
  if (hash.value === undefined) return fault("status", `block ${reached} is gone`);
  const mark: Mark = { from: range.from, height: reached, hash: hash.value };
  return { kind: "found", ids: [...new Set(ids)], cursor: writeJson(mark), hasMore: reached < range.last };
}

/** A chain that is shorter than its confirmations has no first block. */
const noHash = { kind: "ok", value: "" } as const;

function readMark(cursor: string | undefined): Mark | undefined {
  const mark = cursor === undefined ? undefined : readJson(cursor);
  if (!isJsonObject(mark)) return undefined;
  const { from, height, hash } = mark;
  return typeof from === "number" && typeof height === "number" && typeof hash === "string"
    ? { from, height, hash }
    : undefined;
}
