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
import { Failure } from "../failures.ts";
import type { UserAddress } from "../payment/addresses.ts";
import type { Balance } from "../payment/balances.ts";
import type { WrittenItem } from "../store/intake-jobs.ts";
import {
  type ChargeParts,
  charge,
  findAgain,
  type PriceRules,
  priceOf,
  type Taken,
  type Terms,
} from "./charge.ts";
import { type ItemSession, type ItemStore, smallItemBytesMax } from "./item-store.ts";
import type { UploadRoom } from "./room.ts";
import { accountOf } from "./signer-account.ts";

/** An item as it arrives. */
export type Arrival = Terms &
  Readonly<{
    /** Its bytes, in any pieces; it throws what ends it early. */
    pieces: AsyncIterable<Uint8Array>;
    /** Of the whole item, as announced; `undefined` where only the end will tell. */
    size: number | undefined;
  }>;

/** An item whose bytes are in a file that will be its own. */
export type Lying = Terms &
  Readonly<{
    /** Its first bytes, in any pieces. */
    head: AsyncIterable<Uint8Array>;
    size: number;
    /** Walks over all of it and answers when it is verified and on the disk. */
    verify: (signal: AbortSignal) => Promise<WrittenItem>;
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
  /**
   * Takes an item whose bytes are on the disk already. The file is the item's when the row that is answered names it;
   * else, and after a failure, it is still the caller's. The caller holds the room.
   *
   * @throws Failure as `take` does, but for `no_room`; what `verify` throws.
   */
  takeLying: (lying: Lying, signal: AbortSignal) => Promise<Taken>;
}>;

/** What intake is made of. */
export type IntakeParts = ChargeParts &
  Readonly<{
    store: ItemStore;
    room: UploadRoom;
    balance: (address: UserAddress) => Promise<Balance | undefined>;
    rules: IntakeRules;
  }>;

/** What is taken, and from whom. */
export type IntakeRules = PriceRules &
  Readonly<{
    itemBytesMax: number;
    /** Accounts whose items are refused. */
    blocked: ReadonlySet<string>;
  }>;

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
  const { room, rules } = parts;

  async function take(arrival: Arrival, signal: AbortSignal): Promise<Taken> {
    refuseSize(arrival.size, rules);
    const begun = await begin(arrival);
    try {
      const known = await admit(begun, arrival.size, arrival, signal);
      if (known !== undefined) return known;
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

  async function takeLying(lying: Lying, signal: AbortSignal): Promise<Taken> {
    const { head: pieces, size, verify } = lying;
    refuseSize(size, rules);
    const begun = await begin({ pieces, size });
    await begun.rest.return?.();
    const known = await admit(begun, size, lying, signal);
    return known ?? (await charge(parts, await verify(signal), lying, signal));
  }

  /** Refuses what can be refused by the header. @returns The item, when it was taken before. */
  async function admit(
    { id, signer }: Begun,
    size: number | undefined,
    terms: Terms,
    signal: AbortSignal,
  ): Promise<Taken | undefined> {
    if (rules.blocked.has(signer)) throw new Failure("upload_forbidden", { signer });
    const known = await findAgain(parts, id, terms);
    if (known !== undefined) return known;
    if (size !== undefined && terms.prepaid === undefined) await checkFunds(parts, signer, size, signal);
    return undefined;
  }

  return { take, takeLying };
}

function refuseSize(size: number | undefined, { itemBytesMax }: IntakeRules): void {
  if (size !== undefined && size > itemBytesMax) {
    const reason = `Data item is too large, this service only accepts data items up to ${itemBytesMax} bytes!`;
    throw new Failure("item_too_large", { reason, size });
  }
}

/** Reads until the header is complete. */
async function begin({ pieces, size }: Pick<Arrival, "pieces" | "size">): Promise<Begun> {
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

function invalid(reason: string): Failure {
  return new Failure("upload_refused", { reason: `Invalid Data Item! ${reason}` });
}

function wrongSize(size: number, announced: number): Failure {
  return invalid(`it has ${size} bytes, ${announced} were announced`);
}
