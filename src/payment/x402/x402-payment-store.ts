/**
 * Payments by x402 in the ledger: one row an authorization, its next step, and the changes of its state with their
 * credits. Each change is part of its caller's transaction.
 *
 * seen → settling → settled | rejected. A rejected payment is watched until its authorization is no longer usable,
 * because an observer may execute the authorization: then it is settled after all. A settled payment is reversed when
 * a reorg removes it for good.
 * Source: docs/reference/payment.md#x402; docs/reference/payment.md#invariants-of-the-ledger.
 * @module
 */
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { type LedgerDatabase, readCount, readTime, storableText, type Tx } from "../../store/ledger/ledger-database.ts";
import { balanceOf, claimEvent, type MakeId, provider, transfer, user } from "../../store/ledger/transfers.ts";
import type { Token, UserAddress } from "../addresses.ts";
import type { Authorization } from "../evm/authorization.ts";
import type { AuthorizationStatus, EndPlace } from "../evm/authorization-chain.ts";
import { writeHexBytes } from "../evm/evm-values.ts";
import type { ChangeTime } from "../tokens/token-payment-store.ts";
import type { X402Purpose } from "./x402.ts";

/** The state of a payment. */
export type X402State = "seen" | "settling" | "settled" | "rejected" | "reversed";

