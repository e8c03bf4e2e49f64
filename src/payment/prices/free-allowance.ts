/**
 * What may be uploaded without paying: items up to a size, as many as one likes.
 * Source: docs/reference/upload.md#posting-an-item; the published SDK's `getFreeStatus`.
 * @module
 */

/** What an address may still upload free of charge. */
export type FreeAllowance = Readonly<{
  /** The largest item that costs nothing, in bytes; 0 where nothing is free. */
  itemBytesMax: number;
  /** Bytes left in all; `null` is without limit. */
  bytesRemaining: number | null;
}>;

/**
 * The allowance of every address.
 *
 * @param itemBytesMax - The setting, bytes, 0 or more.
 */
export function freeAllowance(itemBytesMax: number): FreeAllowance {
  return { itemBytesMax, bytesRemaining: itemBytesMax === 0 ? 0 : null };
}
