/**
 * Rows of multipart uploads and of their parts (store/ledger/ledger-schema.ts).
 *
 * Each change of state names the required earlier state, so that a repeated step has no effect.
 * @module
 */
import { type Winc, winc } from "../../arweave/winston.ts";
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import { readToken, type Token, type UserAddress } from "../../payment/addresses.ts";
import type { PaymentDirective } from "../../payment/credits/reservations.ts";
import { type Row, readCount, readTime, type Tx } from "../../store/ledger/ledger-database.ts";

const states = ["open", "finalizing", "failed", "finalized"] as const;
const failureWords = ["INVALID", "UNDERFUNDED", "APPROVAL_FAILED", "REVOKE_FAILED"] as const;

export type MultipartState = (typeof states)[number];

/** Reason of a rejection, as a word of the wire. */
export type MultipartFailure = (typeof failureWords)[number];

/** The prepayment of an upload. */
export type PaidAhead = Readonly<{
  /** The account that paid, and that receives a refund. */
  payer: UserAddress;
  /** Paid bytes. */
  size: number;
  winc: Winc;
  /** Holds the credits; `undefined` after its release. */
  reservationId: string | undefined;
  /** Name of the payment. One payment creates one upload. */
  payment: string;
}>;

/** The payers of the item, and the token in the path of the request. */
export type Payers = Readonly<{
  paidBy: readonly UserAddress[];
  directive: PaymentDirective;
  token: Token | undefined;
}>;

/** A multipart upload. */
export type MultipartUpload = Readonly<{
  id: string;
  state: MultipartState;
  /** Name of the folder of uploads that has its file (store/uploads/item-files.ts). */
  store: string;
  /** Size of the parts, as the client announced it. Bytes. */
  chunkSize: number;
  partCount: number;
  /** Size of the item, bytes; `undefined` before the finalization. */
  size: number | undefined;
  paid: PaidAhead | undefined;
  /** Set during the finalization. */
  payers: Payers | undefined;
  /** Set after the finalization. */
  itemId: string | undefined;
  failure: Readonly<{ word: MultipartFailure; reason: string }> | undefined;
  /** Unix milliseconds. */
  createdAt: number;
  changedAt: number;
  /** Time of its removal unless it is finalized. Unix milliseconds. */
  expiresAt: number;
}>;

/** Whether an upload has expired. @param now - Unix milliseconds. */
export function isOver({ state, expiresAt }: MultipartUpload, now: number): boolean {
  return (state === "open" || state === "failed") && expiresAt <= now;
}

/**
 * Rejects an upload whose file is at another process of the same ledger. A load balancer may send the next request
 * there.
 *
 * @throws Failure `busy`.
 */
export function checkOwnStore(storeName: string, { id, store }: MultipartUpload): void {
  if (store !== storeName) throw new Failure("busy", { reason: "the upload is stored by another process", id, store });
}

/** A part: its first byte in the item, and its size. */
export type Part = Readonly<{ start: number; size: number }>;

export type NewMultipart = Readonly<{
  id: string;
  store: string;
  chunkSize: number;
  paid: PaidAhead | undefined;
  /** Unix milliseconds. */
  now: number;
  expiresAt: number;
}>;

/** Inserts an upload; its id and its payment must be new. */
export async function insertMultipart(tx: Tx, made: NewMultipart): Promise<void> {
  const { id, store, chunkSize, paid, now, expiresAt } = made;
  await tx.run(
    "INSERT INTO multipart_uploads (id, state, store, chunk_size, payer, paid_size, paid_winc, reservation_id, " +
      "payment, created_at, changed_at, expires_at) VALUES (?, 'open', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ...[id, store, BigInt(chunkSize), paid?.payer ?? null, paid === undefined ? null : BigInt(paid.size)],
    ...[paid?.winc ?? null, paid?.reservationId ?? null, paid?.payment ?? null],
    ...[BigInt(now), BigInt(now), BigInt(expiresAt)],
  );
}

export async function findMultipart(tx: Tx, id: string): Promise<MultipartUpload | undefined> {
  const row = await tx.get<MultipartRow>("SELECT * FROM multipart_uploads WHERE id = ?", id);
  return row === undefined ? undefined : readMultipart(row);
}

