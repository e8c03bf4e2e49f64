/**
 * Rows of multipart uploads and of their parts (store/ledger/ledger-schema.ts).
 *
 * Whoever changes a state names the states that it must be in: a step that was taken already changes nothing.
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

/** Whether an upload takes parts, or how far it is beyond that. */
export type MultipartState = (typeof states)[number];

/** Why the item was rejected; the wire's word. */
export type MultipartFailure = (typeof failureWords)[number];

/** What was paid when an upload was made. */
export type PaidAhead = Readonly<{
  /** Whose credits it was, and is whose when they are given back. */
  payer: UserAddress;
  /** Bytes that it pays for. */
  size: number;
  winc: Winc;
  /** Holds the credits; `undefined` once they were given back. */
  reservationId: string | undefined;
  /** Names the payment: an upload is made once for it. */
  payment: string;
}>;

/** Who else pays, whether the signer does, and the token by whose name it was asked for. */
export type Payers = Readonly<{
  paidBy: readonly UserAddress[];
  directive: PaymentDirective;
  token: Token | undefined;
}>;

/** An upload in parts. */
export type MultipartUpload = Readonly<{
  id: string;
  state: MultipartState;
  /** The folder of uploads that has its file (store/uploads/store-name.ts). */
  store: string;
  /** What its maker said that parts would have. Bytes. */
  chunkSize: number;
  partCount: number;
  /** Of the whole; `undefined` before anybody said that it is whole. Bytes. */
  size: number | undefined;
  paid: PaidAhead | undefined;
  /** Set while it is finalized. */
  payers: Payers | undefined;
  /** Set when it has become an item. */
  itemId: string | undefined;
  failure: Readonly<{ word: MultipartFailure; reason: string }> | undefined;
  /** Unix milliseconds. */
  createdAt: number;
  changedAt: number;
  /** Unix milliseconds at which it is forgotten unless it is finalized. */
  expiresAt: number;
}>;

/** Whether its time is over. @param now - Unix milliseconds. */
export function isOver({ state, expiresAt }: MultipartUpload, now: number): boolean {
  return (state === "open" || state === "failed") && expiresAt <= now;
}

/**
 * Rejects an upload whose file another program of the same ledger has: a load balancer may send the next
 * request there.
 * @throws Failure `busy`.
 */
export function checkOwnStore(storeName: string, { id, store }: MultipartUpload): void {
  if (store !== storeName) throw new Failure("busy", { reason: "the upload is stored by another program", id, store });
}

/** A part: its first byte in the item, and its size. */
export type Part = Readonly<{ start: number; size: number }>;

/** What a new upload is made of. */
export type NewMultipart = Readonly<{
  id: string;
  store: string;
  chunkSize: number;
  paid: PaidAhead | undefined;
  /** Unix milliseconds. */
  now: number;
  expiresAt: number;
}>;

/** Writes a new upload; its id and its payment must be new. */
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

/** An upload by its id. */
export async function findMultipart(tx: Tx, id: string): Promise<MultipartUpload | undefined> {
  const row = await tx.get<MultipartRow>("SELECT * FROM multipart_uploads WHERE id = ?", id);
  return row === undefined ? undefined : readMultipart(row);
}

/** The upload that a payment made. */
export async function findMultipartOfPayment(tx: Tx, payment: string): Promise<MultipartUpload | undefined> {
  const row = await tx.get<MultipartRow>("SELECT * FROM multipart_uploads WHERE payment = ?", payment);
  return row === undefined ? undefined : readMultipart(row);
}

/** The parts of an upload in the order of their places, the shorter of two that begin together first. */
export async function partsOf(tx: Tx, id: string): Promise<Part[]> {
  const rows = await tx.all<{ start: bigint; size: bigint }>(
    "SELECT start, size FROM multipart_parts WHERE upload_id = ? ORDER BY start, size",
    id,
  );
  return rows.map(({ start, size }) => ({ start: readCount(start), size: readCount(size) }));
}

