/**
 * Taking a data item in: from the first bytes of a stream to a durable row that its receipt can be made of.
 *
 * What can be refused is refused as soon as the header is read. The bytes are verified and on the disk before the one
 * transaction that charges for the item, carries out what its tags say of approvals, and writes its row. An item that
 * comes again is answered with the row of the first time, and nothing is charged: also when both come at once, and
 * from two processes.
 * Source: contract.md §6; reference/upload.md §1, §3.
 * @module
 */
import { readItemHeader } from "../arweave/data-item.ts";
import { tagValue } from "../arweave/tags.ts";
import { type Winc, winc } from "../arweave/winston.ts";
import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import type { UserAddress } from "../payment/addresses.ts";
import {
  type Approval,
  approvalsRevokedBy,
  findApproval,
  giveApproval,
  revokeApprovals,
} from "../payment/approvals.ts";
import type { Balance } from "../payment/balances.ts";
import type { Prices } from "../payment/prices.ts";
import { type PaymentDirective, post, reserve } from "../payment/reservations.ts";
import type { WrittenItem } from "../store/intake-jobs.ts";
import type { LedgerDatabase, Tx } from "../store/ledger/database.ts";
import type { MakeId } from "../store/ledger/transfer-ids.ts";
import type { PendingRow } from "../store/rows.ts";
import { readApprovalWish } from "./approval-tags.ts";
import { type ItemSession, type ItemStore, smallItemBytesMax } from "./item-store.ts";
import type { UploadRoom } from "./room.ts";
import { accountOf } from "./signer-account.ts";
import { findUpload, insertUpload, type Upload } from "./uploads.ts";

/** An item as it arrives. */
export type Arrival = Readonly<{
  /** Its bytes, in any pieces; it throws what ends it early. */
  pieces: AsyncIterable<Uint8Array>;
  /** Of the whole item, as announced; `undefined` where only the end will tell. */
  size: number | undefined;
  /** Whose approvals pay, in this order. */
  paidBy: readonly UserAddress[];
  directive: PaymentDirective;
}>;

/** What became of an item. */
export type Taken = Readonly<{
  upload: Upload;
  /** Approvals that this item gave, or took back. */
  createdApproval: Approval | undefined;
  revokedApprovals: readonly Approval[] | undefined;
}>;

/** Takes items. */
export type Intake = Readonly<{
  /**
   * Takes an item. When it resolves, its bytes, its row and its payment are durable.
   *
   * @throws Failure `upload_refused` {reason}, `item_too_large` {reason}, `upload_forbidden`, `insufficient_balance`
   *   {needed, available}, `payment_refused` {reason}, `no_room`, `busy`, `pricing_oracle_unavailable`,
   *   `database_unavailable`; what the pieces throw. Then nothing was charged and nothing is kept.
   */
  take: (arrival: Arrival, signal: AbortSignal) => Promise<Taken>;
}>;

/** Who may upload, and at whose cost. */
export type IntakeRules = Readonly<{
  itemBytesMax: number;
  /** Items up to this size cost nothing. */
  freeBytesMax: number;
  /** Accounts whose items cost nothing, and accounts whose items are refused. */
  allowed: ReadonlySet<string>;
  blocked: ReadonlySet<string>;
}>;

/** What intake is made of. */
export type IntakeParts = Readonly<{
  ledger: LedgerDatabase;
  store: ItemStore;
  room: UploadRoom;
  prices: Pick<Prices, "bytes">;
  balance: (address: UserAddress) => Promise<Balance | undefined>;
  /** Height of the chain; 0 while it is not known. */
  height: () => number;
  rules: IntakeRules;
  /** Told of every item that was taken for the first time, when it is durable; its receipt waits for it. Never rejects. */
  onTaken: (item: WrittenItem, upload: Upload) => Promise<void>;
  makeId: MakeId;
  clock: Clock;
}>;

/** Blocks within which an item is promised to be on the chain. */
const deadlineBlocks = 200;

/** Between the row and the end of its transaction; nothing waits for it longer. */
const reservationMs = 60_000;

/** No header is longer: type, signature, owner, target, anchor, counts and tags. */
const headerBytesMax = 32 * 1_024;

/** Pieces of a large item are joined up to this size before they go to a thread. */
const pieceBytes = smallItemBytesMax;

/** Of an item that is answered before its end so many bytes more are read: clients hear no answer while they send. */
const drainBytesMax = 16 * 2 ** 20;

