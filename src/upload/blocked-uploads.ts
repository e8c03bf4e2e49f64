/**
 * Checks uploads against the block list: a blocked item is not accepted, charged or posted.
 *
 * An item is compared by its id and by the SHA-256 of its payload. The items within an uploaded bundle are not checked
 * (docs/decisions/083-blocked-uploads.md).
 * @module
 */
import type { Id } from "../arweave/id.ts";
import { Failure } from "../failures.ts";
import type { BlockList } from "../store/block-list.ts";

export type UploadBlockList = Pick<BlockList, "has" | "isBlockedId" | "isBlockedDigest">;

type ListedItem = Readonly<{
  id: Id;
  /** SHA-256 of the payload, 32 bytes. */
  digest?: Uint8Array | null | undefined;
}>;

/** Whether an item is on the block list. */
export function isBlocked(list: UploadBlockList, { id, digest }: ListedItem): boolean {
  if (list.isBlockedId(id)) return true;
  return digest !== undefined && digest !== null && list.isBlockedDigest(digest);
}

/** @throws Failure `blocked` for an item that is on the list. */
export function checkNotBlocked(list: UploadBlockList, item: ListedItem): void {
  if (isBlocked(list, item)) throw new Failure("blocked", { id: item.id });
}

/** Whether any id or hash is blocked. While none is, no item needs a check. */
export function canBlock(list: UploadBlockList): boolean {
  return list.has("id") || list.has("hash");
}
