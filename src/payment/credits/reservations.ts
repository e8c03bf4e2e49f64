/**
 * Reservations: credits that are held for a data item during its upload, then spent or returned, once. An item that
 * is stored before its payment has a reservation that was never pending.
 *
 * A repeated request for an item returns the same reservation: an item is paid for once however often it is sent.
 * After a failed attempt the next attempt has a new reservation, so that a late call for the old one does not change
 * it. The state in the ledger decides whether a reservation is pending, not the clock: an expired reservation holds
 * its credits until `expireReservations` returns them, or until it is posted, whichever is first.
 * Source: docs/reference/payment.md#reservations-and-refunds; docs/reference/threats.md (L2).
 * @module
 */
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import { readTime, type Tx } from "../../store/ledger/ledger-database.ts";
import { balanceOf, held, type Leg, revenue, type TransferKind, transfer, user } from "../../store/ledger/transfers.ts";
import type { UserAddress } from "../addresses.ts";
import { smaller } from "../prices/rational.ts";
import {
  type Drawable,
  drawApproval,
  drawableApprovals,
  expireGivenApprovals,
  returnDrawn,
  type Step,
  spendApproval,
  spendDrawn,
} from "./approvals.ts";

/** The payers: the listed ones, or after them the signer too. A listed signer pays in its place. */
export type PaymentDirective = "list-only" | "list-or-signer";

/** A charge for an item, with its payers. */
export type ItemPayment = Readonly<{
  /** Id of the data item. */
  itemId: string;
  /** The signer of the item. */
  signer: UserAddress;
  /** Payers whose approvals are drawn on, in this order; repeated ones count once. At most `paidByMax`. */
  paidBy: readonly UserAddress[];
  directive: PaymentDirective;
  /** 0 or more. */
  winc: bigint;
}>;

/** A request to reserve credits. */
export type ReservationRequest = ItemPayment &
  Readonly<{
    /** Unix milliseconds from which the reservation may be expired. */
    expiresAt: number;
  }>;

/** More payers than this in one upload is an attack; a header of 4 KiB holds 90. */
export const paidByMax = 90;

/** Approvals that one reservation may draw on, besides the signer's own credits: its transaction stays short. */
export const partsMax = 200;

/**
 * Holds credits for an item, all of them or none. A pending or posted reservation of the item is returned unchanged,
 * with its price; only a later expiry is adopted.
 *
 * @throws Failure `insufficient_balance` {needed, available} when payers and approvals do not cover the price;
 *   `available` is the amount that they could pay. `payment_rejected` {reason} for too many payers.
 */
export async function reserve(tx: Tx, request: ReservationRequest, step: Step): Promise<Reservation> {
  const { itemId, signer, winc, expiresAt } = request;
  assert(winc >= 0n, "a reservation holds 0 winc or more");
  const last = await lastAttempt(tx, itemId);
  if (last?.state === "pending" || last?.state === "posted") return await again(tx, last, request);

  const parts = await chooseParts(tx, request, step);
  const made = { itemId, signer, winc, state: "pending", parts, createdAt: step.now, expiresAt } as const;
  const id = await insertReservation(tx, made, last, null);
  const drawn = await takeParts(tx, id, parts, (one) => drawApproval(tx, one));
  const legs: Leg[] = [{ account: held(id), amount: winc }, ...drawn];
  await move(tx, { id: step.makeId(), kind: "reservation", itemId, legs }, step);
  return { id, ...made };
}

/**
 * Pays for a stored item: spends in one transfer the credits that `reserve` would hold and `post` would spend. A
 * pending reservation of the item is posted instead, at its price. A paid item is not charged again.
 *
 * @returns The reservation, posted.
 * @throws Failure as `reserve` does.
 */
export async function payAtOnce(tx: Tx, payment: ItemPayment, step: Step): Promise<Reservation> {
  const { itemId, signer, winc } = payment;
  assert(winc >= 0n, "an item costs 0 winc or more");
  const last = await lastAttempt(tx, itemId);
  if (last?.state === "pending" || last?.state === "posted") return await postHeld(tx, last, payment, step);

  const { now } = step;
  const parts = await chooseParts(tx, payment, step);
  const made = { itemId, signer, winc, state: "posted", parts, createdAt: now, expiresAt: now } as const;
  const transferId = step.makeId();
  // A free item has no transfer.
  const id = await insertReservation(tx, made, last, winc === 0n ? null : transferId);
  const spent = await takeParts(tx, id, parts, (one) => spendApproval(tx, one, now));
  const legs: Leg[] = [{ account: revenue, amount: winc }, ...spent];
  await move(tx, { id: transferId, kind: "upload", itemId, legs }, step);
  return { id, ...made };
}

