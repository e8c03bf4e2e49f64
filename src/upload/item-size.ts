/**
 * The largest item that is taken, and what is said to those who send a larger one.
 * Source: docs/reference/upload.md#posting-an-item.
 * @module
 */
import { Failure } from "../failures.ts";

/**
 * Refuses an item by its size.
 *
 * @param size - Of the whole item, as far as it is known. Bytes.
 * @throws Failure `item_too_large` {reason}.
 */
export function refuseTooLarge(size: number, itemBytesMax: number): void {
  if (size <= itemBytesMax) return;
  const reason = `Data item is too large, this service only accepts data items up to ${itemBytesMax} bytes!`;
  throw new Failure("item_too_large", { reason, size });
}
