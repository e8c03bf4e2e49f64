/**
 * Approvals: credits that one address has set aside for another to spend, until they are used, revoked or expire.
 *
 * An approval moves its credits from the paying address into its own escrow, so that they are spent once and only by
 * the approved address. An approval ends once: used (when all of it is posted), revoked or expired; the rest in escrow
 * is then returned. It may be spent while now < its expiry, on one clock. Only writes record ends; reads count expired
 * approvals as returned.
 * Source: docs/reference/payment.md#approvals.
 * @module
 */
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import { readTime, type Tx } from "../../store/ledger/ledger-database.ts";
import { escrow, type Leg, type MakeId, transfer, user } from "../../store/ledger/transfers.ts";
import type { UserAddress } from "../addresses.ts";

const states = ["active", "used", "revoked", "expired"] as const;

/** Whether an approval can be spent, or how it ended. */
export type ApprovalState = (typeof states)[number];

/** An approval. */
export type Approval = Readonly<{
  /** Id of the data item that gave it. */
  id: string;
  payingAddress: UserAddress;
  approvedAddress: UserAddress;
  /** Winc that were approved, above 0. */
  approvedWinc: bigint;
  /** Spent winc and winc held for uploads, 0 to `approvedWinc`. */
  usedWinc: bigint;
  state: ApprovalState;
  /** Unix milliseconds. */
  createdAt: number;
  /** Unix milliseconds, the first at which it can no longer be spent; `undefined` is never. */
  expiresAt: number | undefined;
}>;

/** A request to create an approval. */
export type ApprovalRequest = Readonly<{
  /** Id of the data item that gives it. */
  approvalId: string;
  payer: UserAddress;
  approved: UserAddress;
  /** Above 0. */
  winc: bigint;
  /** Unix milliseconds; `undefined` is never. */
  expiresAt?: number | undefined;
}>;

/** A request to revoke the approvals of one address for another. */
export type RevocationRequest = Readonly<{
  payer: UserAddress;
  approved: UserAddress;
  /** Id of the data item that revokes them. */
  revokeId: string;
}>;

/** The time of a step, and ids for its transfers. */
export type Step = Readonly<{
  /** Unix milliseconds. */
  now: number;
  makeId: MakeId;
}>;

/** Active approvals from one address for one other. The limit bounds the reads of a revocation and of a charge. */
export const activeApprovalsMax = 1_000;

/** The two databases sort NULL differently by default. */
const soonestFirst = "CASE WHEN expires_at IS NULL THEN 1 ELSE 0 END, expires_at, created_at, id";

/** Expired approvals that end in one transaction, so that other transactions wait only briefly. */
const endingsMax = 200;

/**
 * Creates an approval and moves its winc from the payer's balance into escrow.
 *
 * @throws Failure `insufficient_balance` {needed, available}; `payment_rejected` {reason} when the data item has
 *   created an approval before, for 0 winc, for oneself, for an expiry in the past, or when too many are active.
 */
export async function giveApproval(tx: Tx, request: ApprovalRequest, step: Step): Promise<Approval> {
  const { approvalId, payer, approved, winc, expiresAt } = request;
  await rejectApproval(tx, request, step.now);
  await expireGivenApprovals(tx, payer, step);
  await transfer(tx, {
    id: step.makeId(),
    kind: "approval",
    at: step.now,
    changeId: approvalId,
    legs: [
      { account: user(payer), amount: -winc },
      { account: escrow(approvalId), amount: winc },
    ],
  });
  const at = BigInt(step.now);
  await tx.run(
    `INSERT INTO approvals (${approvalColumns}) VALUES (?, ?, ?, ?, 0, 0, 'active', ?, ?)`,
    ...[approvalId, payer, approved, winc, at, expiresAt === undefined ? null : BigInt(expiresAt)],
  );
  const given = await findApproval(tx, approvalId);
  assert(given !== undefined, "a created approval is stored");
  return given;
}

