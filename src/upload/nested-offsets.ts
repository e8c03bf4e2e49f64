/**
 * Finds the positions of items in a bundle that was itself uploaded as an item: in the index of the gateway, or in the
 * bytes of the upload until the gateway has unbundled it.
 * @module
 */
import { type Id, readId } from "../arweave/id.ts";
import type { Located } from "../store/index/index-types.ts";

/** Position of an item within an uploaded item. Bytes. */
export type NestedItem = Readonly<{
  size: number; // header and payload
  headerSize: number;
  contentType: string | undefined;
  startInRoot: number | undefined; // unknown until a bundle is planned
  parentId: Id;
  startInParent: number; // from the first byte of the parent's payload
  rootId: Id | undefined; // unknown until nodes have taken the bundle
  isStable: boolean;
}>;

/**
 * Finds an item in an upload that is not unbundled yet; undefined if no upload contains it.
 * @throws Failure `source_timeout` when the uploads could not be read in time.
 */
export type FindUnbundled = (id: Id) => Promise<NestedItem | undefined>;

export type NestedParts = Readonly<{
  locate: (id: Id) => Located | undefined;
  isUpload: (id: Id) => Promise<boolean>;
  findUnbundled: FindUnbundled;
}>;

/** Bundles nest at most ten deep; the gateway unbundles no deeper. */
const depthMax = 16;

/** Finds an item in an upload; undefined if no upload contains it, or the index does not have it. */
export async function findNested(
  text: string,
  { locate, isUpload, findUnbundled }: NestedParts,
): Promise<NestedItem | undefined> {
  const id = readId(text);
  if (id === undefined) return undefined;
  const item = locate(id);
  const parent = parentOf(item, locate);
  if (item === undefined || parent === undefined)
    return item === undefined || item.pending ? await findUnbundled(id) : undefined;
  let above: Located | undefined = parent;
  for (let depth = 0; above !== undefined && depth < depthMax; depth += 1) {
    if (await isUpload(above.id)) return nestedOf(item, parent);
    above = parentOf(above, locate);
  }
  return undefined;
}

function nestedOf(item: Located, parent: Located): NestedItem {
  return {
    size: item.headerSize + item.size,
    headerSize: item.headerSize,
    contentType: item.contentType,
    startInRoot: item.itemOffset,
    parentId: parent.id,
    startInParent: item.itemOffset - parent.dataOffset,
    rootId: item.rootId,
    isStable: item.stable,
  };
}

/** The item that contains another; undefined for an item directly in a transaction, or in no block. */
function parentOf(item: Located | undefined, locate: NestedParts["locate"]): Located | undefined {
  if (item?.kind !== "item" || item.pending || item.parentId === undefined) return undefined;
  const parent = locate(item.parentId);
  const isSame = parent?.kind === "item" && parent.rootId === item.rootId;
  return isSame ? parent : undefined;
}
