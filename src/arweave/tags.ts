/**
 * Tags: the named values that owners attach to transactions and data items.
 *
 * Names and values are bytes: signatures cover the bytes (`RawTag`), searches and responses use the text (`Tag`).
 * Order matters, and a name may repeat.
 *
 * The tag section of a data item is an Avro array of names and values, which may be empty. A section is blocks of
 * (count, tags…) and a final zero count; numbers are zigzag variable-length integers. A negative count is followed by
 * the block's size in bytes. The signature covers the section as it is; a section is never encoded again.
 * Source: Avro 1.11 "Arrays", ANS-104 §1.2 and §3.1 (limits).
 * @module
 */
import { concatBytes, utf8Bytes } from "../lib/bytes.ts";

/** A tag as text. Bytes that are not UTF-8 become U+FFFD. */
export type Tag = Readonly<{ name: string; value: string }>;

/** A tag as signed bytes. */
export type RawTag = Readonly<{ name: Uint8Array; value: Uint8Array }>;

// A leading byte order mark is part of the text: different values must not become equal.
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

/**
 * How strictly ANS-104 is applied. "strict" is for uploads: items that other gateways might parse differently are
 * rejected. "lenient" is for items on the chain: items that published libraries accept are accepted, so that their ids
 * stay available. The signature is verified in both cases.
 */
export type ItemRules = "strict" | "lenient";

/** Limits of a tag section; sizes in bytes. */
export type TagLimits = Readonly<{ tags: number; sectionSize: number; nameSize: number; valueSize: number }>;

/**
 * ANS-104's limits, with the 4,096 bytes of a section in published libraries. Items on the chain exceed both: for
 * these the size of the section bounds memory, and 4,096 bytes hold at most 2,048 tags.
 */
export const tagLimits: Readonly<Record<ItemRules, TagLimits>> = {
  strict: { tags: 128, sectionSize: 4_096, nameSize: 1_024, valueSize: 3_072 },
  lenient: { tags: 2_048, sectionSize: 1_048_576, nameSize: 1_048_576, valueSize: 1_048_576 },
};

/** No length in a section needs more than five bytes; a longer number is an attack or an error. */
const numberSizeMax = 5;

/** The tags, or the reason why the section is invalid. */
export type TagsOrReason = readonly Tag[] | string;

type Cursor = { readonly bytes: Buffer; at: number };

/**
 * Reads a tag section.
 *
 * Lenient rules accept a missing terminator and bytes after it, as the libraries that wrote such items do, and
 * read no tags where the item declares none.
 *
 * @param section - Exactly the bytes of the section.
 * @param declaredCount - The count of tags in the item's header.
 * @returns The tags in order, or the reason why the section is invalid.
 */
export function readAvroTags(section: Uint8Array, declaredCount: number, rules: ItemRules): TagsOrReason {
  if (declaredCount === 0) return readNoTags(section, rules);
  const cursor: Cursor = { bytes: asBuffer(section), at: 0 };
  const tags: Tag[] = [];
  const fault = readBlocks(cursor, rules, tags);
  if (fault !== undefined) return fault;
  if (rules === "strict" && cursor.at !== section.length) return "bytes after the last tag";
  if (tags.length !== declaredCount) return `${tags.length} tags where ${declaredCount} are declared`;
  return tags;
}

/**
 * Writes tags as one block, as published libraries do; without tags, no bytes.
 *
 * @param tags - Within the limits (`tagsFault`).
 */
export function writeAvroTags(tags: readonly Tag[]): Uint8Array {
  if (tags.length === 0) return new Uint8Array(0);
  const parts = tags.flatMap(({ name, value }) => [...writeText(name), ...writeText(value)]);
  return concatBytes([writeNumber(tags.length), ...parts, writeNumber(0)]);
}

