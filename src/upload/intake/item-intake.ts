/**
 * Accepts a data item: from the first bytes of a stream to a durable row, which is the base of the receipt.
 *
 * An item is rejected as early as possible: most checks need only the header. The bytes are verified and on the disk
 * before one transaction charges for the item, applies its approval tags, and inserts its row. A repeated item, in any
 * encoding of its signature, returns the row of the first upload and is free. This holds for concurrent uploads too, at
 * one process or two.
 * Source: docs/reference/upload.md#from-a-post-to-a-receipt.
 * @module
 */
import type { WrittenItem } from "../../../workers/intake.ts";
import { signingOfHeader } from "../../arweave/signing.ts";
import { Failure } from "../../failures.ts";
import { sha256 } from "../../lib/hash.ts";
import type { UserAddress } from "../../payment/addresses.ts";
import type { Balance } from "../../payment/credits/credits.ts";
import { checkNotBlocked, type UploadBlockList } from "../blocked-uploads.ts";
import type { SignedItem } from "../upload-rows.ts";
import { readApprovalChange } from "./approval-tags.ts";
import {
  type ArrivingItem,
  allOf,
  chained,
  checkItemSize,
  invalidItem,
  joinedPieces,
  readArriving,
} from "./arriving-item.ts";
import {
  accountOf,
  type ChargeParts,
  charge,
  deadlineFrom,
  findAgain,
  isItsOwn,
  namesOf,
  type Prepaid,
  type PriceRules,
  priceOf,
  type Taken,
  type Terms,
} from "./charge-item.ts";
import { type ItemSession, type ItemStore, smallItemBytesMax } from "./item-store.ts";
import type { QuotaHeld, UploadQuota } from "./upload-quota.ts";

/** An arriving item. */
export type Arrival = Terms &
  Readonly<{
    /** Its bytes, in any pieces. Throws the error that ends the upload early. */
    pieces: AsyncIterable<Uint8Array>;
    /** Announced size of the complete item, bytes; `undefined` if it was not announced. */
    size: number | undefined;
    /**
     * Takes the payment. Called once, after the checks of the header and the quota, before more bytes are read. Not
     * called for an item that was accepted before. Requires `size`.
     */
    prepay?: ((id: string, signal: AbortSignal) => Promise<Prepaid>) | undefined;
  }>;

/** An item whose bytes are in a file, which becomes the file of the item. */
export type StagedItem = Terms &
  Readonly<{
    /** Its first bytes, in any pieces. */
    head: AsyncIterable<Uint8Array>;
    size: number;
    /** Verifies the complete item. Resolves when it is verified and durable. */
    verify: (signal: AbortSignal) => Promise<WrittenItem>;
  }>;

export type Intake = Readonly<{
  /**
   * Accepts an item. When the promise resolves, its bytes, its row and its payment are durable.
   *
   * @throws Failure `upload_rejected` {reason}, `item_too_large` {reason}, `upload_forbidden`, `blocked`,
   *   `insufficient_balance` {needed, available}, `payment_rejected` {reason}, `no_space`, `disk_failed`, `busy`,
   *   `not_synced`, `pricing_oracle_unavailable`; errors of the pieces. Nothing was charged or stored then. After
   *   `database_unavailable` the outcome is unknown, and the client must send the item again.
   */
  take: (arrival: Arrival, signal: AbortSignal) => Promise<Taken>;
  /**
   * Accepts an item whose bytes are on the disk already. The file belongs to the item if the returned row names it.
   * Otherwise, and after a failure, the file still belongs to the caller. The caller holds the quota.
   *
   * @throws Failure as `take` does, except `no_space`; errors of `verify`.
   */
  acceptStaged: (staged: StagedItem, signal: AbortSignal) => Promise<Taken>;
}>;

export type IntakeParts = ChargeParts &
  Readonly<{
    store: ItemStore;
    quota: UploadQuota;
    balance: (address: UserAddress) => Promise<Balance | undefined>;
    rules: IntakeRules;
    blockList: UploadBlockList;
  }>;

export type IntakeRules = PriceRules &
  Readonly<{
    itemBytesMax: number;
    /** Names of signers whose items are rejected (`namesOf`). */
    blocked: ReadonlySet<string>;
  }>;

/** An item of unannounced size is small until more than this has arrived. */
const pieceBytes = smallItemBytesMax;

