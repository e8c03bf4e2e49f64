/**
 * Bundles: parses the header, which lists the items, in constant memory; writes bundles.
 *
 * Format: the count of items (32 bytes, little-endian), then the size and the id of each (32 bytes each),
 * then the items back to back. Every number is checked against the bundle's size before it is used.
 * Source: ANS-104 §1.
 * @module
 */
import { assert } from "../lib/assert.ts";
import { concatBytes } from "../lib/bytes.ts";
import { itemIdBytes, readItemFrame } from "./data-item.ts";
import { type Id, idBytes, idFromBytes } from "./id.ts";
import type { Tag } from "./tags.ts";

/** An item as the bundle's header lists it. Unverified: the item itself may differ. */
export type BundleEntry = Readonly<{
  /** Position in the header, from 0. */
  index: number;
  id: Id;
  /** Bytes of the item, header and payload. */
  size: number;
  /** Where the item begins, in bytes from the bundle's first byte. */
  offset: number;
}>;

/** The position of a walk over the entries: the next entry, and the byte at which its item begins. */
export type EntryPlace = Readonly<{ index: number; offset: number }>;

/** The count of items, or the reason why the bundle is invalid. */
export type BundleCount =
  | Readonly<{ kind: "count"; count: number; headerSize: number }>
  | Readonly<{ kind: "invalid"; reason: string }>;

/** The entries of one step, and the position of the next. A fault ends the walk; the entries before it are valid. */
export type EntriesStep = Readonly<{ entries: readonly BundleEntry[]; next: EntryPlace; fault?: string }>;

/** Bytes of the count at the bundle's beginning. */
export const bundleCountSize = 32;

/** Bytes of one entry in the header. */
export const bundleEntrySize = 64;

const numberSize = 32;

/**
 * Reads how many items a bundle has.
 *
 * @param bytes - The bundle's first 32 bytes or more.
 * @param bundleSize - The whole bundle's size in bytes.
 * @returns The count and the header's size, which is within the bundle.
 */
export function readBundleCount(bytes: Uint8Array, bundleSize: number): BundleCount {
  if (bytes.length < bundleCountSize || bundleSize < bundleCountSize) {
    return { kind: "invalid", reason: `a bundle has at least ${bundleCountSize} bytes` };
  }
  const count = readNumber(bytes, 0);
  const countMax = Math.floor((bundleSize - bundleCountSize) / bundleEntrySize);
  if (count > countMax) {
    return { kind: "invalid", reason: `the count is beyond the ${countMax} entries that could fit` };
  }
  return { kind: "count", count, headerSize: bundleCountSize + count * bundleEntrySize };
}

/** Where the walk over a bundle's entries begins. */
export function firstEntry(count: number): EntryPlace {
  return { index: 0, offset: bundleCountSize + count * bundleEntrySize };
}

/**
 * Reads the entries that a piece of the header holds.
 *
 * After the last entry `next.index` is the count, and `next.offset` is the bundle's size unless bytes that belong
 * to no item follow.
 *
 * @param bytes - The header from entry `place.index` on, any number of bytes; an incomplete last entry is ignored.
 * @param place - `firstEntry`, or the `next` of the step before.
 * @param bundleSize - The whole bundle's size in bytes.
 */
export function readBundleEntries(
  bytes: Uint8Array,
  place: EntryPlace,
  count: number,
  bundleSize: number,
): EntriesStep {
  const entries: BundleEntry[] = [];
  const end = Math.min(count, place.index + Math.floor(bytes.length / bundleEntrySize));
  let offset = place.offset;
  for (let index = place.index; index < end; index += 1) {
    const at = (index - place.index) * bundleEntrySize;
    const size = readNumber(bytes, at);
    if (size > bundleSize - offset) {
      const fault = `entry ${index} reaches beyond the bundle's ${bundleSize} bytes`;
      return { entries, next: { index, offset }, fault };
    }
    const id = idFromBytes(bytes.subarray(at + numberSize, at + bundleEntrySize));
    entries.push({ index, id, size, offset });
    offset += size;
  }
  return { entries, next: { index: end, offset } };
}

/**
 * Writes the header of a bundle. The items follow in the same order, without gaps.
 *
 * @param entries - Each item's id and size in bytes.
 */
export function writeBundleHeader(entries: readonly Readonly<{ id: Id; size: number }>[]): Uint8Array {
  const header = new Uint8Array(bundleCountSize + entries.length * bundleEntrySize);
  writeNumber(header, 0, entries.length);
  entries.forEach(({ id, size }, index) => {
    const at = bundleCountSize + index * bundleEntrySize;
    writeNumber(header, at, size);
    header.set(idBytes(id), at + numberSize);
  });
  return header;
}

/**
 * Writes a bundle of items in memory.
 *
 * @param items - Signed items (`createDataItem`).
 */
export function writeBundle(items: readonly Uint8Array[]): Uint8Array {
  const entries = items.map((item) => ({ id: itemId(item), size: item.length }));
  return concatBytes([writeBundleHeader(entries), ...items]);
}

/** Whether the tags of a transaction or a data item declare a bundle. */
export function isBundleTags(tags: readonly Tag[]): boolean {
  return (
    tags.some(({ name, value }) => name === "Bundle-Format" && value === "binary") &&
    tags.some(({ name, value }) => name === "Bundle-Version" && value.startsWith("2."))
  );
}

function itemId(item: Uint8Array): Id {
  const frame = readItemFrame(item, "strict", item.length);
  assert(frame.kind === "frame", "only data items are bundled");
  return idFromBytes(itemIdBytes(item, frame));
}

/** 32 bytes, little-endian. Numbers above 2^53 lose digits but stay above every limit. */
function readNumber(bytes: Uint8Array, offset: number): number {
  let number = 0;
  for (let index = numberSize - 1; index >= 0; index -= 1) {
    number = number * 256 + (bytes[offset + index] ?? 0);
  }
  return number;
}

function writeNumber(bytes: Uint8Array, offset: number, number: number): void {
  let rest = number;
  for (let index = 0; rest > 0; index += 1) {
    bytes[offset + index] = rest % 256;
    rest = Math.floor(rest / 256);
  }
}
