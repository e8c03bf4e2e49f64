/**
 * Rows of reservations: what is held for a data item or was paid for it, and where that came from.
 * @module
 */
import { assert } from "../../lib/assert.ts";
import { readTime, type Tx } from "../../store/ledger/ledger-database.ts";
import type { UserAddress } from "../addresses.ts";

const states = ["pending", "posted", "voided", "expired", "refunded"] as const;

/** Whether credits are held, or how that ended; what was posted may be refunded later (`refunds.ts`). */
export type ReservationState = (typeof states)[number];

/** A part of a reservation: from an approval, or from the payer's own balance. */
export type ReservationPart = Readonly<{ payer: UserAddress; approvalId: string | undefined; winc: bigint }>;

/** Credits held for an item. */
export type Reservation = Readonly<{
  /** Names this attempt at the item. */
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
export async function lastAttempt(tx: Tx, itemId: string): Promise<ReservationRow | undefined> {
  // Nearly every item is new: reading one key costs less than reading all attempts after it.
  const first = await tx.get("SELECT id FROM reservations WHERE id = ?", attemptId(itemId, 1n));
  if (first === undefined) return undefined;
  return await tx.get<ReservationRow>(
    `SELECT ${reservationColumns} FROM reservations WHERE id > ? AND id < ? ORDER BY attempt DESC LIMIT 1`,
    // "/" is what follows ".".
    ...[`${itemId}.`, `${itemId}/`],
  );
}

/** Names an attempt at an item. @param attempt - From 1. */
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

/** A row as stored. */
export type ReservationRow = {
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
export const reservationColumns = "id, item_id, attempt, payer, winc, state, created_at, expires_at";

/** A reservation as its row tells it, with its parts. */
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
