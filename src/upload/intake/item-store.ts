/**
 * The bytes of data items on their way to the disk: verified and written by threads.
 *
 * Small items that come at once share a batch: one job, one write, one synchronisation. A large item goes piece by
 * piece (`item-session.ts`).
 * Source: docs/reference/upload.md#from-a-post-to-a-receipt.
 * @module
 */

import type { WrittenItem } from "../../../workers/intake.ts";
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import { untilStopped } from "../../lib/stop.ts";
import { itemFolder, removeItemFile } from "../../store/uploads/item-files.ts";
import type { Pool, Workers } from "../../threads/pool.ts";
import { askedAgain, createItemSession, failureOf, type ItemSession, isThreadLost } from "./item-session.ts";

/** Takes items in. Calls may reject with Failure `upload_rejected` {reason}, `no_room`, `disk_failed`, `busy`. */
export type ItemStore = Readonly<{
  /**
   * Takes a whole item.
   *
   * @param bytes - The item, at most `smallItemBytesMax`; not to be changed any more.
   * @returns Where it lies, on the disk.
   */
  take: (bytes: Uint8Array, signal: AbortSignal) => Promise<WrittenItem>;
  /**
   * Begins an item that comes in pieces.
   * @param size - Of the whole item; `undefined` where only the end will tell. @param headerSize - Bytes.
   */
  begin: (size: number | undefined, headerSize: number) => ItemSession;
  /** Removes what `finish` or `take` answered and nobody's row names. What shares its file with others stays there. */
  discard: (item: WrittenItem) => Promise<void>;
}>;

/** Larger items get a file of their own. */
export const smallItemBytesMax = 2 ** 20;

/** A batch is bounded by both: its job ends within milliseconds. */
const batchItemsMax = 32;
const batchBytesMax = 4 * 2 ** 20;

/** Items that wait for a batch; their bytes are in memory. */
const waitingItemsMax = 1_024;
const waitingBytesMax = 128 * 2 ** 20;

/** Large items under way at once; each has a few pieces in memory (`item-session.ts`). */
const sessionsMax = 256;

type Waiter = Readonly<{
  bytes: Uint8Array;
  resolve: (item: WrittenItem) => void;
  reject: (error: unknown) => void;
}>;

/**
 * Creates the store.
 *
 * @param folder - That of uploads, as an absolute path.
 * @param pools - Of one thread each, entry `intake`.
 */
export function createItemStore(folder: string, pools: readonly Pool<Workers["intake"]>[]): ItemStore {
  assert(pools.length > 0, "items are taken by threads");
  const waiting: Waiter[] = [];
  let waitingBytes = 0;
  const idle = new Set(pools);
  let isWoken = false;
  let turn = 0;
  let sessions = 0;
  const shared = { pieces: 0 };

  function serve(): void {
    isWoken = false;
    for (const pool of idle) {
      if (waiting.length === 0) return;
      idle.delete(pool);
      const batch = nextBatch(waiting);
      for (const { bytes } of batch) waitingBytes -= bytes.length;
      void takeBatch(folder, pool, batch).finally(() => {
        idle.add(pool);
        serve();
      });
    }
  }

  return {
    take: (bytes, signal) => {
      assert(bytes.length <= smallItemBytesMax, "large items come in pieces");
      if (waiting.length >= waitingItemsMax || waitingBytes + bytes.length > waitingBytesMax)
        throw new Failure("busy", { waiting: waiting.length, waitingBytes });
      const taken = new Promise<WrittenItem>((resolve, reject) => {
        waiting.push({ bytes, resolve, reject });
      });
      waitingBytes += bytes.length;
      // Those of one turn of the event loop go together.
      if (!isWoken && idle.size > 0) setImmediate(serve);
      isWoken = true;
      return untilStopped(taken, signal);
    },
    begin: (size, headerSize) => {
      if (sessions >= sessionsMax) throw new Failure("busy", { sessions });
      const pool = pools[turn % pools.length];
      turn += 1;
      // The next one's turn to begin is this one's to hash beside it.
      const digestPool = pools[turn % pools.length];
      sessions += 1;
      assert(pool !== undefined && digestPool !== undefined, "there is a thread for every item");
      return createItemSession({ folder, size, headerSize, pool, digestPool, shared }, () => {
        sessions -= 1;
      });
    },
    discard: async ({ file }) => {
      if (file.startsWith(`${itemFolder}/`)) await removeItemFile(folder, file);
    },
  };
}

function nextBatch(waiting: Waiter[]): Waiter[] {
  let count = 0;
  let size = 0;
  for (const { bytes } of waiting) {
    size += bytes.length;
    if (count === batchItemsMax || (count > 0 && size > batchBytesMax)) break;
    count += 1;
  }
  return waiting.splice(0, count);
}

/** Has a batch taken; what ends its thread is found by taking each of its items alone. Never rejects. */
async function takeBatch(folder: string, pool: Pool<Workers["intake"]>, batch: readonly Waiter[]): Promise<void> {
  try {
    const job = { folder, items: batch.map(({ bytes }) => bytes) };
    const responses = await pool.run("takeItems", job);
    for (const [index, { resolve, reject }] of batch.entries()) {
      const response = responses[index];
      assert(response !== undefined, "every item of a batch is answered");
      if (response.kind === "written") resolve(response.item);
      else reject(failureOf(response));
    }
  } catch (error) {
    if (batch.length > 1 && isThreadLost(error)) for (const waiter of batch) await takeBatch(folder, pool, [waiter]);
    else for (const { reject } of batch) reject(askedAgain(error));
  }
}
