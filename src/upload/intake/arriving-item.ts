/**
 * Reads an arriving data item: first its header, then the complete item in pieces of one size.
 * @module
 */
import { type ItemHeader, readItemHeader } from "../../arweave/data-item.ts";
import { Failure } from "../../failures.ts";
import { concatBytes } from "../../lib/bytes.ts";

/** An item with a parsed header. */
export type ArrivingItem = Readonly<{
  header: ItemHeader;
  /** The bytes received so far, from the first byte of the item. */
  head: Uint8Array;
  /** The bytes not yet received. */
  rest: AsyncIterator<Uint8Array>;
}>;

/**
 * Reads until the header is complete.
 *
 * @param size - Announced size of the complete item. Bytes.
 * @throws Failure `upload_rejected` {reason} as soon as the header is invalid; errors of the pieces.
 */
export async function readArriving(pieces: AsyncIterable<Uint8Array>, size: number | undefined): Promise<ArrivingItem> {
  const rest = pieces[Symbol.asyncIterator]();
  let head: Uint8Array = new Uint8Array(0);
  try {
    for (;;) {
      const read = readItemHeader(head, "strict", size);
      if (read.kind === "invalid") throw invalidItem(read.reason);
      if (read.kind === "header") return { header: read.header, head, rest };
      head = concatBytes([head, ...(await readMore(rest, read.bytes - head.length))]);
    }
  } catch (error) {
    await rest.return?.();
    throw error;
  }
}

/** Reads the next pieces with at least this many bytes together. The caller joins them once. */
async function readMore(rest: AsyncIterator<Uint8Array>, bytes: number): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  for (let size = 0; size < bytes; ) {
    const next = await rest.next();
    if (next.done === true) throw invalidItem("the item is cut short");
    pieces.push(next.value);
    size += next.value.length;
  }
  return pieces;
}

/** All bytes of an item as they arrive. */
export function allOf({ head, rest }: ArrivingItem): AsyncGenerator<Uint8Array> {
  return chained([head], { [Symbol.asyncIterator]: () => rest });
}

export async function* chained(
  first: readonly Uint8Array[],
  rest: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield* first;
  yield* rest;
}

/**
 * All bytes of an item in pieces of one size, each in its own buffer; the last piece may be shorter.
 *
 * @param expected - Expected size of the item, bytes; no buffer is larger.
 * @param onSize - Called with the bytes received so far, before a piece is passed on; an exception ends the item.
 */
export async function* joinedPieces(
  { head, rest }: ArrivingItem,
  expected: number,
  pieceBytes: number,
  onSize: (size: number) => void,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const capacity = Math.min(expected, pieceBytes);
  let buffer = new Uint8Array(capacity);
  let filled = 0;
  let total = 0;
  for (let piece: Uint8Array | undefined = head; piece !== undefined; ) {
    total += piece.length;
    onSize(total);
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

/** The failure for an invalid data item. @param reason - One lower-case sentence. */
export function invalidItem(reason: string): Failure {
  return new Failure("upload_rejected", { reason: `Invalid Data Item! ${reason}` });
}

/** @param size - Of the complete item, or of the bytes received so far. @throws Failure `item_too_large` {reason}. */
export function checkItemSize(size: number, itemBytesMax: number): void {
  if (size <= itemBytesMax) return;
  const reason = `Data item is too large, this service only accepts data items up to ${itemBytesMax} bytes!`;
  throw new Failure("item_too_large", { reason, size });
}
