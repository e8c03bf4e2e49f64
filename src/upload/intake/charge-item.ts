/**
 * Charges for a data item: one transaction takes the payment, applies the approval tags, and inserts the row.
 *
 * An act of signing is charged once. An item that was accepted before is free, from any client, and in any encoding of
 * its signature.
 * Source: docs/reference/upload.md#from-a-post-to-a-receipt.
 * @module
 */
import type { WrittenItem } from "../../../workers/intake.ts";
import { addressOf, type Id } from "../../arweave/id.ts";
import { signatureLayout } from "../../arweave/signature.ts";
import { ethereum, kyve } from "../../arweave/signers/ethereum.ts";
import { isMalleable } from "../../arweave/signing.ts";
import { tagValue } from "../../arweave/tags.ts";
import { type Winc, winc } from "../../arweave/winston.ts";
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import { readAddress, type Token, type UserAddress } from "../../payment/addresses.ts";
import {
  type Approval,
  approvalsRevokedBy,
  findApproval,
  giveApproval,
  revokeApprovals,
  type Step,
} from "../../payment/credits/approvals.ts";
import { type PaymentDirective, payAtOnce } from "../../payment/credits/reservations.ts";
import type { Prices } from "../../payment/prices/price-types.ts";
import { type LedgerDatabase, readDurably, type Tx } from "../../store/ledger/ledger-database.ts";
import { balanceOf, type MakeId, user } from "../../store/ledger/transfers.ts";
import {
  findUpload,
  insertUpload,
  mayBeTaken,
  replaceUpload,
  type SignedItem,
  type TakenItem,
  type Upload,
  uploadsOfSigning,
} from "../upload-rows.ts";
import { type ApprovalChange, readApprovalChange } from "./approval-tags.ts";

/** The payers of an item, and further work in its transaction. */
export type Terms = Readonly<{
  /** Accounts whose approvals pay, in this order. */
  paidBy: readonly UserAddress[];
  directive: PaymentDirective;
  /** The token in the path of the request. It may select one of the accounts of a signer (`accountOf`). */
  token?: Token | undefined;
  /** Set for a prepaid item: then no other account pays. */
  prepaid?: Prepaid | undefined;
  /** Runs first in the transaction that accepts the item or finds it again. May run more than once. */
  alongside?: ((tx: Tx, step: Step, id: string) => Promise<void>) | undefined;
}>;

/** A prepayment: the item costs its price, but never more than the amount quoted for its size. */
export type Prepaid = Readonly<{
  /** The account that is charged. */
  payer: UserAddress;
  /** The quoted amount. */
  winc: Winc;
  /** Announced size of the complete item. Bytes. */
  size: number;
}>;

/** An accepted item. */
export type Taken = Readonly<{
  upload: Upload;
  /** The approval that this item created, or the approvals that it revoked. */
  createdApproval: Approval | undefined;
  revokedApprovals: readonly Approval[] | undefined;
}>;

export type PriceRules = Readonly<{
  /** Items up to this size are free. */
  freeBytesMax: number;
  /** Names of signers whose items are free (`namesOf`). */
  allowed: ReadonlySet<string>;
}>;

export type ChargeParts = Readonly<{
  ledger: LedgerDatabase;
  prices: Pick<Prices, "bytes">;
  /** Height of the chain; `undefined` while it is not known. */
  height: () => number | undefined;
  /** Name of the folder of uploads (store/uploads/item-files.ts). */
  storeName: string;
  rules: PriceRules;
  /**
   * Called for every item that is accepted for the first time, when it is durable. The receipt waits for it. Never
   * rejects.
   */
  onTaken: (item: WrittenItem, upload: Upload) => Promise<void>;
  makeId: MakeId;
  clock: Clock;
}>;

/** Blocks within which a receipt promises the item on the chain. */
const deadlineBlocks = 200;

/** The price of an item. Free items are free also while no price is known. @param names - Of the signer. */
export async function priceOf(
  { rules, prices }: Pick<ChargeParts, "rules" | "prices">,
  names: readonly string[],
  size: number,
  signal: AbortSignal,
): Promise<Winc> {
  if (size <= rules.freeBytesMax || names.some((name) => rules.allowed.has(name))) return winc(0n);
  return (await prices.bytes(BigInt(size), signal)).winc;
}

/**
 * Charges for an item and inserts its row, or finds an earlier row of the same act of signing.
 *
 * @param item - Verified and durable.
 * @throws Failure `insufficient_balance` {needed, available}, `payment_rejected` {reason}, `upload_rejected` {reason};
 *   with `approval` in the context if the item's approval or revocation failed; `pricing_oracle_unavailable`,
 *   `not_synced`, `busy`. Nothing was charged then. After `database_unavailable` the charge is unknown.
 */