/** Room that is held for an item whose size only its end will tell; a disk that is full says so itself. Bytes. */
const unknownSizeHeld = 256 * 2 ** 20;

/** An item whose header has been read. */
type Begun = Readonly<{
  id: string;
  signer: UserAddress;
  head: Uint8Array;
  rest: AsyncIterator<Uint8Array>;
}>;

/** Creates the intake. */
export function createIntake(parts: IntakeParts): Intake {
  const { ledger, room, rules } = parts;

  async function take(arrival: Arrival, signal: AbortSignal): Promise<Taken> {
    refuseSize(arrival.size, rules);
    const begun = await begin(arrival);
    try {
      if (rules.blocked.has(begun.signer)) throw new Failure("upload_forbidden", { signer: begun.signer });
      const known = await ledger.read((tx) => findTaken(tx, begun.id));
      if (known !== undefined) return known;
      if (arrival.size !== undefined) await checkFunds(parts, begun.signer, arrival.size, signal);
      const place = room.take(arrival.size ?? unknownSizeHeld);
      try {
        const item = await write(parts, begun, arrival.size, signal);
        return await charge(parts, item, arrival, signal);
      } finally {
        place.release();
      }
    } finally {
      await leave(begun.rest);
    }
  }

  return { take };
}

function refuseSize(size: number | undefined, { itemBytesMax }: IntakeRules): void {
  if (size !== undefined && size > itemBytesMax) {
    const reason = `Data item is too large, this service only accepts data items up to ${itemBytesMax} bytes!`;
    throw new Failure("item_too_large", { reason, size });
  }
}

/** Reads until the header is complete. */
async function begin({ pieces, size }: Arrival): Promise<Begun> {
  const rest = pieces[Symbol.asyncIterator]();
  let head: Uint8Array = new Uint8Array(0);
  for (;;) {
    const read = readItemHeader(head, "strict", size);
    if (read.kind === "invalid") throw invalid(read.reason);
    if (read.kind === "header") {
      const { id, signatureType, owner } = read.header;
      return { id, signer: accountOf(signatureType, owner), head, rest };
    }
    if (read.bytes > headerBytesMax) throw invalid("its header is too large");
    const next = await rest.next();
    if (next.done === true) throw invalid("the item is cut short");
    head = head.length === 0 ? next.value : Buffer.concat([head, next.value]);
  }
}

/** Takes the rest off the connection, where that is worth more than a new connection. */
async function leave(rest: AsyncIterator<Uint8Array>): Promise<void> {
  let left = drainBytesMax;
  while (left > 0) {
    const next = await rest.next();
    if (next.done === true) return;
    left -= next.value.length;
  }
  await rest.return?.();
}

/** Early word to those who cannot pay: nothing of theirs is read or written. What counts is decided by `charge`. */
async function checkFunds(
  parts: IntakeParts,
  signer: UserAddress,
  size: number,
  signal: AbortSignal,
): Promise<void> {
  const needed = await priceOf(parts, signer, size, signal);
  if (needed === 0n) return;
  const available = (await parts.balance(signer))?.effectiveBalance ?? 0n;
  if (available < needed) throw new Failure("insufficient_balance", { signer, needed, available });
}

/** Free items are free also while no price is known. */
async function priceOf(
  { rules, prices }: IntakeParts,
  signer: UserAddress,
  size: number,
  signal: AbortSignal,
): Promise<Winc> {
  if (size <= rules.freeBytesMax || rules.allowed.has(signer)) return winc(0n);
  return (await prices.bytes(BigInt(size), signal)).winc;
}

/** Brings the item to the disk, verified. */
async function write(
  { store, rules }: IntakeParts,
  { head, rest }: Begun,
  size: number | undefined,
  signal: AbortSignal,
): Promise<WrittenItem> {
  const pieces = joined(head, rest, size ?? pieceBytes, rules);
  const first = await pieces.next();
  const second = first.done === true ? first : await pieces.next();
  if (first.done === true) throw invalid("the item is cut short");
  if (second.done === true) {
    if (size !== undefined && first.value.length !== size) throw wrongSize(first.value.length, size);
    return await store.take(first.value, signal);
  }
  const session = store.begin(size);
  return await feedAll(session, [first.value, second.value], pieces, signal);
}