async function rejectApproval(tx: Tx, request: ApprovalRequest, now: number): Promise<void> {
  const { approvalId, payer, approved, winc, expiresAt } = request;
  const reject = (reason: string) => new Failure("payment_rejected", { reason, approvalId, payer, approved, winc });
  if (winc <= 0n) throw reject("An approval must be of at least 1 winc");
  if (payer === approved) throw reject("An address cannot approve itself");
  if (expiresAt !== undefined && !(Number.isSafeInteger(expiresAt) && expiresAt > now))
    throw reject("An approval expires at a time after it is given");
  if ((await findApproval(tx, approvalId)) !== undefined)
    throw reject(`Conflicting approval found for approval ID '${approvalId}'`);
  const active = await tx.get<{ count: bigint }>(
    "SELECT COUNT(*) AS count FROM approvals WHERE paying_address = ? AND approved_address = ? AND state = 'active'",
    ...[payer, approved],
  );
  if (active !== undefined && active.count >= BigInt(activeApprovalsMax))
    throw reject(`No more than ${activeApprovalsMax} approvals for one address can be active`);
}

/**
 * Revokes the active approvals from one address for another and returns their unused credits to the payer. Credits
 * that running uploads hold are returned when the uploads fail.
 *
 * @returns The approvals that this data item revoked, now or earlier; idempotent.
 * @throws Failure `payment_rejected` {reason} when there are no such approvals.
 */
export async function revokeApprovals(tx: Tx, request: RevocationRequest, step: Step): Promise<Approval[]> {
  const { payer, approved, revokeId } = request;
  let rows = await revokedBetween(tx, request);
  if (rows.length === 0) {
    await expireGivenApprovals(tx, payer, step);
    await revokeAll(tx, request, await activeBetween(tx, payer, approved), step);
    rows = await revokedBetween(tx, request);
  }
  if (rows.length === 0)
    throw new Failure("payment_rejected", {
      reason: `No valid approvals found for approved address '${approved}' and paying address '${payer}'`,
      revokeId,
    });
  return rows.map(readApproval);
}

/** Revokes up to a thousand approvals in one transfer, because other transactions wait. */
async function revokeAll(
  tx: Tx,
  { payer, approved, revokeId }: RevocationRequest,
  active: readonly ApprovalRow[],
  { now, makeId }: Step,
): Promise<void> {
  const ended = await tx.run(
    "UPDATE approvals SET state = 'revoked', ended_at = ?, revoke_id = ? " +
      "WHERE paying_address = ? AND approved_address = ? AND state = 'active'",
    ...[BigInt(now), revokeId, payer, approved],
  );
  assert(ended === active.length, "an active approval is revoked once");
  const legs = active.map((row): Leg => ({ account: escrow(row.id), amount: -unusedOf(row) }));
  const left = active.reduce((sum, row) => sum + unusedOf(row), 0n);
  if (left === 0n) return;
  legs.push({ account: user(payer), amount: left });
  await transfer(tx, { id: makeId(), kind: "approval_revoked", at: now, changeId: revokeId, legs });
}

async function revokedBetween(tx: Tx, { payer, approved, revokeId }: RevocationRequest): Promise<ApprovalRow[]> {
  return await tx.all<ApprovalRow>(
    `SELECT ${approvalColumns} FROM approvals WHERE revoke_id = ? AND paying_address = ? AND approved_address = ? ` +
      "ORDER BY created_at, id",
    ...[revokeId, payer, approved],
  );
}

async function activeBetween(tx: Tx, payer: string, approved: string): Promise<ApprovalRow[]> {
  return await tx.all<ApprovalRow>(
    `SELECT ${approvalColumns} FROM approvals ` +
      "WHERE paying_address = ? AND approved_address = ? AND state = 'active' ORDER BY created_at, id",
    ...[payer, approved],
  );
}

/**
 * Ends expired approvals, the longest expired first, and returns the rest to the payers.
 *
 * @returns How many ended; after a full batch more may be left.
 */
export async function expireApprovals(tx: Tx, step: Step, limit: number): Promise<number> {
  const rows = await tx.all<ApprovalRow>(
    `SELECT ${approvalColumns} FROM approvals WHERE state = 'active' AND expires_at <= ? ` +
      "ORDER BY expires_at, id LIMIT ?",
    ...[BigInt(step.now), BigInt(limit)],
  );
  for (const row of rows) await expire(tx, row, step);
  return rows.length;
}

