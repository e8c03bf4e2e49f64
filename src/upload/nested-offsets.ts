/**
 * Items that lie in a bundle that was itself uploaded as an item: where they are, from the index of the gateway. They
 * are found once the upload's bundle is mined and unbundled.
 * @module
 */
import { type Id, readId } from "../arweave/id.ts";
import type { Located } from "../store/index/rows.ts";

/** An item within an uploaded item. */
export type NestedItem = Readonly<{ item: Located; parent: Located }>;

/** What is asked. */
export type NestedParts = Readonly<{
  locate: (id: Id) => Located | undefined;
  /** Whether an item was uploaded here. */
  isUpload: (id: Id) => Promise<boolean>;
}>;

/** Bundles nest at most ten deep; the gateway unbundles no deeper. */
const depthMax = 16;

/** Finds an item in an upload; undefined for one that lies in none, or that the index does not have. */
export async function findNested(
  text: string,
  { locate, isUpload }: NestedParts,
): Promise<NestedItem | undefined> {
  const id = readId(text);
  const item = id === undefined ? undefined : locate(id);
  const parent = parentOf(item, locate);
  if (item === undefined || parent === undefined) return undefined;
  let above: Located | undefined = parent;
  for (let depth = 0; above !== undefined && depth < depthMax; depth += 1) {
    if (await isUpload(above.id)) return { item, parent };
    above = parentOf(above, locate);
  }
  return undefined;
}

/** The item that holds another; undefined for what lies in a transaction itself, or in no block. */
function parentOf(item: Located | undefined, locate: NestedParts["locate"]): Located | undefined {
  if (item?.kind !== "item" || item.pending || item.parentId === undefined) return undefined;
  const parent = locate(item.parentId);
  const isSame = parent?.kind === "item" && parent.rootId === item.rootId;
  return isSame ? parent : undefined;
}