async function feedAll(
  session: ItemSession,
  first: readonly Uint8Array<ArrayBuffer>[],
  pieces: AsyncGenerator<Uint8Array<ArrayBuffer>>,
  signal: AbortSignal,
): Promise<WrittenItem> {
  try {
    for (const piece of first) await session.feed(piece);
    // What arrives while a piece is taken waits in the connection, and holds its sender back.
    for await (const piece of pieces) {
      signal.throwIfAborted();
      await session.feed(piece);
    }
    return await session.finish();
  } catch (error) {
    await session.drop();
    throw error;
  }
}

/** Pieces of `pieceBytes`, the last one shorter; each a buffer of its own. No more than one is needed for `expected` bytes. */
async function* joined(
  head: Uint8Array,
  rest: AsyncIterator<Uint8Array>,
  expected: number,
  rules: IntakeRules,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const capacity = Math.min(expected, pieceBytes);
  let buffer = new Uint8Array(capacity);
  let filled = 0;
  let total = 0;
  for (let piece: Uint8Array | undefined = head; piece !== undefined; ) {
    total += piece.length;
    refuseSize(total, rules);
    for (let at = 0; at < piece.length; ) {
      const part = piece.subarray(at, at + capacity - filled);
      buffer.set(part, filled);
      filled += part.length;
      at += part.length;
      if (filled === capacity) {
        yield buffer;
        buffer = new Uint8Array(capacity);
        filled = 0;
      }
    }
    const next = await rest.next();
    piece = next.done === true ? undefined : next.value;
  }
  if (filled > 0) yield buffer.slice(0, filled);
}

/** Charges for an item and writes its row, or finds that it was there. */
async function charge(
  parts: IntakeParts,
  item: WrittenItem,
  arrival: Arrival,
  signal: AbortSignal,
): Promise<Taken> {
  const { ledger, clock } = parts;
  const { row } = item;
  const signer = accountOf(row.signatureType, row.owner);
  const price = await priceOf(parts, signer, item.size, signal);
  const now = clock();
  const wish = readApprovalWish(row.id, row.tags, signer, now);
  const taken = await ledger.write(async (tx) => {
    const known = await findTaken(tx, row.id);
    if (known !== undefined) return { isNew: false, taken: known };
    const step = { now, makeId: parts.makeId };
    const { paidBy, directive } = arrival;
    const expiresAt = now + reservationMs;
    const request = { itemId: row.id, signer, paidBy, directive, winc: price, expiresAt };
    const reservation = price === 0n ? undefined : await reserve(tx, request, step);
    if (reservation !== undefined) {
      const state = await post(tx, reservation.id, step);
      assert(state === "posted", "what was reserved in a transaction is posted in it");
    }
    if (wish?.kind === "give") await giveApproval(tx, wish.request, step);
    if (wish?.kind === "revoke") await revokeApprovals(tx, wish.request, step);
    await insertUpload(
      tx,
      takenItem(parts, item, row, { signer, winc: price, reservationId: reservation?.id, now }),
    );
    const inserted = await findTaken(tx, row.id);
    assert(inserted !== undefined, "a row that was written is there");
    return { isNew: true, taken: inserted };
  });
  if (taken.isNew) await parts.onTaken(item, taken.taken.upload);
  return taken.taken;
}

type Terms = Readonly<{ signer: UserAddress; winc: Winc; reservationId: string | undefined; now: number }>;

function takenItem(parts: IntakeParts, { file, offset, size }: WrittenItem, row: PendingRow, terms: Terms) {
  assert(row.digest !== null, "an item that was written has a digest");
  return {
    id: row.id,
    bytes: { file, offset, size },
    headerSize: row.headerSize,
    signatureType: row.signatureType,
    ownerAddress: row.ownerAddress,
    contentType: tagValue(row.tags, "Content-Type"),
    contentEncoding: tagValue(row.tags, "Content-Encoding"),
    digest: row.digest,
    signer: terms.signer,
    winc: terms.winc,
    reservationId: terms.reservationId,
    receivedAt: terms.now,
    deadlineHeight: parts.height() + deadlineBlocks,
  };
}

async function findTaken(tx: Tx, id: string): Promise<Taken | undefined> {
  const upload = await findUpload(tx, id);
  if (upload === undefined) return undefined;
  const revoked = await approvalsRevokedBy(tx, id);
  const revokedApprovals = revoked.length === 0 ? undefined : revoked;
  return { upload, createdApproval: await findApproval(tx, id), revokedApprovals };
}

function invalid(reason: string): Failure {
  return new Failure("upload_refused", { reason: `Invalid Data Item! ${reason}` });
}

function wrongSize(size: number, announced: number): Failure {
  return invalid(`it has ${size} bytes, ${announced} were announced`);
}