export function createIntake(parts: IntakeParts): Intake {
  const { quota, store, rules } = parts;

  async function take(arrival: Arrival, signal: AbortSignal): Promise<Taken> {
    checkSize(arrival.size, rules);
    const arriving = await readArriving(arrival.pieces, arrival.size);
    try {
      const { known, payer } = await admit(arriving, arrival.size, arrival);
      if (known !== undefined) return known;
      if (arrival.size !== undefined && arrival.prepay === undefined)
        await checkFunds(parts, payer, arrival, arrival.size, signal);
      return await takeNew(arriving, payer, arrival, signal);
    } finally {
      // The remaining bytes are not awaited: the listener responds, and discards them.
      await arriving.rest.return?.();
    }
  }

  async function takeNew(
    arriving: ArrivingItem,
    payer: ItemPayer,
    arrival: Arrival,
    signal: AbortSignal,
  ): Promise<Taken> {
    deadlineFrom(parts.height()); // throws while no receipt can be written
    const held = quota.take(arrival.size ?? 0);
    let storedBytes = 0;
    try {
      const prepaid = await arrival.prepay?.(arriving.header.id, signal);
      const terms = prepaid === undefined ? arrival : { ...arrival, prepaid };
      const allow = createAllowance(arrival.size ?? 0, held, (size) => checkFunds(parts, payer, arrival, size, signal));
      const item = await write(parts, arriving, { size: arrival.size, allow, held }, signal);
      const taken = await chargeOrDiscard(item, terms, signal);
      if (isItsOwn(taken, item)) storedBytes = item.size;
      return taken;
    } finally {
      held.release(storedBytes);
    }
  }

  /** Charges for an item, or removes its bytes if no row names them. */
  async function chargeOrDiscard(item: WrittenItem, terms: Terms, signal: AbortSignal): Promise<Taken> {
    try {
      checkNotBlocked(parts.blockList, item.row);
      const taken = await charge(parts, item, terms, signal);
      if (!isItsOwn(taken, item)) await store.discard(item);
      return taken;
    } catch (error) {
      if (isRejection(error, signal)) await store.discard(item);
      throw error;
    }
  }

  async function acceptStaged(staged: StagedItem, signal: AbortSignal): Promise<Taken> {
    const { head, size, verify } = staged;
    checkSize(size, rules);
    const arriving = await readArriving(head, size);
    await arriving.rest.return?.();
    const { known, payer } = await admit(arriving, size, staged);
    if (known !== undefined) return known;
    await checkFunds(parts, payer, staged, size, signal);
    const item = await verify(signal);
    checkNotBlocked(parts.blockList, item.row);
    return await charge(parts, item, staged, signal);
  }

  /** Finds an item that was accepted before, or runs the checks that need only the header. */
  async function admit(arriving: ArrivingItem, size: number | undefined, terms: Terms): Promise<Admitted> {
    const signer = checkSigner(parts, arriving.header, terms);
    const { known, ...state } = await findAgain(parts, signedBy(arriving, size), signer.account, terms);
    // A blocked item stays blocked under the other ids that its signature can be encoded to.
    if (known === undefined)
      for (const id of signingOfHeader(arriving.header).itemIds) checkNotBlocked(parts.blockList, { id });
    return { known, payer: { ...signer, ...state } };
  }

  return { take, acceptStaged };
}

/** The signer of an item, according to its header. */
type ItemSigner = Readonly<{ account: UserAddress; names: readonly string[] }>;

/** The signer, and the balance of its account without approvals of others. */
type ItemPayer = ItemSigner &
  Readonly<{
    ownWinc: bigint;
    /** Whether the item may be a repetition of a paid one. */
    mayBeKnown: boolean;
  }>;

function signedBy({ header }: ArrivingItem, size: number | undefined): SignedItem {
  const { signatureType, ownerAddress, headerSize } = header;
  return { signing: signingOfHeader(header), signatureType, ownerAddress, headerSize, size };
}

/** The payer of a new item, or the item that was accepted before. */
type Admitted = Readonly<{ known: Taken | undefined; payer: ItemPayer }>;

/** Checks the signer of an item and its approval tags. */
function checkSigner(
  { rules, clock }: Pick<IntakeParts, "rules" | "clock">,
  { id, signatureType, owner, tags }: ArrivingItem["header"],
  { token }: Terms,
): ItemSigner {
  const account = accountOf(signatureType, owner, token);
  const names = namesOf(signatureType, owner, account);
  if (names.some((name) => rules.blocked.has(name))) throw new Failure("upload_forbidden", { account });
  readApprovalChange(id, tags, account, clock());
  return { account, names };
}

