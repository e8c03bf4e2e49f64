/**
 * Parsed names: a base name, or an undername before it.
 * Source: docs/reference/gateway.md#names-of-the-registry.
 * @module
 */

/** A name from a host. */
export type Name = Readonly<{
  /** The whole name, in lower case. */
  text: string;
  /** The part after the last "_". */
  base: string;
  /** The part before it; {@link baseRecord} for the base name itself. */
  record: string;
}>;

/** The record of a base name. */
export const baseRecord = "@";

/** Longest label of a host. "_" separates an undername from its base. Characters. */
const namePattern = /^[a-z0-9_-]{1,63}$/;

/** Parses a name; `undefined` when it is not valid. */
export function readName(given: string): Name | undefined {
  const text = given.toLowerCase();
  if (!namePattern.test(text)) return undefined;
  const cut = text.lastIndexOf("_");
  const base = text.slice(cut + 1);
  if (base === "") return undefined;
  return { text, base, record: cut <= 0 ? baseRecord : text.slice(0, cut) };
}
