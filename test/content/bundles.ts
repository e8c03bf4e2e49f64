/**
 * Bundles of tests, nested to any depth, and the places of their items.
 * @module
 */
import { bundleCountSize, bundleEntrySize, writeBundle } from "../../src/arweave/bundle.ts";
import { createDataItem, type ItemFields, readItemHeader } from "../../src/arweave/data-item.ts";
import type { Id } from "../../src/arweave/id.ts";
import { createEd25519Signer } from "../../src/arweave/signers/ed25519.ts";
import type { Signer } from "../../src/arweave/signers/scheme.ts";
import type { Tag } from "../../src/arweave/tags.ts";
import { testBytes } from "../dev/devnet/support.ts";

/** Tags of a bundle. */
export const bundleTags: readonly Tag[] = [
  { name: "Bundle-Format", value: "binary" },
  { name: "Bundle-Version", value: "2.0.0" },
];

/** A signed item. */
export type MadeItem = Readonly<{ id: Id; bytes: Uint8Array; headerSize: number; payload: Uint8Array }>;

/** The place of an item: bytes of the root's data. */
export type MadePlace = Readonly<{
  id: Id;
  itemOffset: number;
  headerSize: number;
  itemSize: number;
  parents: readonly Id[];
  parentStart: number;
  payload: Uint8Array;
}>;

const signer = createEd25519Signer(new Uint8Array(32).fill(2));

let made = 0;

/** Makes an item that no other is like. */
export function makeItem(
  size: number,
  tags: readonly Tag[] = [{ name: "Content-Type", value: "text/plain" }],
  by: Signer = signer,
): MadeItem {
  made += 1;
  return signItem(testBytes(size, made), [...tags, { name: "Number", value: `${made}` }], by);
}

/** Makes an item that is a bundle of items. */
export function makeNested(items: readonly MadeItem[], by: Signer = signer): MadeItem {
  made += 1;
  return signItem(bundleOf(items), [...bundleTags, { name: "Number", value: `${made}` }], by);
}

/** A bundle's bytes. */
export function bundleOf(items: readonly MadeItem[]): Uint8Array {
  return writeBundle(items.map(({ bytes }) => bytes));
}

/** An item with the header of another, and so with its id, before other bytes. */
export function forgedItem({ id, bytes, headerSize, payload }: MadeItem, size = payload.length): MadeItem {
  const other = testBytes(size, 99);
  return { id, headerSize, payload: other, bytes: Buffer.concat([bytes.subarray(0, headerSize), other]) };
}

/** The places of all items of a bundle, nested ones included. @param items - The items of the bundle. */
export function placesIn(bundle: Uint8Array, start = 0, parents: readonly Id[] = []): ReadonlyMap<Id, MadePlace> {
  const places = new Map<Id, MadePlace>();
  const view = new DataView(bundle.buffer, bundle.byteOffset, bundle.byteLength);
  const count = view.getUint32(0, true);
  let at = bundleCountSize + count * bundleEntrySize;
  for (let index = 0; index < count; index += 1) {
    const itemSize = view.getUint32(bundleCountSize + index * bundleEntrySize, true);
    const bytes = bundle.subarray(at, at + itemSize);
    const read = readItemHeader(bytes, "strict", itemSize);
    if (read.kind !== "header") throw new Error("what was made can be read");
    const { id, headerSize, tags } = read.header;
    const payload = bytes.subarray(headerSize);
    const place = { id, itemOffset: start + at, headerSize, itemSize, parents, parentStart: start, payload };
    places.set(id, place);
    if (tags.some(({ name }) => name === "Bundle-Format"))
      for (const [inner, found] of placesIn(payload, start + at + headerSize, [...parents, id]))
        places.set(inner, found);
    at += itemSize;
  }
  return places;
}

/** Signs an item of a payload. */
export function signItem(
  payload: Uint8Array,
  tags: readonly Tag[],
  by: Signer,
  fields: Pick<ItemFields, "target" | "anchor"> = {},
): MadeItem {
  const bytes = createDataItem({ ...fields, data: payload, tags }, by);
  const read = readItemHeader(bytes, "strict", bytes.length);
  if (read.kind !== "header") throw new Error("what was made can be read");
  return { id: read.header.id, bytes, headerSize: read.header.headerSize, payload };
}
