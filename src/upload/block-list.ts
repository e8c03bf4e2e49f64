/**
 * The operator's block list as uploads ask it: what may not be served is not taken, charged for or posted.
 *
 * An item is compared by its id and by the SHA-256 of its payload. What lies within an item that is itself a bundle is
 * not looked at (docs/decisions/083-blocked-uploads.md).
 * @module
 */
import type { Id } from "../arweave/id.ts";
import { Failure } from "../failures.ts";
import type { Moderation } from "../store/moderation.ts";

/** What of the block list is asked. */
export type BlockList = Pick<Moderation, "has" | "isBlockedId" | "isBlockedDigest">;

/** An item, or as much of it as is known. */
type Named = Readonly<{
  id: Id;
  /** SHA-256 of the payload, 32 bytes. */
  digest?: Uint8Array | null | undefined;
}>;

/** Whether an item is on the list. */
export function isBlocked(list: BlockList, { id, digest }: Named): boolean {
  if (list.isBlockedId(id)) return true;
  return digest !== undefined && digest !== null && list.isBlockedDigest(digest);
}

/** @throws Failure `blocked` for an item that is on the list. */
export function refuseBlocked(list: BlockList, item: Named): void {
  if (isBlocked(list, item)) throw new Failure("blocked", { id: item.id });
}

/** Whether anything could be on the list: while nothing is, nothing has to be looked at. */
export function canBlock(list: BlockList): boolean {
  return list.has("id") || list.has("hash");
}
