/**
 * Administration of the block list. A change is synced before its call returns and holds from the next response on.
 * Source: docs/reference/gateway.md#block-list.
 * @module
 */
import type { Id } from "../../arweave/id.ts";
import { ignoreRejection } from "../../lib/stop.ts";
import type { BlockedEntry, BlockedPlace, BlockedPosition, BlockList, BlockNote } from "../../store/block-list.ts";

/** Content to block: by its id, by its hash, or by both. */
export type BlockedData = Readonly<{
  id: Id | undefined;
  /** SHA-256 of the payload, base64url. */
  hash: string | undefined;
}>;

/** One page of the list, newest first. */
export type BlockListPage = Readonly<{ blocks: readonly BlockedEntry[]; next: BlockedPosition | undefined }>;

export type BlockListAdmin = Readonly<{
  blockData: (data: BlockedData, note: BlockNote, signal: AbortSignal) => Promise<void>;
  unblockData: (data: BlockedData) => void;
  blockName: (name: string, note: BlockNote) => void;
  unblockName: (name: string) => void;
  list: (limit: number, after: BlockedPosition | undefined) => BlockListPage;
}>;

export type BlockListAdminOptions = Readonly<{
  blockList: Pick<BlockList, "block" | "unblock" | "place" | "list">;
  /**
   * Finds the place of an id; undefined when no source knows it in time. The block list is read before the call
   * returns its promise.
   */
  locate: (id: Id, signal: AbortSignal) => Promise<BlockedPlace | undefined>;
  /** Called after every change, so that caches in memory are dropped. */
  onChange: () => void;
}>;

export function createBlockListAdmin({ blockList, locate, onChange }: BlockListAdminOptions): BlockListAdmin {
  const blockId = async (id: Id, note: BlockNote, signal: AbortSignal): Promise<void> => {
    // Begun before it is blocked: sources do not return the place of a blocked id.
    const locating = locate(id, signal);
    ignoreRejection(locating); // until it is awaited
    blockList.block("id", id, note);
    onChange(); // the id may take seconds to locate, and the client may leave
    const place = await locating;
    if (place === undefined) return;
    blockList.place(id, place);
    onChange();
  };
  return {
    blockData: async ({ id, hash }, note, signal) => {
      if (hash !== undefined) {
        blockList.block("hash", hash, note);
        onChange(); // the client may leave before the id is located
      }
      if (id !== undefined) await blockId(id, note, signal);
    },
    unblockData: ({ id, hash }) => {
      if (id !== undefined) blockList.unblock("id", id);
      if (hash !== undefined) blockList.unblock("hash", hash);
      onChange();
    },
    blockName: (name, note) => {
      blockList.block("name", name, note);
      onChange();
    },
    unblockName: (name) => {
      blockList.unblock("name", name);
      onChange();
    },
    list: (limit, after) => {
      const found = blockList.list(limit + 1, after);
      const blocks = found.slice(0, limit);
      return { blocks, next: found.length > limit ? blocks.at(-1) : undefined };
    },
  };
}
