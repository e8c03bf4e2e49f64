/**
 * Payments in the coin of an EVM chain: transactions whose recipient we are.
 *
 * What contracts send is in no transaction of its own and is not seen. Payments that nobody reported are found in
 * whole blocks, which are large; an account of a plain key shows by its balance and its nonce whether they hold any.
 * Source: docs/reference/payment.md#sources-of-payments.
 * @module
 */
import { type Fault, fault } from "../../../lib/http-client.ts";
import type { Token, UserAddress } from "../../addresses.ts";
import { readTransferCall, readTransferLogs, type TransferLog } from "../../evm/authorization.ts";
import type { EvmAccount, EvmChain, EvmReceipt, EvmTransaction } from "../../evm/evm-chain.ts";
import {
  type BlockRef,
  beginningOf,
  bySender,
  destinationInBytes,
  type Found,
  type MinedObservation,
  type Observation,
  type Outline,
  type TokenChain,
  type TransferStatus,
} from "../token-chain.ts";
import { type Depths, foundUpTo, nextRange } from "./block-range.ts";

type EvmCoinOptions = Depths &
  Readonly<{
    token: Token;
    address: UserAddress;
    evm: EvmChain;
  }>;

/** Blocks read in one step; a busy one has 300 KB. */
const blocksReadMax = 16;

/** Blocks passed over in one step when nothing in them can be ours. */
const blocksPassedMax = 4_096;

export function createEvmCoin({ token, address, evm, ...depths }: EvmCoinOptions): TokenChain {
  // The amount is in the transaction itself, in a block or not.
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
    if (payments.value === undefined) return fault("status", `there is no block ${height} any more`);
    ids.push(...payments.value.transactions);
  }
  return await foundUpTo(evm, range, last, ids, signal);
}

/**
 * Whether anything can have been paid after one block until another: a plain key's balance falls only by transactions
 * of its own, which raise its nonce. Servers may have forgotten how an account was.
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

// Payments in an ERC-20 token: what its contract says that it moved to us, whoever called it.
//
// A transaction of many callers moves for many senders; each has a payment of its own. Before it is mined only a plain
// call of `transfer` shows what it will move.
// Source: EIP-20; docs/reference/payment.md#sources-of-payments.

type EvmTokenOptions = Depths &
  Readonly<{
    token: Token;
    address: UserAddress;
    /** The token's contract. */
    contract: UserAddress;
    evm: EvmChain;
  }>;

/** Blocks whose logs are asked for at once; servers have limits of their own, which are found by trying. */
const blocksPerQueryMax = 500;

/** Blocks looked through again: of several servers behind one address one may not have had the newest. */
const blocksRepeated = 32;

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
      // Transfers of nothing are made in order to be seen.
      const ids = asked.logs.filter(({ amount }) => amount > 0n).map((log) => log.transactionHash);
      return await foundUpTo(evm, range, asked.last, ids, signal);
    },
  };
}

type Receiver = Readonly<{ address: UserAddress; contract: UserAddress }>;

/** A call of `transfer`, as it presents itself. */
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
  // A transfer that was not carried out has no logs; what it meant is in its call.
  if (!receipt.succeeded) return { transfers: call?.transfers ?? [], outline: call?.outline ?? outline };
  const moves = logs.filter(({ to }) => to === receiver.address).map(({ from, amount }) => ({ sender: from, amount }));
  return { transfers: bySender(moves, call?.destination), outline: call?.outline ?? outline };
}

function outlineOf({ to, amount }: TransferLog): Outline {
  return { target: to, amount };
}

type LogQuery = Readonly<{ kind: "logs"; logs: readonly TransferLog[]; last: number }>;

/** Asks for logs in as large ranges as the server gives. */
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

// A look at one transaction of an EVM chain, whatever it pays in.

/** The payment of a transaction, and its outline. */
type Paid = Pick<MinedObservation, "transfers" | "outline">;

/** A parser of payments in one coin. */
type EvmPaidReader = Readonly<{
  /** Of a transaction in no block; without `transfers` where only the block will show them. */
  waiting: (transaction: EvmTransaction) => Pick<Extract<Observation, { kind: "waiting" }>, "transfers" | "outline">;
  /** Of one in a block; `undefined` when its logs cannot be read. */
  mined: (transaction: EvmTransaction, receipt: EvmReceipt) => Paid | undefined;
}>;

/** Looks at a transaction. @param id - canonical. */
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
  if (paid === undefined) return fault("malformed", "the logs of a receipt cannot be read");
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

/** Confirmations of a block that is there: of several servers behind one address the next one may be behind it. */
function confirmationsOf(height: number, latest: number): number {
  return Math.max(latest - height + 1, 1);
}

// Whether a block of an EVM chain is still there.

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