/** A new payment to store. */
export type X402Offer = Readonly<{
  /** CAIP-2. */
  network: string;
  asset: UserAddress;
  /** The token of its price. */
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

/** A stored payment. Times are Unix milliseconds. */
export type X402Stored = X402Offer &
  Readonly<{
    id: string;
    state: X402State;
    seenAt: number;
    /** Number of attempts to settle it. */
    attempts: number;
    /** The transaction of its settlement; before, a possible one. */
    transaction: string | undefined;
    /** The payer's balance right after the credit. */
    balance: bigint | undefined;
    reason: string | undefined;
    dueAt: number | undefined;
  }>;

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

/** The unique id of an authorization: nonces are unique per owner, chain and coin. */
export function x402IdOf(
  network: string,
  asset: UserAddress,
  { from, nonce }: Pick<Authorization, "from" | "nonce">,
): string {
  return `${network}/${asset}/${from}/${nonce}`;
}

export async function findX402(tx: Tx, id: string): Promise<X402Stored | undefined> {
  const row = await tx.get<X402Row>("SELECT * FROM x402_payments WHERE id = ?", id);
  return row === undefined ? undefined : readRow(row);
}

/** Payments in a coin that are due for a check of the chain, the longest due first. */
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

/** Stores a new payment. @returns Whether it is new; a known payment is unchanged. */
export async function keepX402(tx: Tx, offer: X402Offer, { now, dueAt }: ChangeTime): Promise<boolean> {
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
 * Leases a payment until it is due again.
 *
 * @param seen - The payment as found due.
 * @returns False when another follower leased it first.
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
 * Records an attempt to settle a payment, before it is sent.
 *
 * @returns False when the payment has ended and must not be sent.
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

/** Credits a payment whose dollars have arrived. */
export async function settleX402(tx: Tx, payment: X402Stored, end: EndPlace, time: ChangeTime): Promise<void> {
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

/** Rejects an uncredited payment; it is watched while it is due. */
export async function rejectX402(
  tx: Tx,
  { id, state }: X402Stored,
  reason: string,
  { now, dueAt }: ChangeTime,
): Promise<void> {
  assert(state === "seen" || state === "settling", "a rejected payment was not settled");
  await tx.run(
    "UPDATE x402_payments SET state = 'rejected', ended_at = ?, reason = ?, due_at = ? WHERE id = ?",
    ...[BigInt(now), storableText(reason), timeOrNull(dueAt), id],
  );
}

/** Reverses the credit of a payment; the account may be in debt afterwards. */
export async function reverseX402(tx: Tx, payment: X402Stored, reason: string, time: ChangeTime): Promise<void> {
  assert(payment.state === "settled", "a reversed payment was settled");
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

/** Sets the time of the next check, and the transaction that may have settled the payment. */
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

/** Removes finally rejected payments, whose authorizations can never be used. @returns How many. */
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

// The next step of a payment, from its state in the ledger and on the chain.

/** The next step. */
type X402Step =
  /** The chain has moved the dollars: credit the payer. */
  | Readonly<{ kind: "credit"; end: EndPlace; isFinal: boolean }>
  /** It is credited, and the chain still has its transaction. */
  | Readonly<{ kind: "place"; end: EndPlace; isFinal: boolean }>
  /** It is not settled yet: send it. */
  | Readonly<{ kind: "send" }>
  /** It will not settle; not final while a settlement is still possible. */
  | Readonly<{ kind: "reject"; reason: string; isFinal: boolean }>
  /** It was credited, and a reorg removed it for good. */
  | Readonly<{ kind: "reverse"; reason: string }>
  /** Check again later. */
  | Readonly<{ kind: "wait" }>
  /** No further checks. */
  | Readonly<{ kind: "rest" }>;

/** A reorg changes block times; after this margin no block can include an expired authorization. Seconds. */
const overSlack = 120n;

/** Time until a block includes a sent transaction. Seconds. */
const sendSlack = 6n;

const expiredReason = "The authorization has expired";
const otherwiseReason = "The authorization was cancelled or used for something else";

/** Returns the next step. @param finalConfirmations - Confirmations at which a block is final. */
export function stepOf(
  payment: Pick<X402Stored, "state" | "authorization">,
  status: AuthorizationStatus,
  finalConfirmations: number,
): X402Step {
  const { state, authorization } = payment;
  if (state === "reversed") return { kind: "rest" };
  switch (status.kind) {
    case "moved": {
      const isFinal = status.confirmations >= finalConfirmations;
      return { kind: state === "settled" ? "place" : "credit", end: status, isFinal };
    }
    case "otherwise":
      return endedStep(state, otherwiseReason, status.confirmations >= finalConfirmations);
    case "unused": {
      const { time } = status;
      if (time >= authorization.validBefore + overSlack) return endedStep(state, expiredReason, true);
      const canSend = state !== "rejected" && time + sendSlack < authorization.validBefore;
      return { kind: canSend ? "send" : "wait" };
    }
  }
}

/**
 * Returns the next step after a rejected attempt.
 *
 * The rejection of a first attempt ends the payment. After an attempt with an unknown outcome, the rejection may be
 * caused by that attempt.
 * @param step - The step by the chain's status.
 * @param attemptsBefore - The number of attempts before this one.
 */
export function rejectedStep(
  { state, attempts }: Pick<X402Stored, "state" | "attempts">,
  step: X402Step,
  reason: string,
  attemptsBefore: number,
): X402Step {
  if (step.kind !== "send") return step;
  const isFirst = attemptsBefore === 0 && attempts <= 1;
  const isSure = isFirst && (state === "seen" || state === "settling");
  return isSure ? { kind: "reject", reason, isFinal: false } : { kind: "wait" };
}

/** The step for an authorization that ended without payment. */
function endedStep(state: X402Stored["state"], reason: string, isFinal: boolean): X402Step {
  if (state === "seen" || state === "settling") return { kind: "reject", reason, isFinal };
  if (!isFinal) return { kind: "wait" };
  return state === "settled" ? { kind: "reverse", reason } : { kind: "rest" };
}

// Steps of payments, written to the ledger: each in one transaction, by the row's current state.

export type StepWriterOptions = Readonly<{ ledger: LedgerDatabase; clock: Clock; makeId: MakeId; log: Log }>;

/** Writes steps. @throws Failure of the ledger. */
type StepWriter = Readonly<{
  /**
   * Writes the step for the current row. The caller sends the payment after the step `send`.
   * @param decide - Receives the row of this transaction.
   */
  take: (payment: X402Stored, decide: (stored: X402Stored) => X402Step) => Promise<X402Step>;
  /** Postpones the next check. @param transaction - The transaction that may have settled it. */
  putOff: (payment: X402Stored, transaction?: string) => Promise<void>;
  /** Records an attempt before it is sent. @returns False when the payment has ended and must not be sent. */
  begin: (payment: X402Stored, transaction: string | undefined) => Promise<boolean>;
}>;

/** Lease of a payment: longer than a facilitator's timeout and the wait after it. Milliseconds. */
export const leaseMs = 60_000;

export function createStepWriter({ ledger, clock, makeId, log }: StepWriterOptions): StepWriter {
  return {
    take: async (payment, decide) => {
      const now = clock();
      const taken = await ledger.write(async (tx) => {
        const stored = (await findX402(tx, payment.id)) ?? payment;
        const step = decide(stored);
        await writeStep(tx, stored, step, { now, dueAt: lookAgainAt(stored, step, now), makeId });
        return step;
      });
      announce(log, payment, taken);
      return taken;
    },
    putOff: async (payment, transaction) => {
      const dueAt = lookAgainAt(payment, { kind: "wait" }, clock());
      await ledger.write((tx) => laterX402(tx, payment, dueAt, transaction));
    },
    begin: (payment, transaction) => ledger.write((tx) => beginX402(tx, payment.id, transaction, clock() + leaseMs)),
  };
}

/** A client waits for an open payment; others are only watched. Milliseconds. */
const openPauses = { ageDivisor: 10, leastMs: 2_000, mostMs: 60_000 };
const watchedPauses = { ageDivisor: 2, leastMs: 30_000, mostMs: 10 * 60_000 };

/** Time of the next check after a step; pauses grow with the payment's age. */
function lookAgainAt({ state, seenAt }: X402Stored, step: X402Step, now: number): number | undefined {
  const isOver = step.kind === "rest" || step.kind === "reverse" || ("isFinal" in step && step.isFinal);
  if (isOver) return undefined;
  const isOpen = (state === "seen" || state === "settling") && (step.kind === "wait" || step.kind === "send");
  const { ageDivisor, leastMs, mostMs } = isOpen ? openPauses : watchedPauses;
  const age = Math.max(now - seenAt, 0);
  const wait = (age - (age % ageDivisor)) / ageDivisor;
  return now + Math.max(Math.min(wait, mostMs), leastMs);
}

async function writeStep(tx: Tx, payment: X402Stored, step: X402Step, time: ChangeTime): Promise<void> {
  switch (step.kind) {
    case "credit":
      return await settleX402(tx, payment, step.end, time);
    case "place":
      return await placeX402(tx, payment, step.end, time.dueAt);
    case "reject":
      return await rejectX402(tx, payment, step.reason, time);
    case "reverse":
      return await reverseX402(tx, payment, step.reason, time);
    case "wait":
    case "rest":
      return await laterX402(tx, payment, time.dueAt);
    case "send":
      return; // the caller keeps the lease
  }
}

/** Logs every change of a state. */
function announce(log: Log, { id, winc, authorization }: X402Stored, step: X402Step): void {
  const reports = { payment: id, account: authorization.from, winc };
  if (step.kind === "credit") log.info("x402 payment settled", { ...reports, ...step.end });
  if (step.kind === "reject") log.info("x402 payment rejected", { ...reports, reason: step.reason });
  if (step.kind === "reverse") log.warn("x402 payment reversed", { ...reports, reason: step.reason });
}
