/**
 * Counts of bytes as uploads have them in paths, queries and headers: sizes, and places in an item.
 * @module
 */

/** More than any item has, and whole in a JavaScript number. */
const pattern = /^\d{1,15}$/;

/** Reads a count. @returns Undefined for what is none. */
export function readCount(text: string | null | undefined): number | undefined {
  return text !== null && text !== undefined && pattern.test(text) ? Number(text) : undefined;
}
