/**
 * Payments in the coin of an EVM chain: transactions whose recipient we are.
 *
 * What contracts send is in no transaction of its own and is not seen. Payments that nobody reported are found in
 * whole blocks, which are large; an account of a plain key shows by its balance and its nonce whether they hold any.
 * Source: docs/reference/payment.md#sources-of-payments.
 * @module
 */

import { atLeast, atMost } from "../../../lib/bounds.ts";
import { type Fault, fault } from "../../../lib/http-client.ts";
import type { Token, UserAddress } from "../../addresses.ts";
import type { EvmAccount, EvmChain, EvmTransaction } from "../../evm/chain.ts";
import { destinationInBytes } from "../destinations.ts";
import type { Found, TokenChain } from "../sight.ts";
import { beginningOf } from "./beginning.ts";
import { lookAtEvm, type Paid } from "./evm-look.ts";
import { type Depths, foundUpTo, nextRange } from "./evm-range.ts";
import { standingOf } from "./evm-standing.ts";

/** What payments in a coin are read from. */
export type EvmCoinOptions = Depths &
  Readonly<{
    token: Token;
    address: UserAddress;
    evm: EvmChain;
  }>;

/** Blocks read in one step; a busy one has 300 KB. */
const blocksReadMax = 16;

/** Blocks passed over in one step when nothing in them can be ours. */
const blocksPassedMax = 4_096;

/** Creates the chain of a coin. */
export function createEvmCoin({ token, address, evm, ...depths }: EvmCoinOptions): TokenChain {
  // What it pays stands in the transaction itself, in a block or not.
  const paid = (transaction: EvmTransaction) => paidBy(transaction, address);
  return {
    token,
    addressType: "ethereum",
    address,
    ...depths,
    look: (id, signal) => lookAtEvm(evm, { waiting: paid, mined: paid }, id, signal),
    standing: (block, signal) => standingOf(evm, block, signal),
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
  let last = atMost(range.last, first + blocksPassedMax - 1);
  while (first <= last) {
    const change = await changeOf(evm, address, first - 1, last, signal);
    if (change === "none") return await foundUpTo(evm, range, last, [], signal);
    if (last - first < blocksReadMax) break;
    const count = change === "unknown" ? 0 : halfOf(last - first + 1);
    last = first - 1 + atLeast(count, blocksReadMax);
  }
  const ids: string[] = [];
  for (let height = first; height <= last; height += 1) {
    const payments = await evm.paymentsTo(address, height, signal);
    if (payments.kind === "trouble") return payments;
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
  if (old.kind === "trouble" || now.kind === "trouble") return "unknown";
  return isSame(old.value, now.value) ? "none" : "some";
}

function isSame(one: EvmAccount, other: EvmAccount): boolean {
  if (one.hasCode || other.hasCode) return false;
  return one.balance === other.balance && one.nonce === other.nonce;
}

function halfOf(count: number): number {
  return (count + (count % 2)) / 2;
}
