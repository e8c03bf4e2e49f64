/**
 * The place of a data item in its root transaction and in the bundle that holds it: what a client needs to
 * read and check it alone.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import type { OpenContent } from "../content/opened-content.ts";

/** Offsets and sizes in bytes. */
export type ItemPlace = Readonly<{
  rootId: Id;
  rootItemOffset: number; // of the item's header, in the root transaction's data
  rootDataOffset: number; // of the item's payload, in the root transaction's data
  itemOffset: number; // of the item's header, in its parent's payload
  itemSize: number; // header and payload
  itemDataOffset: number; // of the item's payload, in its parent's payload
}>;

/** The place of an item; `undefined` for transactions, and for what is in no block yet. */
export function itemPlaceOf({ root, item, dataOffset, size }: OpenContent): ItemPlace | undefined {
  if (root === undefined || item === undefined) return undefined;
  const { itemOffset, headerSize, parentStart } = item;
  return {
    rootId: root.id,
    rootItemOffset: itemOffset,
    rootDataOffset: dataOffset,
    itemOffset: itemOffset - parentStart,
    itemSize: headerSize + size,
    itemDataOffset: dataOffset - parentStart,
  };
}
