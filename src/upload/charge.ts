/**
 * Charging for a data item: the one transaction in which it is paid for, what its tags say of approvals is carried out,
 * and its row is written. An item that is there already costs nothing, whoever sends it and however often.
 * Source: contract.md §6; reference/upload.md §1.
 * @module
 */
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
  type Step,
} from "../payment/approvals.ts";
import type { Prices } from "../payment/prices.ts";
import { type PaymentDirective, post, reserve } from "../payment/reservations.ts";
import type { WrittenItem } from "../store/intake-jobs.ts";
import type { LedgerDatabase, Tx } from "../store/ledger/database.ts";
import type { MakeId } from "../store/ledger/transfer-ids.ts";
import type { PendingRow } from "../store/rows.ts";
import { type ApprovalWish, readApprovalWish } from "./approval-tags.ts";
import { accountOf } from "./signer-account.ts";
import { findUpload, insertUpload, type Upload } from "./uploads.ts";

/** Who pays for an item, and what else belongs to its transaction. */
export type Terms = Readonly<{
  /** Whose approvals pay, in this order. */
  paidBy: readonly UserAddress[];
  directive: PaymentDirective;
  /** Set for an item that was paid for before it came: then nobody else pays. */
  prepaid?: Prepaid | undefined;
  /** Runs first in the transaction in which the item is taken, or found to be there. It may run more than once. */
  alongside?: ((tx: Tx, step: Step, id: string) => Promise<void>) | undefined;
}>;

/** What was paid for before it came: the item costs its price, and never more than was asked for its size. */
export type Prepaid = Readonly<{
  /** Whose balance it is taken from. */
  payer: UserAddress;
  /** What was asked for. */
  winc: Winc;
  /** Of the whole item, as it was announced. Bytes. */
  size: number;
}>;

/** What became of an item. */
export type Taken = Readonly<{
  upload: Upload;
  /** Approvals that this item gave, or took back. */
  createdApproval: Approval | undefined;
  revokedApprovals: readonly Approval[] | undefined;
}>;

/** Whose items cost nothing. */
export type PriceRules = Readonly<{
  /** Items up to this size cost nothing. */
  freeBytesMax: number;
  /** Accounts whose items cost nothing. */
  allowed: ReadonlySet<string>;
}>;

/** What charging needs. */
export type ChargeParts = Readonly<{
  ledger: LedgerDatabase;
  prices: Pick<Prices, "bytes">;
  /** Height of the chain; 0 while it is not known. */
  height: () => number;
  rules: PriceRules;
  /** Told of every item that was taken for the first time, when it is durable; its receipt waits for it. Never rejects. */
  onTaken: (item: WrittenItem, upload: Upload) => Promise<void>;
  makeId: MakeId;
  clock: Clock;
}>;

/** Blocks within which an item is promised to be on the chain. */
const deadlineBlocks = 200;

/** Between the row and the end of its transaction; nothing waits for it longer. */
const reservationMs = 60_000;

/** What an item costs its signer. Free items are free also while no price is known. */
export async function priceOf(
  { rules, prices }: Pick<ChargeParts, "rules" | "prices">,
  signer: UserAddress,
  size: number,
  signal: AbortSignal,
): Promise<Winc> {
  if (size <= rules.freeBytesMax || rules.allowed.has(signer)) return winc(0n);
  return (await prices.bytes(BigInt(size), signal)).winc;
}

/**
 * Charges for an item and writes its row, or finds that it was there.
 *
 * @param item - Verified, and on the disk.
 * @throws Failure `insufficient_balance` {needed, available}, `payment_refused` {reason}, `upload_refused` {reason}; with
 *   the fact `wish` where it was the item's approval or revocation that failed; `pricing_oracle_unavailable`,
 *   `database_unavailable`. Then nothing was charged.
 */