/** Finds the upload of a payment. */
export async function findMultipartOfPayment(tx: Tx, payment: string): Promise<MultipartUpload | undefined> {
  const row = await tx.get<MultipartRow>("SELECT * FROM multipart_uploads WHERE payment = ?", payment);
  return row === undefined ? undefined : readMultipart(row);
}

/** The parts of an upload, ordered by offset and size. */
export async function partsOf(tx: Tx, id: string): Promise<Part[]> {
  const rows = await tx.all<{ start: bigint; size: bigint }>(
    "SELECT start, size FROM multipart_parts WHERE upload_id = ? ORDER BY start, size",
    id,
  );
  return rows.map(({ start, size }) => ({ start: readCount(start), size: readCount(size) }));
}

/** Inserts a durable part. @returns Whether it is new. */
export async function insertPart(tx: Tx, id: string, { start, size }: Part): Promise<boolean> {
  const added = await tx.run(
    "INSERT INTO multipart_parts (upload_id, start, size) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
    ...[id, BigInt(start), BigInt(size)],
  );
  if (added === 0) return false;
  await tx.run("UPDATE multipart_uploads SET part_count = part_count + 1 WHERE id = ?", id);
  return true;
}

/** Reopens an upload that was rejected, or whose finalization had a temporary failure. */
export async function reopenMultipart(tx: Tx, id: string, from: MultipartState, now: number): Promise<void> {
  await tx.run(
    "UPDATE multipart_uploads SET state = 'open', failure = NULL, failed_reason = NULL, size = NULL, changed_at = ? " +
      "WHERE id = ? AND state = ?",
    ...[BigInt(now), id, from],
  );
}

/** Begins a finalization, which ends by `becomeItem`, `failMultipart` or `reopenMultipart`. */
export async function beginFinalizing(
  tx: Tx,
  id: string,
  size: number,
  { paidBy, directive, token }: Payers,
  now: number,
): Promise<void> {
  await tx.run(
    "UPDATE multipart_uploads SET state = 'finalizing', failure = NULL, failed_reason = NULL, size = ?, paid_by = ?, " +
      "directive = ?, token = ?, changed_at = ? WHERE id = ? AND state IN ('open', 'failed')",
    ...[BigInt(size), JSON.stringify(paidBy), directive, token ?? null, BigInt(now), id],
  );
}

/** Ends an upload as an item, and removes its list of parts. @returns Whether this call changed the row. */
export async function becomeItem(tx: Tx, id: string, itemId: string, now: number): Promise<boolean> {
  const changed = await tx.run(
    "UPDATE multipart_uploads SET state = 'finalized', item_id = ?, reservation_id = NULL, part_count = 0, " +
      "changed_at = ? WHERE id = ? AND state = 'finalizing'",
    ...[itemId, BigInt(now), id],
  );
  if (changed === 1) await tx.run("DELETE FROM multipart_parts WHERE upload_id = ?", id);
  return changed === 1;
}

/** Marks the upload as failed. Its reservation must be released. @returns Whether this call changed the row. */
export async function failMultipart(
  tx: Tx,
  id: string,
  { word, reason }: NonNullable<MultipartUpload["failure"]>,
  now: number,
): Promise<boolean> {
  const changed = await tx.run(
    "UPDATE multipart_uploads SET state = 'failed', failure = ?, failed_reason = ?, reservation_id = NULL, " +
      "changed_at = ? WHERE id = ? AND state = 'finalizing'",
    ...[word, reason, BigInt(now), id],
  );
  return changed === 1;
}

/** Removes the list of parts of a rejected upload. */
export async function forgetParts(tx: Tx, id: string): Promise<void> {
  await tx.run("DELETE FROM multipart_parts WHERE upload_id = ?", id);
  await tx.run("UPDATE multipart_uploads SET part_count = 0 WHERE id = ?", id);
}

/** Uploads of a folder in finalization. */
export async function finalizingMultiparts(tx: Tx, store: string): Promise<MultipartUpload[]> {
  const rows = await tx.all<MultipartRow>(
    "SELECT * FROM multipart_uploads WHERE store = ? AND state <> 'finalized' AND state = 'finalizing' ORDER BY id",
    store,
  );
  return rows.map(readMultipart);
}

/** Expired uploads of a folder, oldest first, at most `limit`. */
export async function overdueMultiparts(tx: Tx, store: string, now: number, limit: number): Promise<MultipartUpload[]> {
  const rows = await tx.all<MultipartRow>(
    "SELECT * FROM multipart_uploads WHERE store = ? AND expires_at <= ? AND state <> 'finalized' " +
      "AND state <> 'finalizing' ORDER BY expires_at, id LIMIT ?",
    ...[store, BigInt(now), BigInt(limit)],
  );
  return rows.map(readMultipart);
}

