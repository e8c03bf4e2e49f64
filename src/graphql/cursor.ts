/**
 * Cursors: the place of a row as opaque text. A cursor stays good when its row is gone; it names a place, not a row.
 *
 * A transaction's is `t`, height (4 bytes), index (4), offset + 1 (6, so that the transaction itself is 0); a block's
 * is `b`, height (5). Both lengths are multiples of three, so that every text of the right length is canonical.
 * Source: docs/reference/graphql.md#cursors.
 * @module
 */
import { decodeBase64url, encodeBase64url } from "../lib/base64url.ts";
import { isPlace, type Place } from "../store/index/place.ts";

const transactionMark = 0x74;
const blockMark = 0x62;
const transactionBytes = 15;
const blockBytes = 6;

const cursorBytes = Buffer.alloc(transactionBytes);
cursorBytes[0] = transactionMark;

/** The bytes of the cursor of a transaction or data item, until the next call. */
export function transactionCursorBytes({ height, txIndex, offset }: Place): Uint8Array {
  cursorBytes.writeUInt32BE(height, 1);
  cursorBytes.writeUInt32BE(txIndex, 5);
  cursorBytes.writeUIntBE(offset + 1, 9, 6);
  return cursorBytes;
}

/** Reads the cursor of a transaction or data item; `undefined` for any other text. */
export function readTransactionCursor(text: string): Place | undefined {
  const bytes = readMarked(text, transactionMark, transactionBytes);
  if (bytes === undefined) return undefined;
  const place = {
    height: bytes.readUInt32BE(1),
    txIndex: bytes.readUInt32BE(5),
    offset: bytes.readUIntBE(9, 6) - 1,
  };
  return isPlace(place) ? place : undefined;
}

/** Writes the cursor of a block. */
export function writeBlockCursor(height: number): string {
  const bytes = Buffer.allocUnsafe(blockBytes);
  bytes[0] = blockMark;
  bytes.writeUIntBE(height, 1, 5);
  return encodeBase64url(bytes);
}

/** Reads the cursor of a block as its height; `undefined` for any other text. */
export function readBlockCursor(text: string): number | undefined {
  return readMarked(text, blockMark, blockBytes)?.readUIntBE(1, 5);
}

function readMarked(text: string, mark: number, length: number): Buffer | undefined {
  if (text.length !== (length / 3) * 4) return undefined;
  const bytes = decodeBase64url(text);
  if (bytes === undefined || bytes[0] !== mark) return undefined;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
