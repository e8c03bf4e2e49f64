/**
 * Payments by x402 in the ledger: one row an authorization, and the changes of its state with their credits. Each
 * change is part of its caller's transaction.
 *
 * seen → settling → settled | rejected. A rejected payment is watched until its authorization is no longer usable,
 * because an observer may execute the authorization: then it is settled after all. A settled payment is reversed when
 * a reorg removes it for good.
 * Source: docs/reference/payment.md#x402; docs/reference/payment.md#invariants-of-the-ledger.
 * @module
 */
import { assert } from "../../lib/assert.ts";
import { readCount, readTime, type Tx } from "../../store/ledger/ledger-database.ts";
import { balanceOf, claimEvent, type MakeId, provider, transfer, user } from "../../store/ledger/transfers.ts";
import type { Token, UserAddress } from "../addresses.ts";
import type { Authorization } from "../evm/authorization.ts";
import type { EndPlace } from "../evm/authorization-chain.ts";
import { writeHexBytes } from "../evm/evm-values.ts";
import type { X402Purpose } from "./x402.ts";

/** The state of a payment. */
export type X402State = "seen" | "settling" | "settled" | "rejected" | "reversed";

/** A payment as it is first stored. */
export type X402Offer = Readonly<{
  /** CAIP-2. */
  network: string;
  asset: UserAddress;
  /** By whose price it was sold. */
  token: Token;
  version: 1 | 2;
  authorization: Authorization;
  signature: Uint8Array;
  resource: string;
  purpose: X402Purpose;
  /** The payer's credits. */
  winc: bigint;
  /** The credits that the quote promised. */
  quotedWinc: bigint;
  /** The newest block when it was seen, or an earlier one. */
  fromHeight: number;
}>;

/** A payment as it is stored. Times are Unix milliseconds. */
export type X402Stored = X402Offer &
  Readonly<{
    id: string;
    state: X402State;
    seenAt: number;
    /** How often it was sent to be carried out. */
    attempts: number;
    /** That of its settlement; before, one that may become it. */
    transaction: string | undefined;
    /** The payer's balance right after the credit. */
    balance: bigint | undefined;
    reason: string | undefined;
    dueAt: number | undefined;
  }>;

/** When a change happens, when the chain is asked next, and names for what moves. */
export type X402Time = Readonly<{ now: number; dueAt: number | undefined; makeId: MakeId }>;

type X402Row = {
  id: string;
  network: string;
  asset: UserAddress;
  payer: UserAddress;
  nonce: string;
  token: Token;
  state: X402State;
  version: bigint;
  pay_to: UserAddress;
  value: string;
  valid_after: string;
  valid_before: string;
  signature: string;
  resource: string;
  purpose: X402Purpose;
  winc: bigint;
  quoted_winc: bigint;
  from_height: bigint;
  seen_at: bigint;
  attempts: bigint;
  transaction_hash: string | null;
  balance: bigint | null;
  reason: string | null;
  due_at: bigint | null;
};

/** Names an authorization among all: a nonce is its owner's own, on one chain, for one coin. */
export function x402IdOf(
  network: string,
  asset: UserAddress,
  { from, nonce }: Pick<Authorization, "from" | "nonce">,
): string {
  return `${network}/${asset}/${from}/${nonce}`;
}

/** Finds a payment. */
export async function findX402(tx: Tx, id: string): Promise<X402Stored | undefined> {
  const row = await tx.get<X402Row>("SELECT * FROM x402_payments WHERE id = ?", id);
  return row === undefined ? undefined : readRow(row);
}

/** Payments in a coin whose chain is to be asked, the longest due first. */
export async function dueX402(
  tx: Tx,
  { network, asset }: Pick<X402Offer, "network" | "asset">,
  now: number,
  limit: number,
): Promise<X402Stored[]> {
  const rows = await tx.all<X402Row>(
    "SELECT * FROM x402_payments WHERE network = ? AND asset = ? AND due_at <= ? ORDER BY due_at, id LIMIT ?",
    network,
    asset,
    BigInt(now),
    BigInt(limit),
  );
  return rows.map(readRow);
}

/** Keeps a payment that was not seen before. @returns Whether it is new; one that is not is left as it was. */
export async function keepX402(tx: Tx, offer: X402Offer, { now, dueAt }: X402Time): Promise<boolean> {
  const { from, to, value, validAfter, validBefore, nonce } = offer.authorization;
  const stored = await tx.run(
    "INSERT INTO x402_payments (id, network, asset, payer, nonce, token, state, version, pay_to, value, valid_after, " +
      "valid_before, signature, resource, purpose, winc, quoted_winc, from_height, seen_at, attempts, due_at) " +
      "VALUES (?, ?, ?, ?, ?, ?, 'seen', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?) ON CONFLICT (id) DO NOTHING",
    x402IdOf(offer.network, offer.asset, offer.authorization),
    ...[offer.network, offer.asset, from, nonce, offer.token, BigInt(offer.version), to],
    ...[value.toString(), validAfter.toString(), validBefore.toString(), writeHexBytes(offer.signature)],
    ...[offer.resource, offer.purpose, offer.winc, offer.quotedWinc, BigInt(offer.fromHeight)],
    BigInt(now),
    timeOrNull(dueAt),
  );
  return stored === 1;
}

/**
 * Takes a payment into one's hands until it is due again.
 *
 * @param seen - As it was found due.
 * @returns False when somebody else did.
 */
export async function takeX402(tx: Tx, seen: X402Stored, dueAt: number): Promise<boolean> {
  const taken = await tx.run(
    "UPDATE x402_payments SET due_at = ? WHERE id = ? AND due_at = ? AND state = ?",
    BigInt(dueAt),
    seen.id,
    timeOrNull(seen.dueAt),
    seen.state,
  );
  return taken === 1;
}

