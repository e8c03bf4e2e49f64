/**
 * Thread entry: walks over data items that lie in files, and verifies them.
 * Source: design.md §9; reference/upload.md §3.
 * @module
 */
import { join } from "node:path";
import type { ItemHeader } from "../src/arweave/data-item.ts";
import type { PendingRow } from "../src/store/index/rows.ts";
import type { LeaveWalkJob, WalkItemAnswer, WalkItemJob } from "../src/store/jobs/walk-jobs.ts";
import { type ItemWalk, openItemWalk } from "../src/store/uploads/item-walk.ts";

const walks = new Map<string, ItemWalk>();

/** Walks over some bytes more of an item. */
export function walkItem(job: WalkItemJob): WalkItemAnswer {
  const { session } = job;
  let isKept = false;
  try {
    const answer = stepOf(job);
    isKept = answer.kind === "more";
    return answer;
  } catch (error) {
    // What the system says is an answer, because an error crosses threads without its code.
    if (!(error instanceof Error && "syscall" in error)) throw error;
    return { kind: "unread", reason: error.message };
  } finally {
    if (!isKept) leaveWalk({ session });
  }
}

/** Lets a walk go; one that has ended is gone already. */
export function leaveWalk({ session }: LeaveWalkJob): void {
  walks.get(session)?.close();
  walks.delete(session);
}

/** Answers, and so shows that the thread starts and works. */
export function ping(): "ok" {
  return "ok";
}

function stepOf({ folder, session, file, size, isFirst }: WalkItemJob): WalkItemAnswer {
  if (isFirst) walks.set(session, openItemWalk(join(folder, file), size));
  const walk = walks.get(session);
  if (walk === undefined) return { kind: "lost" };
  const step = walk.step();
  if (step.kind !== "valid") return step;
  return { kind: "valid", item: { file, offset: 0, size, row: rowOf(step.header, size, step.digest) } };
}

function rowOf(header: ItemHeader, itemSize: number, digest: Uint8Array): PendingRow {
  const { id, signatureType, signature, owner, ownerAddress, target, anchor, tags, headerSize } = header;
  return {
    // A view would cross with all that was read with it.
    ...{
      kind: "item",
      id,
      signatureType,
      owner: owner.slice(),
      ownerAddress,
      target,
      anchor,
      tags,
      headerSize,
    },
    ...{ size: itemSize - headerSize, digest, verified: true, signature: signature.slice() },
  };
}