async function postHeld(tx: Tx, row: ReservationRow, { signer }: ItemPayment, step: Step): Promise<Reservation> {
  assert(row.payer === signer, "a data item has one signer");
  if (row.state === "pending") await post(tx, row.id, step);
  return await readReservation(tx, { ...row, state: "posted" });
}

/**
 * Writes the row of the next attempt at an item.
 *
 * @param transferId - The transfer that pays for the item at once; null when its winc are held first.
 * @returns Its id.
 */
async function insertReservation(
  tx: Tx,
  { itemId, signer, winc, state, createdAt, expiresAt }: Omit<Reservation, "id">,
  last: ReservationRow | undefined,
  transferId: string | null,
): Promise<string> {
  const attempt = (last?.attempt ?? 0n) + 1n;
  const id = attemptId(itemId, attempt);
  const endedAt = state === "pending" ? null : BigInt(createdAt);
  await tx.run(
    `INSERT INTO reservations (${reservationColumns}, ended_at, transfer_id) ` +
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ...[id, itemId, attempt, signer, winc, state, BigInt(createdAt), BigInt(expiresAt), endedAt, transferId],
  );
  return id;
}

async function again(tx: Tx, row: ReservationRow, { signer, expiresAt }: ReservationRequest): Promise<Reservation> {
  assert(row.payer === signer, "a data item has one signer");
  const later = BigInt(expiresAt);
  if (row.state !== "pending" || later <= row.expires_at) return await readReservation(tx, row);
  await tx.run("UPDATE reservations SET expires_at = ? WHERE id = ?", later, row.id);
  return await readReservation(tx, { ...row, expires_at: later });
}

/** Draws on the payers in order; where this does not cover the price, on the largest approvals of all. */
async function chooseParts(tx: Tx, request: ItemPayment, step: Step): Promise<ReservationPart[]> {
  const { signer, winc } = request;
  const payers = payersOf(request);
  if (winc === 0n) return [];
  const sources: ReservationPart[] = [];
  for (const payer of payers) {
    sources.push(...(await sourcesOf(tx, payer, signer, step)));
    const { parts, missing } = draw(sources, winc);
    if (missing === 0n) return parts;
  }
  const { parts, missing } = draw(largestOf(sources), winc);
  if (missing > 0n) throw new Failure("insufficient_balance", { signer, needed: winc, available: winc - missing });
  return parts;
}

/** Draws on sources in order, and on at most `partsMax` approvals. */
function draw(sources: readonly ReservationPart[], winc: bigint) {
  const parts: ReservationPart[] = [];
  let missing = winc;
  let approvals = 0;
  for (const source of sources) {
    if (missing === 0n) break;
    const isOwn = source.approvalId === undefined;
    if (!isOwn && approvals === partsMax) continue;
    if (!isOwn) approvals += 1;
    const drawn = smaller(source.winc, missing);
    parts.push({ ...source, winc: drawn });
    missing -= drawn;
  }
  return { parts, missing };
}

/** The `partsMax` largest approvals, and the signer's own credits, in the order of the sources. */
function largestOf(sources: readonly ReservationPart[]): readonly ReservationPart[] {
  const approvals = sources.filter(({ approvalId }) => approvalId !== undefined);
  const bySize = approvals.toSorted((a, b) => (b.winc > a.winc ? 1 : b.winc < a.winc ? -1 : 0));
  const chosen = new Set(bySize.slice(0, partsMax));
  return sources.filter((source) => source.approvalId === undefined || chosen.has(source));
}

function payersOf({ paidBy, signer, directive }: ItemPayment): ReadonlySet<UserAddress> {
  if (paidBy.length > paidByMax)
    throw new Failure("payment_rejected", {
      reason: `No more than ${paidByMax} addresses can pay for one upload`,
    });
  return new Set(directive === "list-only" ? paidBy : [...paidBy, signer]);
}

/**
 * The credits of one payer for the signer: the signer's own balance, or approvals. A payer in debt has none, so that
 * charged-back credits are not spent through approvals either.
 */
async function sourcesOf(tx: Tx, payer: UserAddress, signer: UserAddress, step: Step): Promise<ReservationPart[]> {
  const isSigner = payer === signer;
  let balance = await balanceOf(tx, user(payer));
  if (isSigner || balance < 0n) {
    const ended = await expireGivenApprovals(tx, payer, step);
    if (ended > 0) balance = await balanceOf(tx, user(payer));
  }
  if (isSigner) return balance > 0n ? [{ payer, approvalId: undefined, winc: balance }] : [];
  const approvals = balance < 0n ? [] : await drawableApprovals(tx, payer, signer, step.now);
  return approvals.map(({ approvalId, winc }) => ({ payer, approvalId, winc }));
}

