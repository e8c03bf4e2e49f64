/**
 * Payments in tokens in the ledger: their rows, and the changes of their state with their
 * credits.
 *
 * Each change is part of its caller's transaction. Each credit claims an outside event, so that no fault credits a
 * payment twice for one observation on the chain.
 * Source: docs/reference/payment.md#token-payments; docs/reference/payment.md#invariants-of-the-ledger.
 * @module
 */
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import { isJsonArray, isJsonObject, type JsonValue, readJson, writeJson } from "../../lib/json.ts";
import { readCount, readTime, type Tx } from "../../store/ledger/ledger-database.ts";
import { claimEvent, type MakeId, provider, transfer, user } from "../../store/ledger/transfers.ts";
import type { AddressType, Token, UserAddress } from "../addresses.ts";
import type { Adjustment } from "../prices/price-types.ts";
import type { BlockRef } from "./token-chain.ts";

/** The state of a payment. `reversed`: it was credited, and a reorg removed it. */
export type PaymentState = "pending" | "credited" | "reversed" | "failed";

/** A stored payment: the amount of one sender in one transaction. */
export type TokenPayment = Readonly<{
  /** Unique among all payments. */
  id: string;
  token: Token;
  /** Canonical. */
  transactionId: string;
  /** 0 for the first sender of the transaction, in the chain's order. */
  part: number;
  state: PaymentState;
  sender: UserAddress;
  /** The credited account. */
  destination: UserAddress;
  destinationType: AddressType;
  /** Smallest unit, above 0. */
  quantity: bigint;
  /** Fixed when the payment was first seen. */
  winc: bigint;
  fees: readonly Adjustment[];
  /** Its block on the chain; the last one for a payment that a reorg removed. */
  block: BlockRef | undefined;
  /** Times are Unix milliseconds. */
  seenAt: number;
  creditedAt: number | undefined;
  /** Time of its failure or reversal. */
  endedAt: number | undefined;
  failureReason: string | undefined;
  /** Number of credits. */
  credits: number;
  /** Time of the next request to the chain; undefined: never. */
  dueAt: number | undefined;
}>;

/** A newly seen payment with its price. */
export type Offer = Pick<
  TokenPayment,
  "token" | "transactionId" | "part" | "sender" | "destination" | "destinationType" | "quantity" | "winc" | "fees"
>;

/** The time of a change, of the next request to the chain, and ids for the transfers. */
export type ChangeTime = Readonly<{ now: number; dueAt: number | undefined; makeId: MakeId }>;

type PaymentRow = {
  id: string;
  token: Token;
  transaction_id: string;
  part: bigint;
  state: PaymentState;
  sender: UserAddress;
  destination: UserAddress;
  destination_type: AddressType;
  quantity: string;
  winc: bigint;
  fees: string;
  block_height: bigint | null;
  block_hash: string | null;
  seen_at: bigint;
  credited_at: bigint | null;
  ended_at: bigint | null;
  failure_reason: string | null;
  credits: bigint;
  due_at: bigint | null;
};

/** The payments of a transaction, in order. */
export async function paymentsOf(tx: Tx, token: Token, transactionId: string): Promise<TokenPayment[]> {
  const rows = await tx.all<PaymentRow>(
    "SELECT * FROM token_payments WHERE token = ? AND transaction_id = ? ORDER BY part",
    token,
    transactionId,
  );
  return rows.map(readPayment);
}

/** Payments to an account that wait for confirmations, the newest first. */
export async function pendingPaymentsOf(tx: Tx, account: UserAddress, limit: number): Promise<TokenPayment[]> {
  const rows = await tx.all<PaymentRow>(
    "SELECT * FROM token_payments WHERE destination = ? AND state = 'pending' ORDER BY seen_at DESC, id DESC LIMIT ?",
    account,
    BigInt(limit),
  );
  return rows.map(readPayment);
}

/**
 * Transactions that need no other check now: those that wait as unread, and those with payments that another check
 * would not change. Reversed payments, and payments that failed as unknown to the chain, are excluded.
 */
export async function knownTransactions(
  tx: Tx,
  { token, address }: Watch,
  transactionIds: readonly string[],
): Promise<ReadonlySet<string>> {
  if (transactionIds.length === 0) return new Set();
  const marks = transactionIds.map(() => "?").join(", ");
  const rows = await tx.all<{ transaction_id: string }>(
    `SELECT transaction_id FROM token_payments WHERE token = ? AND transaction_id IN (${marks}) ` +
      "AND state <> 'reversed' AND (failure_reason IS NULL OR failure_reason <> ?)",
    token,
    ...transactionIds,
    notFoundReason,
  );
  const unread = await tx.all<{ transaction_id: string }>(
    `SELECT transaction_id FROM token_unread WHERE token = ? AND address = ? AND transaction_id IN (${marks})`,
    ...[token, address, ...transactionIds],
  );
  return new Set([...rows, ...unread].map((row) => row.transaction_id));
}

