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
import { unheard, untilStopped } from "../lib/stop.ts";
import type { FeedItemAnswer, IntakeAnswer, NotTaken, WrittenItem } from "../store/intake-jobs.ts";
import { itemFolder, removeItemFile } from "../store/item-files.ts";
import type { Pool } from "../threads/pool.ts";
import { invalidItem } from "./arriving-item.ts";
import { diskFailure } from "./disk-failure.ts";

/** Takes items in. Calls may reject with Failure `upload_refused` {reason}, `no_room`, `disk_failed`, `busy`. */
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
  /** Removes what `finish` or `take` answered and nobody's row names. What shares its file with others stays there. */
  discard: (item: WrittenItem) => Promise<void>;
}>;

/** An item that comes in pieces. It ends by `finish`, or by `drop` after anything that rejected. */
export type ItemSession = Readonly<{
  /**
   * Takes the next bytes, when those before them are taken; a failure of theirs is told here.
   * @param piece - A buffer of its own, which moves to the thread.
   */
  feed: (piece: Uint8Array<ArrayBuffer>) => Promise<void>;
  /** Ends the item. @returns Where it lies, on the disk. */
  finish: () => Promise<WrittenItem>;
  /** Lets it go; nothing of it stays. Never rejects: what cannot be removed is found at the next start. */
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

/** Large items under way at once; each has three pieces in memory at most. */
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
  let isWoken = false;
  let turn = 0;
  let sessions = 0;

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
async function takeBatch(folder: string, pool: Pool, batch: readonly Waiter[]): Promise<void> {
  try {
    const job = { folder, items: batch.map(({ bytes }) => bytes) };
    const answers = await pool.run<IntakeAnswer[]>("takeItems", job);
    for (const [index, { resolve, reject }] of batch.entries()) {
      const answer = answers[index];
      assert(answer !== undefined, "every item of a batch is answered");
      if (answer.kind === "written") resolve(answer.item);
      else reject(failureOf(answer));
    }
  } catch (error) {
    if (batch.length > 1 && isThreadLost(error))
      for (const waiter of batch) await takeBatch(folder, pool, [waiter]);
    else for (const { reject } of batch) reject(askedAgain(error));
  }
}

function createSession(folder: string, pool: Pool, size: number | undefined, onEnd: () => void): ItemSession {
  const session = crypto.randomUUID();
  let isOpen = true;
  const end = () => {
    if (isOpen) onEnd();
    isOpen = false;
  };
  const step = async <Answer extends Readonly<{ kind: string }>>(
    name: string,
    job: unknown,
    transfer: readonly ArrayBuffer[] = [],
  ): Promise<Answer> => {
    try {
      const answer = await pool.run<Answer | NotTaken>(name, job, { transfer });
      if (isRefusal(answer)) throw failureOf(answer);
      return answer;
    } catch (error) {
      throw askedAgain(error);
    }
  };
  let last: Promise<unknown> = step<FeedItemAnswer>("beginItem", { folder, session, size });
  unheard(last); // heard by the first piece
  return {
    feed: async (piece) => {
      await last;
      last = step("feedItem", { session, piece }, [piece.buffer]);
      unheard(last); // heard by the next piece, or at the end
    },
    finish: async () => {
      await last;
      const { item } = await step<Extract<IntakeAnswer, { kind: "written" }>>("finishItem", { session });
      end();
      return item;
    },
    drop: () => pool.run<void>("dropItem", { folder, session }).then(end, end),
  };
}

function isRefusal(answer: Readonly<{ kind: string }>): answer is NotTaken {
  return answer.kind === "invalid" || answer.kind === "unwritten" || answer.kind === "lost";
}

function failureOf(answer: NotTaken): Failure {
  const { reason } = answer;
  switch (answer.kind) {
    case "invalid":
      return invalidItem(reason);
    case "unwritten":
      return diskFailure(answer.code, reason);
    case "lost":
      return new Failure("busy", { reason });
  }
}

function isThreadLost(error: unknown): boolean {
  return error instanceof Failure && error.code === "worker_failed";
}

/** A thread that ended is replaced: the sender may come again. */
function askedAgain(error: unknown): unknown {
  return isThreadLost(error) ? new Failure("busy", { reason: "a thread ended" }, error) : error;
}
