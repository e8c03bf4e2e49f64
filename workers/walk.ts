/**
 * Thread entry: verifies data items in files.
 * Source: docs/reference/upload.md#uploads-in-parts.
 * @module
 */
import { join } from "node:path";
import type { ItemHeader } from "../src/arweave/data-item.ts";
import { createFileSessions } from "../src/store/file-sessions.ts";
import type { PendingRow } from "../src/store/index/rows.ts";
import { type ItemWalk, openItemWalk } from "../src/store/uploads/item-walk.ts";
import type { WrittenItem } from "./intake.ts";

/** A step of the walk over an item that lies in a file. */
export type WalkItemJob = Readonly<{
  /** That of uploads, as an absolute path. */
  folder: string;
  /** Names the walk among those under way in this thread. */
  session: string;
  /** Below the folder. */
  file: string;
  /** Of the item. Bytes. */
  size: number;
  /** The first step; the others go on where the last one ended. */
  isFirst: boolean;
}>;

/** How far the walk is; what is invalid is said in one lower-case sentence. */
export type WalkItemResult =
  | Readonly<{ kind: "more" }>
  | Readonly<{ kind: "valid"; item: WrittenItem }>
  | Readonly<{ kind: "invalid"; reason: string }>
  /** The disk did not give it: what the system said. */
  | Readonly<{ kind: "unread"; reason: string }>
  /** The thread that began is gone. */
  | Readonly<{ kind: "lost" }>;

/** Lets a walk go that will not be ended. */
export type LeaveWalkJob = Readonly<{ session: string }>;

const walks = createFileSessions<ItemWalk>((walk) => walk.close());

/** Walks over some bytes more of an item. */
export function walkItem({ folder, session, file, size, isFirst }: WalkItemJob): WalkItemResult {
  const begin = isFirst ? () => openItemWalk(join(folder, file), size) : undefined;
  return walks.step(session, begin, (walk): WalkItemResult => {
    const step = walk.step();
    if (step.kind !== "valid") return step;
    const row = rowOf(step.header, size, step.digest);
    return { kind: "valid", item: { file, offset: 0, size, row, signing: step.signing } };
  });
}

/** Lets a walk go. */
export function leaveWalk({ session }: LeaveWalkJob): void {
  walks.leave(session);
}

/** Answers, and so shows that the thread starts and works. */
export function ping(): "ok" {
  return "ok";
}

function rowOf(header: ItemHeader, itemSize: number, digest: Uint8Array): PendingRow {
  const { id, signatureType, signature, owner, ownerAddress, target, anchor, tags, headerSize } = header;
  return {
    // A view would cross with all that was read with it.
    kind: "item",
    id,
    signatureType,
    owner: owner.slice(),
    ownerAddress,
    target,
    anchor,
    tags,
    headerSize,
    size: itemSize - headerSize,
    digest,
    verified: true,
    signature: signature.slice(),
  };
}
