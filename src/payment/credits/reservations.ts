/**
 * Reservations: credits that are held for a data item while it is uploaded, then spent or given back, once. An item
 * that is there already when it is paid for has one that was never pending.
 *
 * A repeated request for an item returns the same reservation: an item is paid for once however often it is sent.
 * After an attempt that failed the next one is a reservation of its own, so that a late word about the old one cannot
 * touch it. Whether a reservation is still pending is decided by its one change of state in the ledger, not by the
 * clock: one that has passed its expiry holds its credits until `expireReservations` gives them back, or until it is
 * posted, whichever is first.
 * Source: docs/reference/payment.md#reservations-and-refunds; docs/reference/threats.md (L2).
 * @module
 */
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import type { Tx } from "../../store/ledger/ledger-database.ts";
import { balanceOf, held, type Leg, revenue, type TransferKind, transfer, user } from "../../store/ledger/transfers.ts";
import type { UserAddress } from "../addresses.ts";
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
import {
  attemptId,
  lastAttempt,
  partsOf,
  type Reservation,
  type ReservationPart,
  type ReservationRow,
  type ReservationState,
  readReservation,
  readState,
  reservationColumns,
} from "./reservation-rows.ts";

/** The payers: the listed ones, or after them the signer too. A listed signer pays in its place. */
export type PaymentDirective = "list-only" | "list-or-signer";

/** A charge and its payers. */
export type ItemPayment = Readonly<{
  /** Id of the data item. */
  itemId: string;
  /** The signer of the item. */
  signer: UserAddress;
  /** Whose approvals are drawn on, in this order; repeated ones count once. At most `paidByMax`. */
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

/** Approvals that one reservation may draw on: its transaction stays short. */
export const partsMax = 200;

/**
 * Holds credits for an item, all of them or none. A pending or posted reservation of the item is returned as it is, its
 * price too; a later expiry is taken over.
 *
 * @throws Failure `insufficient_balance` {needed, available} when payers and approvals do not cover it, `available`
 *   being what they could have paid; `payment_rejected` {reason} for too many payers.
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
 * Pays for an item that is there: what `reserve` would hold and `post` would spend is spent in one movement. Credits
 * that are held for the item pay for it, at their price; one that is paid for costs nothing more.
 *
 * @returns Posted.
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
  // What costs nothing moves nothing.
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
 * @param transferId - What pays for the item at once; null where its winc are held first.
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

async function chooseParts(tx: Tx, request: ItemPayment, step: Step): Promise<ReservationPart[]> {
  const { signer, winc } = request;
  const parts: ReservationPart[] = [];
  let missing = winc;
  for (const payer of payersOf(request)) {
    if (missing === 0n) break;
    for (const source of await sourcesOf(tx, payer, signer, step)) {
      if (missing === 0n || parts.length === partsMax) break;
      const drawn = atMost(source.winc, missing);
      parts.push({ ...source, winc: drawn });
      missing -= drawn;
    }
  }
  if (missing > 0n) throw new Failure("insufficient_balance", { signer, needed: winc, available: winc - missing });
  return parts;
}

function atMost(winc: bigint, limit: bigint): bigint {
  if (winc > limit) return limit;
  return winc;
}

function payersOf({ paidBy, signer, directive }: ItemPayment): ReadonlySet<UserAddress> {
  if (paidBy.length > paidByMax)
    throw new Failure("payment_rejected", {
      reason: `No more than ${paidByMax} addresses can pay for one upload`,
    });
  return new Set(directive === "list-only" ? paidBy : [...paidBy, signer]);
}

/**
 * What one payer has for the signer: the signer's own balance, or approvals. A payer in debt has nothing: what was
 * charged back or reversed is not spent through others either.
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

/** Writes where a reservation's winc come from. @param take - Takes some of an approval. @returns The legs. */
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
 * Spends what a reservation holds.
 *
 * @returns The state in which the reservation has ended; only `posted` means that the item is paid for.
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
 * Gives back what a reservation holds: into the approvals from which it came where they can still be spent, else to
 * the payers.
 *
 * @returns The state in which the reservation has ended; `posted` means that nothing was given back.
 */
export async function voidReservation(tx: Tx, id: string, step: Step): Promise<ReservationState> {
  return await giveBack(tx, id, "voided", step);
}

/**
 * Gives back what reservations past their expiry hold, the longest expired first.
 *
 * @returns How many ended; a full batch says that more may be left.
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

/** Takes a reservation out of pending: of all who try, one does. */
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

/** An item that costs nothing moves nothing. */
async function move(tx: Tx, { id, kind, itemId, legs }: Movement, { now }: Step): Promise<void> {
  if (legs.every(({ amount }) => amount === 0n)) return;
  await transfer(tx, { id, kind, at: now, changeId: itemId, legs });
}