/** Writes a part that is on the disk. @returns Whether it was not there before. */
export async function insertPart(tx: Tx, id: string, { start, size }: Part): Promise<boolean> {
  const added = await tx.run(
    "INSERT INTO multipart_parts (upload_id, start, size) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
    ...[id, BigInt(start), BigInt(size)],
  );
  if (added === 0) return false;
  await tx.run("UPDATE multipart_uploads SET part_count = part_count + 1 WHERE id = ?", id);
  return true;
}

/** Reopens an upload that was rejected, or that could not be finalized yet. */
export async function reopenMultipart(tx: Tx, id: string, from: MultipartState, now: number): Promise<void> {
  await tx.run(
    "UPDATE multipart_uploads SET state = 'open', failure = NULL, failed_reason = NULL, size = NULL, changed_at = ? " +
      "WHERE id = ? AND state = ?",
    ...[BigInt(now), id, from],
  );
}

/** Takes an upload for finalization, from which it ends by one of the next two, or by `reopenMultipart`. */
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

/** Ends an upload as an item. Its parts are no longer distinguished. */
export async function becomeItem(tx: Tx, id: string, itemId: string, now: number): Promise<void> {
  await tx.run(
    "UPDATE multipart_uploads SET state = 'finalized', item_id = ?, reservation_id = NULL, part_count = 0, " +
      "changed_at = ? WHERE id = ? AND state = 'finalizing'",
    ...[itemId, BigInt(now), id],
  );
  await tx.run("DELETE FROM multipart_parts WHERE upload_id = ?", id);
}

/** Marks the upload as failed. What it held must have been released. @returns Whether this call did it. */
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

/** Forgets the parts of a rejected upload; later parts are its first again. */
export async function forgetParts(tx: Tx, id: string): Promise<void> {
  await tx.run("DELETE FROM multipart_parts WHERE upload_id = ?", id);
  await tx.run("UPDATE multipart_uploads SET part_count = 0 WHERE id = ?", id);
}

/** Uploads of a folder that are being finalized. */
export async function finalizingMultiparts(tx: Tx, store: string): Promise<MultipartUpload[]> {
  const rows = await tx.all<MultipartRow>(
    "SELECT * FROM multipart_uploads WHERE store = ? AND state <> 'finalized' AND state = 'finalizing' ORDER BY id",
    store,
  );
  return rows.map(readMultipart);
}

/** Uploads of a folder whose time is over, the oldest first, at most `limit`. */
export async function overdueMultiparts(tx: Tx, store: string, now: number, limit: number): Promise<MultipartUpload[]> {
  const rows = await tx.all<MultipartRow>(
    "SELECT * FROM multipart_uploads WHERE store = ? AND expires_at <= ? AND state <> 'finalized' " +
      "AND state <> 'finalizing' ORDER BY expires_at, id LIMIT ?",
    ...[store, BigInt(now), BigInt(limit)],
  );
  return rows.map(readMultipart);
}

/** Forgets an upload that is not being finalized. @returns Whether it was there. */
export async function deleteMultipart(tx: Tx, id: string): Promise<boolean> {
  const upload = await findMultipart(tx, id);
  if (upload === undefined || upload.state === "finalizing") return false;
  await tx.run("DELETE FROM multipart_parts WHERE upload_id = ?", id);
  await tx.run("DELETE FROM multipart_uploads WHERE id = ?", id);
  return true;
}

/** Forgets uploads of a folder that became items, when their time was over before a moment. */
export async function deleteFinalized(tx: Tx, store: string, before: number): Promise<void> {
  await tx.run(
    "DELETE FROM multipart_uploads WHERE state = 'finalized' AND store = ? AND expires_at <= ?",
    ...[store, BigInt(before)],
  );
}

/** Uploads of a folder that are not items yet. */
export async function countUnfinished(tx: Tx, store: string): Promise<number> {
  const row = await tx.get<{ n: bigint }>(
    "SELECT COUNT(*) AS n FROM multipart_uploads WHERE store = ? AND state <> 'finalized'",
    store,
  );
  return readCount(row?.n ?? 0n);
}

/** To whom a file of parts belongs: an upload, or an item that one has become; `undefined` for nobody. */
export async function ownerOfFile(tx: Tx, id: string, file: string): Promise<"upload" | "item" | undefined> {
  const upload = await findMultipart(tx, id);
  if (upload !== undefined && upload.state !== "finalized") return "upload";
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
