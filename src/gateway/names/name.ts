/**
 * Names taken apart: a base name, or an undername that stands before it.
 * Source: docs/reference/gateway.md#names-of-the-registry.
 * @module
 */

/** A name as it stands in a host. */
export type Name = Readonly<{
  /** The whole of it, in lower case. */
  text: string;
  /** What follows the last "_". */
  base: string;
  /** What stands before it; {@link baseRecord} for the base name itself. */
  record: string;
}>;

/** The record of a base name. */
export const baseRecord = "@";

/** A label of a host; "_" parts undernames from their base. Characters. */
const namePattern = /^[a-z0-9_-]{1,63}$/;

/** Reads a name; `undefined` when nothing can have it. */
export function readName(given: string): Name | undefined {
  const text = given.toLowerCase();
  if (!namePattern.test(text)) return undefined;
  const cut = text.lastIndexOf("_");
  const base = text.slice(cut + 1);
  if (base === "") return undefined;
  return { text, base, record: cut <= 0 ? baseRecord : text.slice(0, cut) };
}