function checkSize(size: number | undefined, { itemBytesMax }: IntakeRules): void {
  if (size !== undefined) checkItemSize(size, itemBytesMax);
}

/**
 * Rejects an item early when its signer cannot pay, before more of it is read or written. The final decision is
 * `charge`'s.
 */
async function checkFunds(
  parts: IntakeParts,
  { account, names, ownWinc, mayBeKnown }: ItemPayer,
  { prepaid }: Terms,
  size: number,
  signal: AbortSignal,
): Promise<void> {
  if (prepaid !== undefined || mayBeKnown) return;
  const needed = await priceOf(parts, names, size, signal);
  // Approvals of others are read only if they are needed.
  if (needed <= ownWinc || needed === 0n) return;
  const available = spendableOf(await parts.balance(account));
  if (available < needed) throw new Failure("insufficient_balance", { account, needed, available });
}

/** The most that an account can spend. A debt does not reduce the approvals of others. */
function spendableOf(balance: Balance | undefined): bigint {
  if (balance === undefined) return 0n;
  const { winc, effectiveBalance } = balance;
  return winc < 0n ? effectiveBalance - winc : effectiveBalance;
}

/** Called before more bytes of an item are written. @throws Failure if they are not allowed. */
type Allow = (size: number) => Promise<void>;

/**
 * Creates the growing allowance of an item without an announced size. Each step doubles the received size: it requires
 * credits for the received bytes, and quota for the double.
 *
 * @param announced - Bytes that are allowed from the start.
 */
function createAllowance(announced: number, held: QuotaHeld, checkFundsFor: Allow): Allow {
  let allowed = announced;
  return async (size) => {
    if (size <= allowed) return;
    await checkFundsFor(size);
    allowed = 2 * size;
    held.grow(allowed);
  };
}

type Writing = Readonly<{ size: number | undefined; allow: Allow; held: QuotaHeld }>;

/** Verifies the item and writes it to the disk. */
async function write(
  { store, rules, blockList }: IntakeParts,
  arriving: ArrivingItem,
  writing: Writing,
  signal: AbortSignal,
): Promise<WrittenItem> {
  const { size, allow } = writing;
  const checkBytes = (received: number) => checkSize(received, rules);
  const begin = () => store.begin(size, arriving.header.headerSize);
  if (size !== undefined && size > smallItemBytesMax)
    return await feedAll(begin(), allOf(arriving), writing, checkBytes, signal);
  const pieces = joinedPieces(arriving, size ?? pieceBytes, pieceBytes, checkBytes);
  const first = await pieces.next();
  if (first.done === true) throw invalidItem("the item is cut short");
  const second = await pieces.next();
  if (second.done !== true) {
    const all = chained([first.value, second.value], pieces);
    return await feedAll(begin(), all, writing, checkBytes, signal);
  }
  const received = first.value.length;
  if (size !== undefined && received !== size) throw invalidItem(`it has ${received} bytes, ${size} were announced`);
  await allow(received);
  checkBytesNotBlocked(blockList, arriving, first.value);
  return await store.take(first.value, signal);
}

/**
 * Rejects a small item with a blocked hash before it is written, because its file is shared: the bytes would stay as
 * long as the other items. Hashes at most a mebibyte, and only if any hash is blocked.
 */
function checkBytesNotBlocked(blockList: UploadBlockList, { header }: ArrivingItem, item: Uint8Array): void {
  if (blockList.has("hash"))
    checkNotBlocked(blockList, { id: header.id, digest: sha256(item.subarray(header.headerSize)) });
}

async function feedAll(
  session: ItemSession,
  pieces: AsyncIterable<Uint8Array>,
  { allow, held }: Writing,
  checkBytes: (received: number) => void,
  signal: AbortSignal,
): Promise<WrittenItem> {
  let fed = 0;
  try {
    for await (const piece of pieces) {
      signal.throwIfAborted();
      fed += piece.length;
      checkBytes(fed);
      await allow(fed);
      await session.feed(piece);
      held.wrote(piece.length);
    }
    return await session.finish();
  } catch (error) {
    await session.drop();
    throw error;
  }
}

/** Whether an item was certainly not stored. A ledger that fails, unlike a busy one, may have inserted the row. */
function isRejection(error: unknown, signal: AbortSignal): boolean {
  if (signal.aborted && error === signal.reason) return true;
  return error instanceof Failure && error.code !== "database_unavailable";
}