export async function charge(parts: ChargeParts, item: WrittenItem, terms: Terms, signal: AbortSignal): Promise<Taken> {
  const { row } = item;
  const signer = accountOf(row.signatureType, row.owner, terms.token);
  const names = namesOf(row.signatureType, row.owner, signer);
  const price = await priceWith(parts, names, item.size, terms.prepaid, signal);
  const deadlineHeight = deadlineFrom(parts.height());
  const step = { now: parts.clock(), makeId: parts.makeId };
  const change = readApprovalChange(row.id, row.tags, signer, step.now);
  const taken = await parts.ledger.write(async (tx) => {
    const known = await findTaken(tx, signedItemOf(item));
    const isTaken = known !== undefined && known.upload.state !== "failed";
    await terms.alongside?.(tx, step, isTaken ? known.upload.id : row.id);
    if (isTaken) return known;
    const reservationId = await pay(tx, { itemId: row.id, signer, price, terms, step });
    const charged = takenItem(item, {
      store: parts.storeName,
      signer,
      winc: price,
      reservationId,
      receivedAt: step.now,
      deadlineHeight,
    });
    const upload: Upload = { ...charged, state: "stored", place: undefined, failedReason: undefined };
    if (known === undefined) {
      const approvals = change === undefined ? noApprovals : await carryOut(tx, change, step);
      await insertUpload(tx, charged);
      return { upload, ...approvals };
    }
    // Approvals that an item created or revoked remain after its failure, also when another encoding follows.
    if (known.itemIds.includes(row.id)) await replaceUpload(tx, charged);
    else await insertUpload(tx, charged);
    return { ...known, upload };
  });
  if (isItsOwn(taken, item)) await parts.onTaken(item, taken.upload);
  return taken;
}

/** Whether the row of an item names these bytes, not those of an earlier upload. */
export function isItsOwn({ upload }: Taken, { file, offset }: WrittenItem): boolean {
  return upload.bytes.file === file && upload.bytes.offset === offset;
}

/**
 * The height by which a receipt promises the item on the chain.
 *
 * @throws Failure `not_synced` while the height of the chain is unknown.
 */
export function deadlineFrom(height: number | undefined): number {
  if (height === undefined) throw new Failure("not_synced", { reason: "no block has been followed yet" });
  return height + deadlineBlocks;
}

/**
 * Finds an earlier upload of the same act of signing that has not failed, under any id. Runs `alongside` for it.
 *
 * @returns Also the balance of the account, and whether an item that is not found may still match an earlier upload.
 */
export async function findAgain(
  { ledger, clock, makeId }: Pick<ChargeParts, "ledger" | "clock" | "makeId">,
  item: SignedItem,
  account: UserAddress,
  { alongside }: Terms,
): Promise<Readonly<{ known: Taken | undefined; ownWinc: bigint; mayBeKnown: boolean }>> {
  const { taken, ...found } = await ledger.read(async (tx) => ({
    taken: await findTaken(tx, item),
    ownWinc: await balanceOf(tx, user(account)),
    mayBeKnown: await mayBeTaken(tx, item),
  }));
  const known = taken?.upload.state === "failed" ? undefined : taken;
  if (known !== undefined) await ledger.confirmed(); // it gets its receipt again
  if (known === undefined || alongside === undefined) return { known, ...found };
  const step = { now: clock(), makeId };
  const still = await ledger.write(async (tx) => {
    // The item may have failed since it was read: it is then taken as a new one.
    const again = await findTaken(tx, item);
    if (again === undefined || again.upload.state === "failed") return undefined;
    await alongside(tx, step, again.upload.id);
    return again;
  });
  return { known: still, ...found };
}

/** An earlier upload of an act of signing, and all ids of its uploads. */
type Found = Taken & Readonly<{ itemIds: readonly Id[] }>;

async function findTaken(tx: Tx, item: SignedItem): Promise<Found | undefined> {
  const itemIds = await uploadsOfSigning(tx, item);
  const taken = await readTaken(tx, itemIds);
  return taken === undefined ? undefined : { ...taken, itemIds };
}

/**
 * Reads an accepted item; undefined if it does not exist.
 *
 * @param ids - Of one act of signing: the upload is that of the first id, approvals are those of any.
 */
export async function readTaken(tx: Tx, ids: readonly string[]): Promise<Taken | undefined> {
  const [first] = ids;
  const upload = first === undefined ? undefined : await findUpload(tx, first);
  if (upload === undefined) return undefined;
  for (const id of ids) {
    const revoked = await approvalsRevokedBy(tx, id);
    if (revoked.length > 0) return { upload, createdApproval: undefined, revokedApprovals: revoked };
    const given = await findApproval(tx, id);
    // The unused approval, so that a receipt is always the same.
    if (given !== undefined)
      return { upload, createdApproval: { ...given, usedWinc: 0n }, revokedApprovals: undefined };
  }
  return { upload, ...noApprovals };
}

/** Reads the accepted item of an id, with the approvals of its act of signing. @param id - May be invalid. */
export async function readTakenById(tx: Tx, id: string): Promise<Taken | undefined> {
  return await readTaken(tx, [id, ...(await failedBefore(tx, id))]);
}

