/**
 * Payments in an ERC-20 token: what its contract says that it moved to us, whoever called it.
 *
 * A transaction of many callers moves for many senders; each has a payment of its own. Before it is mined only a plain
 * call of `transfer` shows what it will move.
 * Source: EIP-20; docs/reference/payment.md#sources-of-payments.
 * @module
 */

import { atLeast, atMost } from "../../../lib/bounds.ts";
import type { Fault } from "../../../lib/http-client.ts";
import type { Token, UserAddress } from "../../addresses.ts";
import type { EvmChain, EvmReceipt, EvmTransaction } from "../../evm/chain.ts";
import { readTransferCall, readTransferLogs, type TransferLog } from "../../evm/erc20.ts";
import { destinationInBytes } from "../destinations.ts";
import { bySender, type Outline, type TokenChain } from "../sight.ts";
import { beginningOf } from "./beginning.ts";
import { type EvmPaidReader, lookAtEvm, type Paid } from "./evm-look.ts";
import { type Depths, foundUpTo, nextRange } from "./evm-range.ts";
import { standingOf } from "./evm-standing.ts";

/** What payments in a token are read from. */
export type EvmTokenOptions = Depths &
  Readonly<{
    token: Token;
    address: UserAddress;
    /** The token's contract. */
    contract: UserAddress;
    evm: EvmChain;
  }>;

/** Blocks whose logs are asked for at once; servers have limits of their own, which are found by trying. */
const blocksAskedMax = 500;

/** Blocks looked through again: of several servers behind one address one may not have had the newest. */
const blocksRepeated = 32;

/** Creates the chain of a token. */
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
    standing: (block, signal) => standingOf(evm, block, signal),
    beginsAt: beginningOf,
    scan: async (cursor, signal) => {
      const range = await nextRange(evm, depths, cursor, signal);
      if (range.kind !== "range") return range;
      if (range.first > range.last) return await foundUpTo(evm, range, range.last, [], signal);
      const asked = await ask(atLeast(range.first - blocksRepeated, range.from), range, signal);
      if (asked.kind === "trouble") return asked;
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

type AskedLogs = Readonly<{ kind: "logs"; logs: readonly TransferLog[]; last: number }>;

/** Asks for logs in as large ranges as the server gives. */
function createLogQuestions(evm: EvmChain, { address, contract }: Receiver) {
  let span = blocksAskedMax;
  return async (
    begin: number,
    range: Readonly<{ first: number; last: number }>,
    signal: AbortSignal,
  ): Promise<AskedLogs | Fault> => {
    for (;;) {
      const first = atLeast(begin, range.first - span + 1);
      const last = atMost(range.last, range.first + span - 1);
      const asked = await evm.transfersTo({ contract, to: address, first, last }, signal);
      if (asked.kind === "ok") {
        span = atMost(span * 2, blocksAskedMax);
        return { kind: "logs", logs: asked.value, last };
      }
      const isTooMuch = asked.reason === "status" || asked.reason === "too_large";
      if (!isTooMuch || span === 1) return asked;
      span = (span - (span % 2)) / 2;
    }
  };
}
