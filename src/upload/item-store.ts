/**
 * The bytes of data items on their way to the disk: verified and written by threads.
 *
 * Small items that come at once share a batch: one job, one write, one synchronisation. A large item goes to one thread
 * piece by piece, as fast as the disk and the hashes take it; between its pieces the thread serves others.
 * Source: design.md §9.
 * @module
 */
import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import { untilStopped } from "../lib/stop.ts";
import type { FeedItemAnswer, IntakeAnswer, NotTaken, WrittenItem } from "../store/intake-jobs.ts";
import type { Pool } from "../threads/pool.ts";

/** Takes items in. Every call may reject with Failure `upload_refused`, `no_room`, `busy`, `worker_failed`. */
export type ItemStore = Readonly<{
  /**
   * Takes a whole item.
   *
   * @param bytes - The item, at most `smallItemBytesMax`; not to be changed any more.
   * @returns Where it lies, on the disk.
   */
  take: (bytes: Uint8Array, signal: AbortSignal) => Promise<WrittenItem>;
  /** Begins an item that comes in pieces. @param size - Of the whole item; `undefined` where only the end will tell. */
  begin: (size: number | undefined) => ItemSession;
}>;

/** An item that comes in pieces, one call at a time. It ends by `finish`, or by `drop` after anything that rejected. */
export type ItemSession = Readonly<{
  /** Takes the next bytes. @param piece - A buffer of its own, which moves to the thread. */
  feed: (piece: Uint8Array<ArrayBuffer>) => Promise<void>;
  /** Ends the item. @returns Where it lies, on the disk. */
  finish: () => Promise<WrittenItem>;
  /** Lets it go; nothing of it stays. Never rejects: what a dead thread leaves behind is found at the next start. */
  drop: () => Promise<void>;
}>;

/** Larger items get a file of their own. */
export const smallItemBytesMax = 2 ** 20;

/** A batch is bounded by both: its job ends within milliseconds. */
const batchItemsMax = 32;
const batchBytesMax = 4 * 2 ** 20;

/** Items that wait for a batch; their bytes are in memory. */
const waitingItemsMax = 1_024;
const waitingBytesMax = 128 * 2 ** 20;

/** Large items under way at once; each has a piece or two in memory. */
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
export function createItemStore(folder: string, pools: readonly Pool[]): ItemStore {
  assert(pools.length > 0, "items are taken by threads");
  const waiting: Waiter[] = [];
  let waitingBytes = 0;
  const idle = new Set(pools);
  let turn = 0;
  let sessions = 0;

  function serve(): void {
    for (const pool of idle) {
      if (waiting.length === 0) return;
      idle.delete(pool);
      void serveBatch(pool).finally(() => {
        idle.add(pool);
        serve();
      });
    }
  }

  async function serveBatch(pool: Pool): Promise<void> {
    const batch = nextBatch(waiting);
    for (const { bytes } of batch) waitingBytes -= bytes.length;
    try {
      const job = { folder, items: batch.map(({ bytes }) => bytes) };
      const answers = await pool.run<IntakeAnswer[]>("takeItems", job);
      for (const [index, waiter] of batch.entries()) settle(waiter, answers[index]);
    } catch (error) {
      for (const { reject } of batch) reject(error);
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
      serve();
      return untilStopped(taken, signal);
    },
    begin: (size) => {
      if (sessions >= sessionsMax) throw new Failure("busy", { sessions });
      const pool = pools[turn % pools.length];
      turn += 1;
      sessions += 1;
      assert(pool !== undefined, "there is a thread for every item");
      return createSession(folder, pool, size, () => {
        sessions -= 1;
      });
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

function settle({ resolve, reject }: Waiter, answer: IntakeAnswer | undefined): void {
  if (answer?.kind === "written") resolve(answer.item);
  else reject(answer === undefined ? new Failure("worker_failed", {}) : failureOf(answer));
}

function createSession(folder: string, pool: Pool, size: number | undefined, onEnd: () => void): ItemSession {
  const session = crypto.randomUUID();
  let isBegun = false;
  let isOpen = true;
  const end = () => {
    if (isOpen) onEnd();
    isOpen = false;
  };
  return {
    feed: async (piece) => {
      isBegun = true;
      const job = { folder, session, piece, size };
      const answer = await pool.run<FeedItemAnswer>("feedItem", job, { transfer: [piece.buffer] });
      if (answer.kind !== "fed") throw failureOf(answer);
    },
    finish: async () => {
      // Without a byte no thread knows of it.
      if (!isBegun) throw failureOf({ kind: "invalid", reason: "the item is cut short" });
      const answer = await pool.run<IntakeAnswer>("finishItem", { session });
      if (answer.kind !== "written") throw failureOf(answer);
      end();
      return answer.item;
    },
    drop: () => pool.run<void>("dropItem", { session }).then(end, end),
  };
}

function failureOf({ kind, reason }: NotTaken): Failure {
  return kind === "invalid"
    ? new Failure("upload_refused", { reason: `Invalid Data Item! ${reason}` })
    : new Failure("no_room", { reason });
}