/**
 * Notes that a payment is about to be sent to be carried out.
 *
 * @returns False when it must not be: it has ended meanwhile.
 */
export async function beginX402(tx: Tx, id: string, transaction: string | undefined, dueAt: number): Promise<boolean> {
  const begun = await tx.run(
    "UPDATE x402_payments SET state = CASE state WHEN 'seen' THEN 'settling' ELSE state END, " +
      "attempts = attempts + 1, transaction_hash = COALESCE(?, transaction_hash), due_at = ? " +
      "WHERE id = ? AND state IN ('seen', 'settling', 'settled')",
    transaction ?? null,
    BigInt(dueAt),
    id,
  );
  return begun === 1;
}

/** Credits a payment whose dollars have come. */
export async function settleX402(tx: Tx, payment: X402Stored, end: EndPlace, time: X402Time): Promise<void> {
  assert(payment.state !== "settled" && payment.state !== "reversed", "a payment is credited once");
  const { id, winc, authorization } = payment;
  const account = user(authorization.from);
  const claimed = await claimEvent(tx, "x402", id, time.now);
  assert(claimed, "an authorization is credited once, ever");
  const legs = [
    { account: provider("x402"), amount: -winc },
    { account, amount: winc },
  ];
  await transfer(tx, { id: time.makeId(), kind: "x402_payment", at: time.now, legs, changeId: id });
  await tx.run(
    "UPDATE x402_payments SET state = 'settled', transaction_hash = ?, block_height = ?, block_hash = ?, " +
      "settled_at = ?, balance = ?, ended_at = NULL, reason = NULL, due_at = ? WHERE id = ?",
    ...[end.transaction, BigInt(end.block.height), end.block.hash, BigInt(time.now)],
    await balanceOf(tx, account),
    timeOrNull(time.dueAt),
    id,
  );
}

/** Ends a payment that was not credited; it is watched while it is due. */
export async function rejectX402(
  tx: Tx,
  { id, state }: X402Stored,
  reason: string,
  { now, dueAt }: X402Time,
): Promise<void> {
  assert(state === "seen" || state === "settling", "what is rejected was not settled");
  await tx.run(
    "UPDATE x402_payments SET state = 'rejected', ended_at = ?, reason = ?, due_at = ? WHERE id = ?",
    ...[BigInt(now), reason, timeOrNull(dueAt), id],
  );
}

/** Takes back what a payment was credited with; the account may owe afterwards. */
export async function reverseX402(tx: Tx, payment: X402Stored, reason: string, time: X402Time): Promise<void> {
  assert(payment.state === "settled", "what is reversed was settled");
  const { id, winc, authorization } = payment;
  const legs = [
    { account: provider("x402"), amount: winc },
    { account: user(authorization.from), amount: -winc },
  ];
  await transfer(tx, { id: time.makeId(), kind: "reversal", at: time.now, legs, changeId: id });
  await tx.run(
    "UPDATE x402_payments SET state = 'reversed', ended_at = ?, reason = ?, due_at = NULL WHERE id = ?",
    ...[BigInt(time.now), reason, id],
  );
}

/** Stores the block of a settled payment and the time of its next check. */
export async function placeX402(
  tx: Tx,
  { id }: X402Stored,
  { transaction, block }: EndPlace,
  dueAt: number | undefined,
): Promise<void> {
  await tx.run(
    "UPDATE x402_payments SET transaction_hash = ?, block_height = ?, block_hash = ?, due_at = ? WHERE id = ?",
    ...[transaction, BigInt(block.height), block.hash, timeOrNull(dueAt), id],
  );
}

/** Notes when a payment is to be looked at again, and by which transaction it may have been carried out. */
export async function laterX402(
  tx: Tx,
  { id }: X402Stored,
  dueAt: number | undefined,
  transaction?: string,
): Promise<void> {
  await tx.run(
    "UPDATE x402_payments SET due_at = ?, transaction_hash = COALESCE(?, transaction_hash) WHERE id = ?",
    timeOrNull(dueAt),
    transaction ?? null,
    id,
  );
}

/** Removes what was rejected for good long ago: its authorization can never be used. @returns How many. */
export function removeRejectedX402(tx: Tx, before: number, limit: number): Promise<number> {
  return tx.run(
    "DELETE FROM x402_payments WHERE id IN (SELECT id FROM x402_payments WHERE state = 'rejected' " +
      "AND due_at IS NULL AND ended_at < ? ORDER BY id LIMIT ?)",
    BigInt(before),
    BigInt(limit),
  );
}

function readRow(row: X402Row): X402Stored {
  assert(row.version === 1n || row.version === 2n, "a payment is of version 1 or 2");
  return {
    id: row.id,
    network: row.network,
    asset: row.asset,
    token: row.token,
    version: row.version === 1n ? 1 : 2,
    authorization: {
      from: row.payer,
      to: row.pay_to,
      value: BigInt(row.value),
      validAfter: BigInt(row.valid_after),
      validBefore: BigInt(row.valid_before),
      nonce: row.nonce,
    },
    signature: Uint8Array.fromHex(row.signature.slice(2)),
    resource: row.resource,
    purpose: row.purpose,
    winc: row.winc,
    quotedWinc: row.quoted_winc,
    fromHeight: readCount(row.from_height),
    state: row.state,
    seenAt: readTime(row.seen_at),
    attempts: readCount(row.attempts),
    transaction: row.transaction_hash ?? undefined,
    balance: row.balance ?? undefined,
    reason: row.reason ?? undefined,
    dueAt: row.due_at === null ? undefined : readTime(row.due_at),
  };
}

function timeOrNull(time: number | undefined): bigint | null {
  return time === undefined ? null : BigInt(time);
}