export async function charge(
  parts: ChargeParts,
  item: WrittenItem,
  terms: Terms,
  signal: AbortSignal,
): Promise<Taken> {
  const { row } = item;
  const signer = accountOf(row.signatureType, row.owner);
  const price = await priceWith(parts, signer, item.size, terms.prepaid, signal);
  const step = { now: parts.clock(), makeId: parts.makeId };
  const wish = readApprovalWish(row.id, row.tags, signer, step.now);
  const { isNew, taken } = await parts.ledger.write(async (tx) => {
    const known = await findTaken(tx, row.id);
    await terms.alongside?.(tx, step, row.id);
    if (known !== undefined) return { isNew: false, taken: known };
    const reservationId = await pay(tx, { itemId: row.id, signer, price, terms, step });
    if (wish !== undefined) await carryOut(tx, wish, step);
    await insertUpload(
      tx,
      takenItem(parts, item, row, { signer, winc: price, reservationId, now: step.now }),
    );
    const inserted = await findTaken(tx, row.id);
    assert(inserted !== undefined, "a row that was written is there");
    return { isNew: true, taken: inserted };
  });
  if (isNew) await parts.onTaken(item, taken.upload);
  return taken;
}

/** Finds an item that was taken before; what belongs to its transaction is done for it too. */
export async function findAgain(
  { ledger, clock, makeId }: Pick<ChargeParts, "ledger" | "clock" | "makeId">,
  id: string,
  { alongside }: Terms,
): Promise<Taken | undefined> {
  const known = await ledger.read((tx) => findTaken(tx, id));
  if (known === undefined || alongside === undefined) return known;
  const step = { now: clock(), makeId };
  await ledger.write((tx) => alongside(tx, step, id));
  return known;
}

/** What became of an item earlier; `undefined` for one that was never taken. */
export async function findTaken(tx: Tx, id: string): Promise<Taken | undefined> {
  const upload = await findUpload(tx, id);
  if (upload === undefined) return undefined;
  const revoked = await approvalsRevokedBy(tx, id);
  const revokedApprovals = revoked.length === 0 ? undefined : revoked;
  return { upload, createdApproval: await findApproval(tx, id), revokedApprovals };
}

async function priceWith(
  parts: ChargeParts,
  signer: UserAddress,
  size: number,
  prepaid: Prepaid | undefined,
  signal: AbortSignal,
): Promise<Winc> {
  if (prepaid?.size === size) return prepaid.winc;
  const price = await priceOf(parts, signer, size, signal);
  return prepaid !== undefined && prepaid.winc < price ? prepaid.winc : price;
}

type Bill = Readonly<{ itemId: string; signer: UserAddress; price: Winc; terms: Terms; step: Step }>;

/** @returns What was paid with; `undefined` where nothing was. */
async function pay(tx: Tx, { itemId, signer, price, terms, step }: Bill): Promise<string | undefined> {
  if (price === 0n) return undefined;
  const { paidBy, directive, prepaid } = terms;
  const payers =
    prepaid === undefined
      ? { signer, paidBy, directive }
      : { signer: prepaid.payer, paidBy: [], directive: "list-or-signer" as const };
  const expiresAt = step.now + reservationMs;
  const { id } = await reserve(tx, { itemId, ...payers, winc: price, expiresAt }, step);
  const state = await post(tx, id, step);
  assert(state === "posted", "what was reserved in a transaction is posted in it");
  return id;
}

/** Gives an approval, or takes some back. */
async function carryOut(tx: Tx, wish: ApprovalWish, step: Step): Promise<void> {
  try {
    if (wish.kind === "give") await giveApproval(tx, wish.request, step);
    else await revokeApprovals(tx, wish.request, step);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw new Failure(error.code, { ...error.facts, wish: wish.kind }, error);
  }
}

type Charged = Readonly<{ signer: UserAddress; winc: Winc; reservationId: string | undefined; now: number }>;

function takenItem(
  parts: ChargeParts,
  { file, offset, size }: WrittenItem,
  row: PendingRow,
  charged: Charged,
) {
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
    signer: charged.signer,
    winc: charged.winc,
    reservationId: charged.reservationId,
    receivedAt: charged.now,
    deadlineHeight: parts.height() + deadlineBlocks,
  };
}
