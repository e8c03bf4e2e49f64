/**
 * Tags: the named values that owners attach to transactions and data items.
 *
 * Names and values are bytes; what is signed is the bytes (`RawTag`), what is searched and shown is the text
 * (`Tag`). Order counts, and a name may occur more than once.
 * @module
 */

/** A tag as text. Bytes that are not UTF-8 stand as U+FFFD. */
export type Tag = Readonly<{ name: string; value: string }>;

/** A tag as the bytes that are signed. */
export type RawTag = Readonly<{ name: Uint8Array; value: Uint8Array }>;

// A leading byte order mark is part of the text: two values that differ must not read as one.
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Reads tags as text, in the same order. */
export function decodeTags(raw: readonly RawTag[]): Tag[] {
  return raw.map(({ name, value }) => ({ name: decoder.decode(name), value: decoder.decode(value) }));
}

/** Writes text tags as bytes, in the same order. */
export function encodeTags(tags: readonly Tag[]): RawTag[] {
  const encoder = new TextEncoder();
  return tags.map(({ name, value }) => ({ name: encoder.encode(name), value: encoder.encode(value) }));
}

/** The value of the first tag of that name (exact, case-sensitive), or `undefined`. */
export function tagValue(tags: readonly Tag[], name: string): string | undefined {
  return tags.find((tag) => tag.name === name)?.value;
}