/** Finds the accepted item of an id; its row is on the disk, so that a receipt may be written. */
export function findTakenDurably(ledger: LedgerDatabase, id: string): Promise<Taken | undefined> {
  return readDurably(ledger, (tx) => readTakenById(tx, id));
}

/** Ids of failed uploads of the same act of signing, newest first. */
async function failedBefore(tx: Tx, id: string): Promise<Id[]> {
  const rows = await tx.all<{ id: Id }>(
    "SELECT id FROM uploads WHERE failed_reason IS NOT NULL AND signing_id IS NOT NULL AND id <> ? AND " +
      "signing_id = (SELECT signing_id FROM uploads WHERE id = ?) ORDER BY received_at DESC LIMIT ?",
    ...[id, id, BigInt(failedBeforeMax)],
  );
  return rows.map((row) => row.id);
}

/** Most failed uploads of one act of signing that are searched. */
const failedBeforeMax = 100;

function signedItemOf({ row, signing, size }: WrittenItem): SignedItem {
  const { signatureType, ownerAddress, headerSize } = row;
  return { signing, signatureType, ownerAddress, headerSize, size };
}

async function priceWith(
  parts: ChargeParts,
  names: readonly string[],
  size: number,
  prepaid: Prepaid | undefined,
  signal: AbortSignal,
): Promise<Winc> {
  if (prepaid?.size === size) return prepaid.winc;
  const price = await priceOf(parts, names, size, signal);
  return prepaid !== undefined && prepaid.winc < price ? prepaid.winc : price;
}

type Bill = Readonly<{ itemId: string; signer: UserAddress; price: Winc; terms: Terms; step: Step }>;

/** @returns The reservation; `undefined` for a free item. */
async function pay(tx: Tx, { itemId, signer, price, terms, step }: Bill): Promise<string | undefined> {
  if (price === 0n) return undefined;
  const { paidBy, directive, prepaid } = terms;
  const payers =
    prepaid === undefined
      ? { signer, paidBy, directive }
      : { signer: prepaid.payer, paidBy: [], directive: "list-or-signer" as const };
  return (await payAtOnce(tx, { itemId, ...payers, winc: price }, step)).id;
}

const noApprovals = { createdApproval: undefined, revokedApprovals: undefined } as const;

/** Creates or revokes approvals. @returns The same as a later `readTaken`. */
async function carryOut(tx: Tx, change: ApprovalChange, step: Step): Promise<Omit<Taken, "upload">> {
  try {
    return change.kind === "give"
      ? { ...noApprovals, createdApproval: await giveApproval(tx, change.request, step) }
      : { ...noApprovals, revokedApprovals: await revokeApprovals(tx, change.request, step) };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw new Failure(error.code, { ...error.context, approval: change.kind, payer: change.request.payer }, error);
  }
}

type Charged = Pick<TakenItem, "store" | "signer" | "winc" | "reservationId" | "receivedAt" | "deadlineHeight">;

function takenItem({ file, offset, size, row, signing }: WrittenItem, charged: Charged): TakenItem {
  assert(row.digest !== null, "an item that was written has a digest");
  return {
    ...charged,
    id: row.id,
    bytes: { file, offset, size },
    headerSize: row.headerSize,
    signatureType: row.signatureType,
    signingId: isMalleable(row.signatureType) ? signing.id : undefined,
    ownerAddress: row.ownerAddress,
    contentType: headerText(tagValue(row.tags, "Content-Type")),
    contentEncoding: headerText(tagValue(row.tags, "Content-Encoding")),
    digest: row.digest,
  };
}

/** The tag's value unless it contains a NUL, which headers and texts of the ledger cannot contain. */
function headerText(value: string | undefined): string | undefined {
  return value?.includes("\0") === true ? undefined : value;
}

/**
 * Returns the account that signed an item. The caller must check the signature before it charges.
 *
 * @param token - The token in the path of the request: `kyve` selects the KYVE account of an Ethereum key.
 * @throws Failure `upload_rejected` for an owner without an account: a key that is not on the curve.
 */
export function accountOf(signatureType: number, owner: Uint8Array, token?: Token): UserAddress {
  const isKyve = token === "kyve" && signatureType === ethereum.type;
  const scheme = isKyve ? kyve : signatureLayout(signatureType);
  const address = readAddress(scheme?.nativeAddress(owner) ?? "");
  if (address === undefined)
    throw new Failure("upload_rejected", { reason: "Invalid Data Item! its owner is not a valid account" });
  return address.address;
}

/** All names of a signer: an operator may list any of them. @param account - The result of `accountOf`. */
export function namesOf(signatureType: number, owner: Uint8Array, account: UserAddress): readonly string[] {
  const names = [account, addressOf(owner)];
  const hasTwoChains = signatureType === ethereum.type || signatureType === kyve.type;
  return hasTwoChains ? [...names, ethereum.nativeAddress(owner), kyve.nativeAddress(owner)] : names;
}
