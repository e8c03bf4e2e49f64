/**
 * The place of a data item in its root transaction and in the bundle that holds it: what a client needs to
 * read and check it alone.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import type { OpenContent } from "../content/open-content.ts";
import type { Located } from "../store/index/index-types.ts";

/** Offsets and sizes in bytes. */
export type ItemPlace = Readonly<{
  rootId: Id;
  rootItemOffset: number; // of the item's header, in the root transaction's data
  rootDataOffset: number; // of the item's payload, in the root transaction's data
  itemOffset: number; // of the item's header, in its parent's payload
  itemSize: number; // header and payload
  itemDataOffset: number; // of the item's payload, in its parent's payload
}>;

/**
 * Looks an item up; `undefined` for transactions, for what is in no block yet, and for what the index does
 * not have.
 */
export function itemPlaceOf(locate: (id: Id) => Located | undefined, id: Id): ItemPlace | undefined {
  const item = locate(id);
  if (item === undefined || item.kind !== "item" || item.pending) return undefined;
  const parent = item.parentId === undefined ? undefined : locate(item.parentId);
  const parentStart = parent === undefined || parent.kind === "transaction" ? 0 : parent.dataOffset;
  return {
    rootId: item.rootId,
    rootItemOffset: item.itemOffset,
    rootDataOffset: item.dataOffset,
    itemOffset: item.itemOffset - parentStart,
    itemSize: item.headerSize + item.size,
    itemDataOffset: item.dataOffset - parentStart,
  };
}

/** The place of an item that the index does not have and that was found in its transaction's data. */
export function foundItemPlace({ root, found, dataOffset, size }: OpenContent): ItemPlace | undefined {
  if (root === undefined || found === undefined) return undefined;
  const { itemOffset, headerSize, parentStart } = found;
  return {
    rootId: root.id,
    rootItemOffset: itemOffset,
    rootDataOffset: dataOffset,
    itemOffset: itemOffset - parentStart,
    itemSize: headerSize + size,
    itemDataOffset: dataOffset - parentStart,
  };
}
