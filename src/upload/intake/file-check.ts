/**
 * Verifies a data item in a file: a thread walks over the file once, in steps, and serves other items between them.
 * Source: docs/reference/upload.md#files.
 * @module
 */
import type { WrittenItem } from "../../../workers/intake.ts";
import type { LeaveWalkJob, WalkItemJob, WalkItemResult } from "../../../workers/walk.ts";
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import { ignoreRejection } from "../../lib/stop.ts";
import type { Pool, Workers } from "../../threads/pool.ts";

type WalkPool = Pool<Workers["walk"]>;

/**
 * Verifies the item at the start of a file within the folder of uploads.
 *
 * @param size - Of the item; the file has at least as many bytes.
 * @throws Failure `upload_rejected` {reason} for an invalid item; `disk_failed` {reason} when it cannot be read;
 *   `busy`, `worker_failed`; the signal's reason.
 */
export type CheckFile = (file: string, size: number, signal: AbortSignal) => Promise<WrittenItem>;

/**
 * @param folder - The folder of uploads, as an absolute path.
 * @param pools - Pools of one thread each, entry `walk`: a walk stays with one thread.
 */
export function createFileCheck(folder: string, pools: readonly WalkPool[]): CheckFile {
  const busy = new Map(pools.map((pool) => [pool, 0]));

  async function walk(pool: WalkPool, file: string, size: number, signal: AbortSignal): Promise<WrittenItem> {
    const session = crypto.randomUUID();
    try {
      for (let isFirst = true; ; isFirst = false) {
        const job: WalkItemJob = { folder, session, file, size, isFirst };
        const response = await pool.run("walkItem", job, { signal });
        if (response.kind === "valid") return response.item;
        if (response.kind !== "more") throw failureOf(response);
      }
    } catch (error) {
      // The walk of an aborted wait is still open in the thread. A dead thread has released it.
      const job: LeaveWalkJob = { session };
      ignoreRejection(pool.run("leaveWalk", job));
      throw error;
    }
  }

  return async (file, size, signal) => {
    const pool = idlest(busy);
    busy.set(pool, (busy.get(pool) ?? 0) + 1);
    try {
      return await walk(pool, file, size, signal);
    } finally {
      busy.set(pool, (busy.get(pool) ?? 0) - 1);
    }
  };
}

function idlest(busy: ReadonlyMap<WalkPool, number>): WalkPool {
  const [first] = [...busy].toSorted(([, left], [, right]) => left - right);
  assert(first !== undefined, "there is a thread for every walk");
  return first[0];
}

function failureOf(response: Exclude<WalkItemResult, Readonly<{ kind: "more" | "valid" }>>): Failure {
  switch (response.kind) {
    case "invalid":
      return new Failure("upload_rejected", { reason: `Invalid Data Item! ${response.reason}` });
    case "unread":
      return new Failure("disk_failed", { reason: response.reason });
    case "lost":
      return new Failure("worker_failed", { reason: "the thread that verified the item has ended" });
  }
}