/** Ends the expired approvals of a payer, so that its balance is complete before a charge. @returns How many ended. */
export async function expireGivenApprovals(tx: Tx, payer: UserAddress, step: Step): Promise<number> {
  // Runs for every upload and rarely finds a row: a query without an order costs a twentieth (measured).
  const one = "SELECT id FROM approvals WHERE paying_address = ? AND state = 'active' AND expires_at <= ? LIMIT 1";
  const due = await tx.get(one, payer, BigInt(step.now));
  if (due === undefined) return 0;
  const rows = await tx.all<ApprovalRow>(
    `SELECT ${approvalColumns} FROM approvals WHERE paying_address = ? AND state = 'active' AND expires_at <= ? ` +
      "ORDER BY expires_at, id LIMIT ?",
    ...[payer, BigInt(step.now), BigInt(endingsMax)],
  );
  for (const row of rows) await expire(tx, row, step);
  return rows.length;
}

async function expire(tx: Tx, row: ApprovalRow, { now, makeId }: Step): Promise<void> {
  const ended = await tx.run(
    "UPDATE approvals SET state = 'expired', ended_at = ? WHERE id = ? AND state = 'active'",
    BigInt(now),
    row.id,
  );
  assert(ended === 1, "an approval ends once");
  const left = unusedOf(row);
  if (left === 0n) return;
  await transfer(tx, {
    id: makeId(),
    kind: "approval_expired",
    at: now,
    changeId: row.id,
    legs: [
      { account: escrow(row.id), amount: -left },
      { account: user(row.paying_address), amount: left },
    ],
  });
}

/** Credits that can be drawn from an approval. */
export type Drawable = Readonly<{ approvalId: string; winc: bigint }>;

/** Approvals that an address can spend, soonest expiry first, those without expiry last. */
export async function drawableApprovals(
  tx: Tx,
  payer: UserAddress,
  spender: UserAddress,
  now: number,
): Promise<Drawable[]> {
  const rows = await tx.all<{ id: string; unused: bigint }>(
    "SELECT id, winc - pending - posted AS unused FROM approvals " +
      "WHERE paying_address = ? AND approved_address = ? AND state = 'active' AND winc > pending + posted " +
      `AND (expires_at IS NULL OR expires_at > ?) ORDER BY ${soonestFirst}`,
    ...[payer, spender, BigInt(now)],
  );
  return rows.map(({ id, unused }) => ({ approvalId: id, winc: unused }));
}

/** Takes winc of an approval for a reservation. @returns The leg out of its escrow. */
export async function drawApproval(tx: Tx, { approvalId, winc }: Drawable): Promise<Leg> {
  await tx.run("UPDATE approvals SET pending = pending + ? WHERE id = ?", winc, approvalId);
  return { account: escrow(approvalId), amount: -winc };
}

/** Spends the credits that a reservation drew. An approval without a rest ends. */
export async function spendDrawn(tx: Tx, { approvalId, winc }: Drawable, now: number): Promise<void> {
  const spent = "UPDATE approvals SET pending = pending - ?, posted = posted + ? WHERE id = ?";
  await tx.run(spent, winc, winc, approvalId);
  await endWhenUsed(tx, approvalId, now);
}

/** Spends winc of an approval for good that no reservation drew before. @returns The leg out of its escrow. */
export async function spendApproval(tx: Tx, { approvalId, winc }: Drawable, now: number): Promise<Leg> {
  await tx.run("UPDATE approvals SET posted = posted + ? WHERE id = ?", winc, approvalId);
  await endWhenUsed(tx, approvalId, now);
  return { account: escrow(approvalId), amount: -winc };
}

async function endWhenUsed(tx: Tx, approvalId: string, now: number): Promise<void> {
  await tx.run(
    "UPDATE approvals SET state = CASE WHEN expires_at <= ? THEN 'expired' ELSE 'used' END, ended_at = ? " +
      "WHERE id = ? AND state = 'active' AND posted = winc",
    BigInt(now),
    BigInt(now),
    approvalId,
  );
}

/**
 * Returns the credits that a reservation drew.
 *
 * @returns The leg into the escrow when the approval can be spent again, else to the payer.
 */
export async function returnDrawn(tx: Tx, { approvalId, winc }: Drawable, step: Step): Promise<Leg> {
  const row = await findApprovalRow(tx, approvalId);
  assert(row !== undefined, "an approval that was drawn on is stored");
  const isOver = row.expires_at !== null && row.expires_at <= BigInt(step.now);
  if (row.state === "active" && isOver) await expire(tx, row, step);
  await tx.run("UPDATE approvals SET pending = pending - ? WHERE id = ?", winc, approvalId);
  const canBeSpent = row.state === "active" && !isOver;
  return { account: canBeSpent ? escrow(approvalId) : user(row.paying_address), amount: winc };
}

