/**
 * Refusing content and names, and taking it back: written and synced before a call returns, in force with the next answer.
 * Source: specification 4A; contract.md §3 "block-data".
 * @module
 */
import type { Id } from "../../arweave/id.ts";
import type { Blocked, BlockedPosition, BlockNote, Moderation } from "../../store/moderation.ts";

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
  blockData: (data: RefusedData, note: BlockNote) => void;
  unblockData: (data: RefusedData) => void;
  blockName: (name: string, note: BlockNote) => void;
  unblockName: (name: string) => void;
  list: (limit: number, after: BlockedPosition | undefined) => RefusalsPage;
}>;

/**
 * Creates the desk.
 *
 * @param onChange - Called after every change: what memory holds was asked about before it.
 */
export function createRefusalsDesk(
  moderation: Pick<Moderation, "block" | "unblock" | "list">,
  onChange: () => void,
): RefusalsDesk {
  const changing =
    <Parts extends readonly unknown[]>(change: (...parts: Parts) => void) =>
    (...parts: Parts): void => {
      change(...parts);
      onChange();
    };
  return {
    blockData: changing(({ id, hash }: RefusedData, note: BlockNote) => {
      if (id !== undefined) moderation.block("id", id, note);
      if (hash !== undefined) moderation.block("hash", hash, note);
    }),
    unblockData: changing(({ id, hash }: RefusedData) => {
      if (id !== undefined) moderation.unblock("id", id);
      if (hash !== undefined) moderation.unblock("hash", hash);
    }),
    blockName: changing((name: string, note: BlockNote) => moderation.block("name", name, note)),
    unblockName: changing((name: string) => {
      moderation.unblock("name", name);
    }),
    list: (limit, after) => {
      const found = moderation.list(limit + 1, after);
      const blocks = found.slice(0, limit);
      return { blocks, next: found.length > limit ? blocks.at(-1) : undefined };
    },
  };
}