/** Removes an upload that is not in finalization. @returns Whether there was one. */
export async function deleteMultipart(tx: Tx, id: string): Promise<boolean> {
  const upload = await findMultipart(tx, id);
  if (upload === undefined || upload.state === "finalizing") return false;
  await tx.run("DELETE FROM multipart_parts WHERE upload_id = ?", id);
  await tx.run("DELETE FROM multipart_uploads WHERE id = ?", id);
  return true;
}

/** Removes finalized uploads of a folder that expired before a time. */
export async function deleteFinalized(tx: Tx, store: string, before: number): Promise<void> {
  await tx.run(
    "DELETE FROM multipart_uploads WHERE state = 'finalized' AND store = ? AND expires_at <= ?",
    ...[store, BigInt(before)],
  );
}

/** Counts the unfinished uploads of a folder: those with a prepayment, or the others. */
export async function countUnfinished(tx: Tx, store: string, isPaid: boolean): Promise<number> {
  const row = await tx.get<{ n: bigint }>(
    "SELECT COUNT(*) AS n FROM multipart_uploads WHERE store = ? AND state <> 'finalized' " +
      `AND payment IS ${isPaid ? "NOT NULL" : "NULL"}`,
    store,
  );
  return readCount(row?.n ?? 0n);
}

/** The owner of a file of parts: an upload, or the item of a finalized upload; `undefined` for an orphaned file. */
export async function ownerOfFile(tx: Tx, id: string, file: string): Promise<MultipartUpload | "item" | undefined> {
  const upload = await findMultipart(tx, id);
  if (upload !== undefined && upload.state !== "finalized") return upload;
  const item = await tx.get<{ id: string }>(
    "SELECT id FROM uploads WHERE file = ? AND failed_reason IS NULL LIMIT 1",
    file,
  );
  return item === undefined ? undefined : "item";
}

type MultipartRow = Row &
  Readonly<{
    id: string;
    state: string;
    store: string;
    chunk_size: bigint;
    part_count: bigint;
    size: bigint | null;
    payer: string | null;
    paid_size: bigint | null;
    paid_winc: bigint | null;
    reservation_id: string | null;
    payment: string | null;
    paid_by: string | null;
    directive: string | null;
    token: string | null;
    item_id: string | null;
    failure: string | null;
    failed_reason: string | null;
    created_at: bigint;
    changed_at: bigint;
    expires_at: bigint;
  }>;

function readMultipart(row: MultipartRow): MultipartUpload {
  const state = states.find((known) => known === row.state);
  assert(state !== undefined, "a multipart upload's state is known");
  const word = failureWords.find((known) => known === row.failure);
  assert(word !== undefined || row.failure === null, "a multipart upload's failure is known");
  return {
    id: row.id,
    state,
    store: row.store,
    chunkSize: readCount(row.chunk_size),
    partCount: readCount(row.part_count),
    size: row.size === null ? undefined : readCount(row.size),
    paid: readPaid(row),
    payers: readPayers(row),
    itemId: row.item_id ?? undefined,
    failure: word === undefined ? undefined : { word, reason: row.failed_reason ?? "" },
    createdAt: readTime(row.created_at),
    changedAt: readTime(row.changed_at),
    expiresAt: readTime(row.expires_at),
  };
}

function readPaid(row: MultipartRow): PaidAhead | undefined {
  const { payer, paid_size, paid_winc, payment } = row;
  if (payer === null || paid_size === null || paid_winc === null || payment === null) return undefined;
  return {
    // Written from a `UserAddress`.
    payer: payer as UserAddress,
    size: readCount(paid_size),
    winc: winc(paid_winc),
    reservationId: row.reservation_id ?? undefined,
    payment,
  };
}

function readPayers({ state, paid_by, directive, token }: MultipartRow): Payers | undefined {
  if (state !== "finalizing" || paid_by === null) return undefined;
  return {
    // Written by `beginFinalizing` from addresses.
    paidBy: JSON.parse(paid_by) as readonly UserAddress[],
    directive: directive === "list-only" ? "list-only" : "list-or-signer",
    token: readToken(token ?? ""),
  };
}