/** Transactions whose payments are due for a check, the longest due first. */
export async function dueTransactions(tx: Tx, token: Token, now: number, limit: number): Promise<string[]> {
  const rows = await tx.all<{ transaction_id: string }>(
    "SELECT transaction_id, MIN(due_at) AS due FROM token_payments WHERE token = ? AND due_at <= ? " +
      "GROUP BY transaction_id ORDER BY due, transaction_id LIMIT ?",
    token,
    BigInt(now),
    BigInt(limit),
  );
  return rows.map((row) => row.transaction_id);
}

/** Stores a newly seen payment; replaces one that was never credited. */
export async function keepOffer(tx: Tx, offer: Offer, { now, dueAt }: ChangeTime): Promise<void> {
  await tx.run(
    "INSERT INTO token_payments (id, token, transaction_id, part, state, sender, destination, destination_type, " +
      "quantity, winc, fees, seen_at, credits, due_at) VALUES (?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, 0, ?) " +
      "ON CONFLICT (id) DO UPDATE SET state = excluded.state, sender = excluded.sender, " +
      "destination = excluded.destination, destination_type = excluded.destination_type, " +
      "quantity = excluded.quantity, winc = excluded.winc, fees = excluded.fees, seen_at = excluded.seen_at, " +
      "due_at = excluded.due_at, ended_at = NULL, failure_reason = NULL WHERE token_payments.credits = 0",
    `${offer.token}:${offer.transactionId}:${offer.part}`,
    offer.token,
    offer.transactionId,
    BigInt(offer.part),
    offer.sender,
    offer.destination,
    offer.destinationType,
    offer.quantity.toString(),
    offer.winc,
    writeFees(offer.fees),
    BigInt(now),
    timeOrNull(dueAt),
  );
}

/**
 * Credits a pending or reversed payment.
 *
 * @returns The reason when the account cannot hold the amount; then nothing was changed.
 */
export async function creditPayment(
  tx: Tx,
  payment: TokenPayment,
  block: BlockRef,
  { now, dueAt, makeId }: ChangeTime,
): Promise<string | undefined> {
  assert(payment.state === "pending" || payment.state === "reversed", "a payment is credited once at a time");
  const { winc, destination, token } = payment;
  const legs = [
    { account: provider(token), amount: -winc },
    { account: user(destination), amount: winc },
  ];
  try {
    await transfer(tx, { id: makeId(), kind: "token_payment", at: now, legs, changeId: payment.id });
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "payment_rejected") throw error;
    return String(error.context["reason"]);
  }
  const round = payment.credits + 1;
  const claimed = await claimEvent(tx, "token", round === 1 ? payment.id : `${payment.id}#${round}`, now);
  assert(claimed, "a payment is credited once for each time that the chain has it");
  await tx.run(
    "UPDATE token_payments SET state = 'credited', credits = ?, credited_at = ?, ended_at = NULL, " +
      "failure_reason = NULL, block_height = ?, block_hash = ?, due_at = ? WHERE id = ?",
    BigInt(round),
    BigInt(now),
    BigInt(block.height),
    block.hash,
    timeOrNull(dueAt),
    payment.id,
  );
  return undefined;
}

/** Reverses the credit of a payment; the account may be in debt afterwards. */
export async function reversePayment(tx: Tx, payment: TokenPayment, { now, dueAt, makeId }: ChangeTime): Promise<void> {
  assert(payment.state === "credited", "what is reversed was credited");
  const { winc, destination, token } = payment;
  const legs = [
    { account: provider(token), amount: winc },
    { account: user(destination), amount: -winc },
  ];
  await transfer(tx, { id: makeId(), kind: "reversal", at: now, legs, changeId: payment.id });
  await tx.run(
    "UPDATE token_payments SET state = 'reversed', ended_at = ?, failure_reason = ?, due_at = ? WHERE id = ?",
    BigInt(now),
    reversedReason,
    timeOrNull(dueAt),
    payment.id,
  );
}

/** Fails an uncredited payment. */
export async function failPayment(tx: Tx, payment: TokenPayment, reason: string, { now }: ChangeTime): Promise<void> {
  assert(payment.state === "pending", "what fails was pending");
  await tx.run(
    "UPDATE token_payments SET state = 'failed', ended_at = ?, failure_reason = ?, due_at = NULL WHERE id = ?",
    BigInt(now),
    reason,
    payment.id,
  );
}

/** Stores the block of a payment and the time of its next check. */
export async function placePayment(
  tx: Tx,
  payment: TokenPayment,
  block: BlockRef | undefined,
  dueAt: number | undefined,
): Promise<void> {
  await tx.run(
    "UPDATE token_payments SET block_height = ?, block_hash = ?, due_at = ? WHERE id = ?",
    block === undefined ? null : BigInt(block.height),
    block?.hash ?? null,
    timeOrNull(dueAt),
    payment.id,
  );
}