/** Why tags break ANS-104's limits, or `undefined` when they do not. */
export function tagsFault(tags: readonly Tag[]): string | undefined {
  const limits = tagLimits.strict;
  if (tags.length > limits.tags) return `more than ${limits.tags} tags`;
  for (const { name, value } of tags) {
    const fault = tagFault(Buffer.byteLength(name), Buffer.byteLength(value), "strict");
    if (fault !== undefined) return fault;
  }
  const size = writeAvroTags(tags).length;
  return size > limits.sectionSize ? `${size} tag bytes exceed ${limits.sectionSize}` : undefined;
}

function readNoTags(section: Uint8Array, rules: ItemRules): TagsOrReason {
  // Some libraries write an empty array, one zero byte, for no tags.
  const isEmpty = section.length === 0 || (section.length === 1 && section[0] === 0);
  return isEmpty || rules === "lenient" ? [] : "tag bytes without tags";
}

function readBlocks(cursor: Cursor, rules: ItemRules, tags: Tag[]): string | undefined {
  const tagsMax = tagLimits[rules].tags;
  while (rules === "strict" || cursor.at < cursor.bytes.length) {
    const count = readBlockCount(cursor);
    if (count === undefined) return "a tag block has no readable count";
    if (count === 0) return undefined;
    if (tags.length + count > tagsMax) return `more than ${tagsMax} tags`;
    const fault = readBlock(cursor, count, rules, tags);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function readBlock(cursor: Cursor, count: number, rules: ItemRules, tags: Tag[]): string | undefined {
  for (let index = 0; index < count; index += 1) {
    const nameStart = skipText(cursor);
    const nameEnd = cursor.at;
    const valueStart = nameStart === undefined ? undefined : skipText(cursor);
    if (nameStart === undefined || valueStart === undefined) return `tag ${tags.length} is cut short`;

    const fault = tagFault(nameEnd - nameStart, cursor.at - valueStart, rules);
    if (fault !== undefined) return fault;
    tags.push({
      name: cursor.bytes.toString("utf8", nameStart, nameEnd),
      value: cursor.bytes.toString("utf8", valueStart, cursor.at),
    });
  }
  return undefined;
}

function tagFault(nameSize: number, valueSize: number, rules: ItemRules): string | undefined {
  const limits = tagLimits[rules];
  if (nameSize > limits.nameSize) return `a tag name of ${nameSize} bytes exceeds ${limits.nameSize}`;
  if (valueSize > limits.valueSize) return `a tag value of ${valueSize} bytes exceeds ${limits.valueSize}`;
  return undefined;
}

/** The number of tags in the next block, 0 for the end; skips the byte size of a sized block. */
function readBlockCount(cursor: Cursor): number | undefined {
  const count = readNumber(cursor);
  if (count === undefined || count >= 0) return count;
  return readNumber(cursor) === undefined ? undefined : -count;
}

/** Skips a text. @returns The offset of its bytes; `undefined` when it exceeds the section. */
function skipText(cursor: Cursor): number | undefined {
  const size = readNumber(cursor);
  if (size === undefined || size < 0 || size > cursor.bytes.length - cursor.at) return undefined;
  const start = cursor.at;
  cursor.at += size;
  return start;
}

function readNumber(cursor: Cursor): number | undefined {
  let coded = 0;
  let scale = 1;
  for (let size = 0; size < numberSizeMax; size += 1) {
    const byte = cursor.bytes[cursor.at];
    if (byte === undefined) return undefined;
    cursor.at += 1;
    coded += (byte & 0x7f) * scale;
    if (byte < 0x80) return coded % 2 === 0 ? coded / 2 : -(coded + 1) / 2;
    scale *= 128;
  }
  return undefined;
}

function writeText(text: string): readonly [Uint8Array, Uint8Array] {
  const bytes = utf8Bytes(text);
  return [writeNumber(bytes.length), bytes];
}

/** @param value - 0 or more, below 2^30. */
function writeNumber(value: number): Uint8Array {
  const digits: number[] = [];
  let rest = value * 2;
  while (rest >= 0x80) {
    digits.push((rest & 0x7f) | 0x80);
    rest = Math.floor(rest / 128);
  }
  digits.push(rest);
  return new Uint8Array(digits);
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
