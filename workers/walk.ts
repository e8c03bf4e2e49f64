/**
 * Thread entry: verifies data items in files.
 * Source: docs/reference/upload.md#uploads-in-parts.
 * @module
 */
import { join } from "node:path";
import { createFileSessions } from "../src/store/file-sessions.ts";
import { type ItemWalk, openItemWalk, pendingRowOf } from "../src/store/uploads/item-walk.ts";
import { ping } from "../src/threads/ping.ts";
import type { WrittenItem } from "./intake.ts";

export { ping };

/** One step of the verification of an item in a file. */
export type WalkItemJob = Readonly<{
  /** Absolute path of the folder of uploads. */
  folder: string;
  /** Identifies the walk among the open walks of this thread. */
  session: string;
  /** Path below the folder. */
  file: string;
  /** Size of the item, bytes. */
  size: number;
  /** Whether this is the first step; later steps continue where the last one ended. */
  isFirst: boolean;
}>;

/** Progress of the walk. The reason of an invalid item is one lower-case sentence. */
export type WalkItemResult =
  | Readonly<{ kind: "more" }>
  | Readonly<{ kind: "valid"; item: WrittenItem }>
  | Readonly<{ kind: "invalid"; reason: string }>
  /** The file could not be read; `reason` is the system's message. */
  | Readonly<{ kind: "unread"; reason: string }>
  /** The thread that began the walk has ended. */
  | Readonly<{ kind: "lost" }>;

/** Ends a walk before its last step. */
export type LeaveWalkJob = Readonly<{ session: string }>;

const walks = createFileSessions<ItemWalk>((walk) => walk.close());

/** Verifies the next bytes of an item. */
export function walkItem({ folder, session, file, size, isFirst }: WalkItemJob): WalkItemResult {
  const begin = isFirst ? () => openItemWalk(join(folder, file), size) : undefined;
  return walks.step(session, begin, (walk): WalkItemResult => {
    const step = walk.step();
    if (step.kind !== "valid") return step;
    const row = pendingRowOf(step.header, size, step.digest);
    return { kind: "valid", item: { file, offset: 0, size, row, signing: step.signing } };
  });
}

/** Closes a walk before its last step. */
export function leaveWalk({ session }: LeaveWalkJob): void {
  walks.leave(session);
}