/** The cursor of the scan for payments to an address. */
export async function markOf(tx: Tx, token: Token, address: string): Promise<string | undefined> {
  const row = await tx.get<{ cursor: string }>(
    "SELECT cursor FROM token_marks WHERE token = ? AND address = ?",
    token,
    address,
  );
  return row?.cursor;
}

/** Stores the cursor of a scan. */
export async function keepMark(tx: Tx, token: Token, address: string, cursor: string, now: number): Promise<void> {
  await tx.run(
    "INSERT INTO token_marks (token, address, cursor, saved_at) VALUES (?, ?, ?, ?) " +
      "ON CONFLICT (token, address) DO UPDATE SET cursor = excluded.cursor, saved_at = excluded.saved_at",
    token,
    address,
    cursor,
    BigInt(now),
  );
}

/** The watch over an address, by which its marks and unread transactions are stored. */
type Watch = Readonly<{ token: Token; address: string }>;

/** A found transaction that could not be read. Times are Unix milliseconds. */
export type Unread = Readonly<{ id: string; since: number; dueAt: number }>;

/** Unread transactions of one watch. */
const unreadMax = 10_000;

/**
 * Stores a transaction that could not be read, or the time of its next check.
 *
 * @returns False when too many wait already; then nothing was changed.
 */
export async function keepUnread(tx: Tx, { token, address }: Watch, { id, since, dueAt }: Unread): Promise<boolean> {
  const row = await tx.get<{ count: bigint }>(
    "SELECT COUNT(*) AS count FROM token_unread WHERE token = ? AND address = ? AND transaction_id <> ?",
    ...[token, address, id],
  );
  if (row !== undefined && row.count >= BigInt(unreadMax)) return false;
  await tx.run(
    "INSERT INTO token_unread (token, address, transaction_id, since, due_at) VALUES (?, ?, ?, ?, ?) " +
      "ON CONFLICT (token, address, transaction_id) DO UPDATE SET due_at = excluded.due_at",
    ...[token, address, id, BigInt(since), BigInt(dueAt)],
  );
  return true;
}

export async function dropUnread(tx: Tx, { token, address }: Watch, id: string): Promise<void> {
  const named = "DELETE FROM token_unread WHERE token = ? AND address = ? AND transaction_id = ?";
  await tx.run(named, token, address, id);
}

/** Unread transactions that are due for a check, the longest due first. */
export async function dueUnread(tx: Tx, { token, address }: Watch, now: number, limit: number): Promise<Unread[]> {
  const rows = await tx.all<{ transaction_id: string; since: bigint; due_at: bigint }>(
    "SELECT transaction_id, since, due_at FROM token_unread WHERE token = ? AND address = ? AND due_at <= ? " +
      "ORDER BY due_at, transaction_id LIMIT ?",
    ...[token, address, BigInt(now), BigInt(limit)],
  );
  return rows.map((row) => ({ id: row.transaction_id, since: readTime(row.since), dueAt: readTime(row.due_at) }));
}

/** The reason of a temporary failure: the chain did not know the transaction, and may know it later. */
export const notFoundReason = "not_found";

const reversedReason = "The chain took the transaction back";

function readPayment(row: PaymentRow): TokenPayment {
  const { block_height: height, block_hash: hash } = row;
  return {
    id: row.id,
    token: row.token,
    transactionId: row.transaction_id,
    part: readCount(row.part),
    state: row.state,
    sender: row.sender,
    destination: row.destination,
    destinationType: row.destination_type,
    quantity: BigInt(row.quantity),
    winc: row.winc,
    fees: readFees(row.fees),
    block: height === null || hash === null ? undefined : { height: readCount(height), hash },
    seenAt: readTime(row.seen_at),
    creditedAt: timeOf(row.credited_at),
    endedAt: timeOf(row.ended_at),
    failureReason: row.failure_reason ?? undefined,
    credits: readCount(row.credits),
    dueAt: timeOf(row.due_at),
  };
}

function timeOf(value: bigint | null): number | undefined {
  return value === null ? undefined : readTime(value);
}

function timeOrNull(time: number | undefined): bigint | null {
  return time === undefined ? null : BigInt(time);
}

function writeFees(fees: readonly Adjustment[]): string {
  return writeJson(fees.map((fee) => ({ ...fee, adjustmentAmount: fee.adjustmentAmount.toString() })));
}

function readFees(text: string): readonly Adjustment[] {
  const list = readJson(text);
  assert(isJsonArray(list), "the fees of a payment are a list");
  return list.map(readFee);
}

function readFee(value: JsonValue): Adjustment {
  assert(isJsonObject(value), "a fee is an object");
  const { name, description, operator, operatorMagnitude, adjustmentAmount } = value;
  assert(operator === "add" || operator === "multiply", "a fee's operator is known");
  return {
    name: String(name),
    description: String(description),
    operator,
    operatorMagnitude: String(operatorMagnitude),
    adjustmentAmount: BigInt(String(adjustmentAmount)),
  };
}