/** Writes the sources of a reservation's winc. @param take - Draws on an approval. @returns The legs. */
async function takeParts(
  tx: Tx,
  id: string,
  parts: readonly ReservationPart[],
  take: (drawn: Drawable) => Promise<Leg>,
): Promise<Leg[]> {
  const legs: Leg[] = [];
  const isOwn = parts.every(({ approvalId }) => approvalId === undefined);
  for (const [position, { payer, approvalId, winc }] of parts.entries()) {
    if (!isOwn)
      await tx.run(
        "INSERT INTO reservation_parts (reservation_id, position, payer, approval_id, winc) VALUES (?, ?, ?, ?, ?)",
        ...[id, BigInt(position), payer, approvalId ?? null, winc],
      );
    const own: Leg = { account: user(payer), amount: -winc };
    legs.push(approvalId === undefined ? own : await take({ approvalId, winc }));
  }
  return legs;
}

/**
 * Spends the credits of a reservation.
 *
 * @returns The final state of the reservation; only `posted` means that the item is paid for.
 */
export async function post(tx: Tx, id: string, step: Step): Promise<ReservationState> {
  const row = await endReservation(tx, id, "posted", step);
  if (!row.endedNow) return row.state;
  for (const { approvalId, winc } of await partsOf(tx, row))
    if (approvalId !== undefined) await spendDrawn(tx, { approvalId, winc }, step.now);
  await release(tx, row, "reservation_posted", [{ account: revenue, amount: row.winc }], step);
  return row.state;
}

/**
 * Returns the credits of a reservation: to their approvals while these can be spent, else to the payers.
 *
 * @returns The final state of the reservation; `posted` means that nothing was returned.
 */
export async function voidReservation(tx: Tx, id: string, step: Step): Promise<ReservationState> {
  return await giveBack(tx, id, "voided", step);
}

/**
 * Returns the credits of expired reservations, the longest expired first.
 *
 * @returns How many ended; after a full batch more may be left.
 */
export async function expireReservations(tx: Tx, step: Step, limit: number): Promise<number> {
  const rows = await tx.all<{ id: string }>(
    "SELECT id FROM reservations WHERE state = 'pending' AND expires_at <= ? ORDER BY expires_at, id LIMIT ?",
    BigInt(step.now),
    BigInt(limit),
  );
  for (const { id } of rows) await giveBack(tx, id, "expired", step);
  return rows.length;
}

async function giveBack(tx: Tx, id: string, state: "voided" | "expired", step: Step): Promise<ReservationState> {
  const row = await endReservation(tx, id, state, step);
  if (!row.endedNow) return row.state;
  const legs: Leg[] = [];
  for (const { payer, approvalId, winc } of await partsOf(tx, row)) {
    const toPayer: Leg = { account: user(payer), amount: winc };
    legs.push(approvalId === undefined ? toPayer : await returnDrawn(tx, { approvalId, winc }, step));
  }
  await release(tx, row, `reservation_${state}`, legs, step);
  return row.state;
}

type Ended = Readonly<{
  id: string;
  itemId: string;
  payer: UserAddress;
  winc: bigint;
  state: ReservationState;
  endedNow: boolean;
}>;

/** Ends a pending reservation: of several concurrent calls, one succeeds. */
async function endReservation(tx: Tx, id: string, state: ReservationState, { now }: Step): Promise<Ended> {
  const changed = await tx.run(
    "UPDATE reservations SET state = ?, ended_at = ? WHERE id = ? AND state = 'pending'",
    state,
    BigInt(now),
    id,
  );
  const row = await tx.get<ReservationRow>(`SELECT ${reservationColumns} FROM reservations WHERE id = ?`, id);
  assert(row !== undefined, "a reservation that ends was made");
  const { item_id: itemId, payer, winc } = row;
  return { id, itemId, payer, winc, state: readState(row.state), endedNow: changed === 1 };
}

async function release(tx: Tx, { id, itemId, winc }: Ended, kind: TransferKind, to: readonly Leg[], step: Step) {
  const legs = [{ account: held(id), amount: -winc }, ...to];
  await move(tx, { id: step.makeId(), kind, itemId, legs }, step);
}

type Movement = Readonly<{ id: string; kind: TransferKind; itemId: string; legs: readonly Leg[] }>;

/** A free item has no transfer. */
async function move(tx: Tx, { id, kind, itemId, legs }: Movement, { now }: Step): Promise<void> {
  if (legs.every(({ amount }) => amount === 0n)) return;
  await transfer(tx, { id, kind, at: now, changeId: itemId, legs });
}