/** An approval in any state. */
export async function findApproval(tx: Tx, id: string): Promise<Approval | undefined> {
  const row = await findApprovalRow(tx, id);
  return row === undefined ? undefined : readApproval(row);
}

async function findApprovalRow(tx: Tx, id: string): Promise<ApprovalRow | undefined> {
  return await tx.get<ApprovalRow>(`SELECT ${approvalColumns} FROM approvals WHERE id = ?`, id);
}

/** The approvals that a data item has revoked, oldest first; at most `activeApprovalsMax`. */
export async function approvalsRevokedBy(tx: Tx, revokeId: string): Promise<Approval[]> {
  const rows = await tx.all<ApprovalRow>(
    `SELECT ${approvalColumns} FROM approvals WHERE revoke_id = ? ORDER BY created_at, id LIMIT ?`,
    ...[revokeId, BigInt(activeApprovalsMax)],
  );
  return rows.map(readApproval);
}

/** The subject of a list of approvals. */
export type ApprovalSide = Readonly<{ payer?: UserAddress; approved?: UserAddress }>;

/** Approvals of one payer, for one address, or both, at a given time. */
export type ApprovalsNow = Readonly<{
  /** Approvals with a rest, soonest expiry first; at most `activeApprovalsMax`. */
  approvals: readonly Approval[];
  /** The rest of all of them, winc, including approvals that are not listed. */
  unusedWinc: bigint;
  /** The rest of expired approvals that is not returned yet, winc. */
  expiredWinc: bigint;
}>;

/** Reads approvals at a given time; writes nothing. */
export async function approvalsNow(tx: Tx, side: ApprovalSide, now: number): Promise<ApprovalsNow> {
  const sides: readonly (readonly [column: string, address: string | undefined])[] = [
    ["paying_address = ?", side.payer],
    ["approved_address = ?", side.approved],
  ];
  const conditions = sides.flatMap(([column, address]) => (address === undefined ? [] : [{ column, address }]));
  assert(conditions.length > 0, "a list of approvals names a payer or an approved address");
  const columns = conditions.map(({ column }) => column);
  const where = [...columns, "state = 'active'", "winc > pending + posted"].join(" AND ");
  const addresses = conditions.map(({ address }) => address);
  const sumWhere = (condition: string) =>
    `CAST(COALESCE(SUM(CASE WHEN ${condition} THEN winc - pending - posted END), 0) AS BIGINT)`;
  const sums = await tx.get<{ unused: bigint; expired: bigint }>(
    `SELECT ${sumWhere("expires_at IS NULL OR expires_at > ?")} AS unused, ` +
      `${sumWhere("expires_at <= ?")} AS expired FROM approvals WHERE ${where}`,
    BigInt(now),
    BigInt(now),
    ...addresses,
  );
  const { unused: unusedWinc, expired: expiredWinc } = sums ?? { unused: 0n, expired: 0n };
  if (unusedWinc === 0n) return { approvals: [], unusedWinc, expiredWinc };
  const rows = await tx.all<ApprovalRow>(
    `SELECT ${approvalColumns} FROM approvals WHERE ${where} AND (expires_at IS NULL OR expires_at > ?) ` +
      `ORDER BY ${soonestFirst} LIMIT ?`,
    ...addresses,
    BigInt(now),
    BigInt(activeApprovalsMax),
  );
  return { approvals: rows.map(readApproval), unusedWinc, expiredWinc };
}

type ApprovalRow = {
  id: string;
  paying_address: UserAddress;
  approved_address: UserAddress;
  winc: bigint;
  pending: bigint;
  posted: bigint;
  state: string;
  created_at: bigint;
  expires_at: bigint | null;
};

const approvalColumns = "id, paying_address, approved_address, winc, pending, posted, state, created_at, expires_at";

function unusedOf({ winc, pending, posted }: ApprovalRow): bigint {
  return winc - pending - posted;
}

function readApproval(row: ApprovalRow): Approval {
  const state = states.find((known) => known === row.state);
  assert(state !== undefined, "an approval's state is known");
  return {
    id: row.id,
    payingAddress: row.paying_address,
    approvedAddress: row.approved_address,
    approvedWinc: row.winc,
    usedWinc: row.pending + row.posted,
    state,
    createdAt: readTime(row.created_at),
    expiresAt: row.expires_at === null ? undefined : readTime(row.expires_at),
  };
}
