/**
 * The place of a row on the chain, the only key of the index: it determines order, cursor, reorganization and bytes.
 *
 * Packed into one 63-bit rowid: height (22 bits), transaction index (10), offset in steps of 64 bytes (31).
 * Two items never begin within 64 bytes of each other (the shortest header has 116 bytes), so every item has a unique
 * step. The transaction has step 0; an item begins at byte 96 or later, hence at step 1 or later.
 * Source: docs/reference/index-layout.md#places.
 * @module
 */
import { assert } from "../../lib/assert.ts";

/** The place of a row on the chain. */
export type Place = Readonly<{
  /** Block height; `pendingHeight` for a row that is in no block yet. */
  height: number;
  /** 0-based position in the block's `txs` array. */
  txIndex: number;
  /** −1 for the transaction itself, else the offset of the item's header in the root transaction's data. */
  offset: number;
}>;

/** The height of pending rows: above every real height. */
export const pendingHeight = 2 ** 22 - 1;

/** Transactions of a block that a place can address; the protocol's own limit is 1,000. */
export const transactionsPerBlockMax = 2 ** 10;

/** Exclusive limit of an item's offset in a root transaction's data (137 GB). */
export const itemOffsetEnd = 2 ** 37;

/** Bytes of one step of an offset. */
export const stepBytes = 64;
const stepsPerTransaction = 2 ** 31;

/** The lower half of the last place that a transaction can have. */
export const lastLow = stepsPerTransaction - 1;

/** Whether a place can be packed: false for an item beyond 137 GB or a height beyond 22 bits. */
export function isPlace({ height, txIndex, offset }: Place): boolean {
  const isOffset = offset === -1 || (offset >= stepBytes && offset < itemOffsetEnd);
  return (
    Number.isSafeInteger(offset) &&
    isOffset &&
    Number.isSafeInteger(height) &&
    height >= 0 &&
    height <= pendingHeight &&
    Number.isSafeInteger(txIndex) &&
    txIndex >= 0 &&
    txIndex < transactionsPerBlockMax
  );
}

/** Packs a place into the rowid; rowids sort as places do. @param place - A place for which `isPlace` holds. */
export function packPlace(place: Place): bigint {
  assert(isPlace(place), "a place is within height, transaction and offset bounds");
  return packHalves({ high: placeHigh(place), low: placeLow(place) });
}

/** The upper 32 bits of a packed place: height and transaction index. A safe number, unlike the packed place. */
export function placeHigh({ height, txIndex }: Place): number {
  return height * transactionsPerBlockMax + txIndex;
}

/** The lower 31 bits of a packed place: 0 for the transaction itself, else the offset in steps of 64 bytes. */
export function placeLow({ offset }: Place): number {
  return offset === -1 ? 0 : stepOf(offset);
}

/** The step of an offset in a transaction's data. */
export function stepOf(offset: number): number {
  return Math.floor(offset / stepBytes);
}

/** The lower half of the place of a parent. @param parent - Its offset; null for the transaction itself. */
export function parentLow(parent: number | null): number {
  return parent === null ? 0 : stepOf(parent);
}

/** The exact offset of the header of an item's row. */
export function offsetOfRow({ low, fine }: Readonly<{ low: number; fine: number }>): number {
  return low * stepBytes + fine;
}

/** A packed place in its upper 32 and lower 31 bits, which are safe numbers. */
export type PlaceHalves = Readonly<{ high: number; low: number }>;

/** Packs the halves of a place into the rowid. */
export function packHalves({ high, low }: PlaceHalves): bigint {
  return (BigInt(high) << 31n) | BigInt(low);
}

export function halvesOfPacked(packed: bigint): PlaceHalves {
  return { high: Number(packed >> 31n), low: Number(packed & 0x7fff_ffffn) };
}

/** Compares places in chain order. */
export function compareHalves(a: PlaceHalves, b: PlaceHalves): number {
  return a.high - b.high || a.low - b.low;
}

/**
 * The place of a rowid's upper half and the row's exact offset.
 *
 * @param high - Bits 31 and up.
 * @param offset - The exact offset in bytes; −1 for a transaction.
 */
export function placeOfHalves(high: number, offset: number): Place {
  return {
    height: heightOfHigh(high),
    txIndex: high % transactionsPerBlockMax,
    offset,
  };
}

/** The place of a row. @param row - Halves of the rowid, and `fine`: the offset is low × 64 + fine. */
export function placeOfRow(row: PlaceHalves & Readonly<{ fine: number }>): Place {
  return placeOfHalves(row.high, row.low === 0 ? -1 : offsetOfRow(row));
}

/** The place of a packed place and the row's exact offset. */
export function placeOfPacked(packed: bigint, offset: number): Place {
  return placeOfHalves(Number(packed >> 31n), offset);
}

/** The height of the upper half of a packed place. */
export function heightOfHigh(high: number): number {
  return Math.floor(high / transactionsPerBlockMax);
}

export function heightOfPacked(packed: bigint): number {
  return Number(packed >> 41n);
}

/** Whether a packed place is that of a data item: that of a transaction has step 0. */
export function isPackedItem(packed: bigint): boolean {
  return (packed & 0x7fff_ffffn) !== 0n;
}

/** The place of the transaction that contains a place. */
export function rootPlace({ height, txIndex }: Place): Place {
  return { height, txIndex, offset: -1 };
}

/** The smallest rowid of a height. */
export function packHeight(height: number): bigint {
  assert(height >= 0 && height <= pendingHeight + 1, "a height fits in 22 bits");
  return BigInt(height) << 41n;
}

/**
 * The place of a pending row.
 *
 * @param sequence - 1 or more, below 2^41: the order in which pending rows arrived.
 */
export function pendingPlace(sequence: number): Place {
  assert(sequence > 0 && sequence < stepsPerTransaction * transactionsPerBlockMax, "pending rows are bounded");
  return {
    height: pendingHeight,
    txIndex: Math.floor(sequence / stepsPerTransaction),
    offset: (sequence % stepsPerTransaction) * stepBytes,
  };
}

/** The sequence number after `sequence`. Skips lower halves of 0, which denote transactions of blocks. */
export function nextPendingSequence(sequence: number): number {
  return (sequence + 1) % stepsPerTransaction === 0 ? sequence + 2 : sequence + 1;
}
