/**
 * Refusing content and names, and taking it back: written and synced before a call returns, in force with the
 * next answer.
 * Source: docs/reference/gateway.md#block-list.
 * @module
 */
import type { Id } from "../../arweave/id.ts";
import type { Blocked, BlockedPosition, BlockNote, Moderation, RefusedPlace } from "../../store/moderation.ts";

/** Content that is refused: by its id, by its hash, or by both. */
export type RefusedData = Readonly<{
  id: Id | undefined;
  /** SHA-256 of the payload, base64url. */
  hash: string | undefined;
}>;

/** One page of the list, newest first. */
export type RefusalsPage = Readonly<{ blocks: readonly Blocked[]; next: BlockedPosition | undefined }>;

/** What an operator refuses. */
export type RefusalsDesk = Readonly<{
  blockData: (data: RefusedData, note: BlockNote, signal: AbortSignal) => Promise<void>;
  unblockData: (data: RefusedData) => void;
  blockName: (name: string, note: BlockNote) => void;
  unblockName: (name: string) => void;
  list: (limit: number, after: BlockedPosition | undefined) => RefusalsPage;
}>;

/** What the desk is made of. */
export type RefusalsDeskOptions = Readonly<{
  moderation: Pick<Moderation, "block" | "unblock" | "place" | "list">;
  /** Finds where an id lies; undefined where nobody says so in good time. */
  locate: (id: Id, signal: AbortSignal) => Promise<RefusedPlace | undefined>;
  /** Called after every change: what memory holds was asked about before it. */
  onChange: () => void;
}>;

/** Creates the desk. */
export function createRefusalsDesk({ moderation, locate, onChange }: RefusalsDeskOptions): RefusalsDesk {
  const blockId = async (id: Id, note: BlockNote, signal: AbortSignal): Promise<void> => {
    // Looked for before it is refused: nobody is told where refused content lies.
    const place = await locate(id, signal);
    moderation.block("id", id, note);
    if (place !== undefined) moderation.place(id, place);
  };
  return {
    blockData: async ({ id, hash }, note, signal) => {
      if (hash !== undefined) moderation.block("hash", hash, note);
      if (id !== undefined) await blockId(id, note, signal);
      onChange();
    },
    unblockData: ({ id, hash }) => {
      if (id !== undefined) moderation.unblock("id", id);
      if (hash !== undefined) moderation.unblock("hash", hash);
      onChange();
    },
    blockName: (name, note) => {
      moderation.block("name", name, note);
      onChange();
    },
    unblockName: (name) => {
      moderation.unblock("name", name);
      onChange();
    },
    list: (limit, after) => {
      const found = moderation.list(limit + 1, after);
      const blocks = found.slice(0, limit);
      return { blocks, next: found.length > limit ? blocks.at(-1) : undefined };
    },
  };
}