const states = ["pending", "posted", "voided", "expired", "refunded"] as const;

/** Whether credits are held, or how the reservation ended. A posted one may be refunded later (`refundReservation`). */
export type ReservationState = (typeof states)[number];

/** A part of a reservation: from an approval, or from the payer's own balance. */
export type ReservationPart = Readonly<{ payer: UserAddress; approvalId: string | undefined; winc: bigint }>;

/** Credits held for an item. */
export type Reservation = Readonly<{
  /** The id of this attempt at the item. */
  id: string;
  itemId: string;
  signer: UserAddress;
  winc: bigint;
  state: ReservationState;
  /** In the order in which they were drawn; they sum to `winc`. */
  parts: readonly ReservationPart[];
  /** Unix milliseconds. */
  createdAt: number;
  /** Unix milliseconds. */
  expiresAt: number;
}>;

/** The newest reservation of an item. */
export async function findReservation(tx: Tx, itemId: string): Promise<Reservation | undefined> {
  const row = await lastAttempt(tx, itemId);
  return row === undefined ? undefined : await readReservation(tx, row);
}

/** The row of the newest reservation of an item. */
async function lastAttempt(tx: Tx, itemId: string): Promise<ReservationRow | undefined> {
  // Nearly every item is new: reading one key costs less than reading all attempts after it.
  const first = await tx.get("SELECT id FROM reservations WHERE id = ?", attemptId(itemId, 1n));
  if (first === undefined) return undefined;
  return await tx.get<ReservationRow>(
    `SELECT ${reservationColumns} FROM reservations WHERE id > ? AND id < ? ORDER BY attempt DESC LIMIT 1`,
    // "/" is what follows ".".
    ...[`${itemId}.`, `${itemId}/`],
  );
}

/** The id of an attempt at an item. @param attempt - From 1. */
export function attemptId(itemId: string, attempt: bigint): string {
  return `${itemId}.${attempt}`;
}

/** The sources of a reservation's winc, in order. */
export async function partsOf(
  tx: Tx,
  { id, payer, winc }: Readonly<{ id: string; payer: UserAddress; winc: bigint }>,
): Promise<ReservationPart[]> {
  const rows = await tx.all<{ payer: UserAddress; approval_id: string | null; winc: bigint }>(
    "SELECT payer, approval_id, winc FROM reservation_parts WHERE reservation_id = ? ORDER BY position",
    id,
  );
  if (rows.length === 0 && winc > 0n) return [{ payer, approvalId: undefined, winc }];
  return rows.map((row) => ({ payer: row.payer, approvalId: row.approval_id ?? undefined, winc: row.winc }));
}

type ReservationRow = {
  id: string;
  item_id: string;
  attempt: bigint;
  payer: UserAddress;
  winc: bigint;
  state: string;
  created_at: bigint;
  expires_at: bigint;
};

/** The columns of a `ReservationRow`. */
const reservationColumns = "id, item_id, attempt, payer, winc, state, created_at, expires_at";

/** The reservation of a row, with its parts. */
export async function readReservation(tx: Tx, row: ReservationRow): Promise<Reservation> {
  return {
    id: row.id,
    itemId: row.item_id,
    signer: row.payer,
    winc: row.winc,
    state: readState(row.state),
    parts: await partsOf(tx, row),
    createdAt: readTime(row.created_at),
    expiresAt: readTime(row.expires_at),
  };
}

/** @param text - Of a row. */
export function readState(text: string): ReservationState {
  const state = states.find((known) => known === text);
  assert(state !== undefined, "a reservation's state is known");
  return state;
}

/**
 * Refunds a posted reservation: each payer receives their part, once. The part from an approval goes to the address
 * that gave the approval, because the approval was spent and may have ended. A second call changes nothing. The item
 * is no longer paid for, so it may be reserved again.
 */
export async function refundReservation(tx: Tx, reservationId: string, step: Step): Promise<void> {
  const [row] = await tx.all<{ id: string; item_id: string; payer: UserAddress; winc: bigint }>(
    "UPDATE reservations SET state = 'refunded' WHERE id = ? AND state = 'posted' " +
      "RETURNING id, item_id, payer, winc",
    reservationId,
  );
  if (row === undefined || row.winc === 0n) return;
  const parts = await partsOf(tx, row);
  await transfer(tx, {
    id: step.makeId(),
    kind: "refund",
    at: step.now,
    changeId: row.item_id,
    legs: [
      { account: revenue, amount: -row.winc },
      ...parts.map(({ payer, winc }) => ({ account: user(payer), amount: winc })),
    ],
  });
}
