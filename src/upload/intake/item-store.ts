/**
 * Stores the bytes of data items: threads verify and write them.
 *
 * Concurrent small items share a batch: one job, one write, one fdatasync. A large item is passed to its thread in
 * pieces.
 * Source: docs/reference/upload.md#from-a-post-to-a-receipt.
 * @module
 */
import type { DigestItemJob, NotTaken, WrittenItem } from "../../../workers/intake.ts";
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import { type BatchJob, createBatcher } from "../../lib/batcher.ts";
import { ignoreRejection, untilStopped } from "../../lib/stop.ts";
import { itemFolder, removeItemFile } from "../../store/uploads/item-files.ts";
import type { Pool, Workers } from "../../threads/pool.ts";
import { invalidItem } from "./arriving-item.ts";
import { diskFailure } from "./upload-quota.ts";

/** Calls may reject with Failure `upload_rejected` {reason}, `no_space`, `disk_failed`, `busy`. */
export type ItemStore = Readonly<{
  /**
   * Stores a complete item.
   *
   * @param bytes - The item, at most `smallItemBytesMax`. The caller must not change them afterwards.
   * @returns Its place on the disk.
   */
  take: (bytes: Uint8Array, signal: AbortSignal) => Promise<WrittenItem>;
  /**
   * Begins an item that arrives in pieces.
   * @param size - Of the complete item, bytes; `undefined` if it was not announced. @param headerSize - Bytes.
   */
  begin: (size: number | undefined, headerSize: number) => ItemSession;
  /** Removes the file of an item that no row names. An item in a segment is removed with the segment. */
  discard: (item: WrittenItem) => Promise<void>;
}>;

/** Larger items are stored in a separate file. Bytes. */
export const smallItemBytesMax = 2 ** 20;

/** Limits of a batch, so that its job ends within milliseconds. */
const batchItemsMax = 32;
const batchBytesMax = 4 * 2 ** 20;

/** Limits of the queue; its items are in memory. */
const waitingItemsMax = 1_024;
const waitingBytesMax = 128 * 2 ** 20;

/** Large items in progress at once; each has a few pieces in memory. */
const sessionsMax = 256;

type Waiter = BatchJob<Uint8Array, WrittenItem>;

/**
 * @param folder - The folder of uploads, as an absolute path.
 * @param pools - Pools of one thread each, entry `intake`.
 * @param onUnnamed - Called with an item in a segment that no row names.
 */
export function createItemStore(
  folder: string,
  pools: readonly Pool<Workers["intake"]>[],
  onUnnamed: (item: WrittenItem) => void,
): ItemStore {
  assert(pools.length > 0, "items are taken by threads");
  let waitingBytes = 0;
  const batcher = createBatcher<Uint8Array, WrittenItem, Pool<Workers["intake"]>>({
    name: "upload.intake",
    workers: pools,
    waitingMax: waitingItemsMax,
    batchSize,
    run: (batch, pool) => {
      for (const { input } of batch) waitingBytes -= input.length;
      return takeBatch(folder, pool, batch);
    },
  });
  let nextPool = 0;
  let sessions = 0;
  const shared = { pieces: 0 };

  return {
    take: (bytes, signal) => {
      assert(bytes.length <= smallItemBytesMax, "large items come in pieces");
      const taken = waitingBytes + bytes.length > waitingBytesMax ? undefined : batcher.add(bytes);
      if (taken === undefined) throw new Failure("busy", { waiting: batcher.waiting(), waitingBytes });
      waitingBytes += bytes.length;
      return untilStopped(taken, signal).catch((error: unknown) => {
        // The client has left: its item is written nevertheless. After any other error it was not.
        if (signal.aborted) taken.then(onUnnamed, () => undefined);
        throw error;
      });
    },
    begin: (size, headerSize) => {
      if (sessions >= sessionsMax) throw new Failure("busy", { sessions });
      const pool = pools[nextPool % pools.length];
      nextPool += 1;
      // The pool that begins the next item computes this item's digest.
      const digestPool = pools[nextPool % pools.length];
      sessions += 1;
      assert(pool !== undefined && digestPool !== undefined, "there is a thread for every item");
      return createItemSession({ folder, size, headerSize, pool, digestPool, shared }, () => {
        sessions -= 1;
      });
    },
    discard: async (item) => {
      if (item.file.startsWith(`${itemFolder}/`)) await removeItemFile(folder, item.file);
      else onUnnamed(item);
    },
  };
}

function batchSize(waiting: readonly Waiter[]): number {
  let count = 0;
  let size = 0;
  for (const { input } of waiting) {
    size += input.length;
    if (count === batchItemsMax || (count > 0 && size > batchBytesMax)) break;
    count += 1;
  }
  return count;
}

/** Stores a batch. If its thread ends, each item is retried alone to isolate the cause. Never rejects. */
async function takeBatch(folder: string, pool: Pool<Workers["intake"]>, batch: readonly Waiter[]): Promise<void> {
  try {
    const job = { folder, items: batch.map(({ input }) => input) };
    const responses = await pool.run("takeItems", job);
    for (const [index, { resolve, reject }] of batch.entries()) {
      const response = responses[index];
      assert(response !== undefined, "every item of a batch has a result");
      if (response.kind === "written") resolve(response.item);
      else reject(failureOf(response));
    }
  } catch (error) {
    if (batch.length > 1 && isThreadLost(error)) for (const waiter of batch) await takeBatch(folder, pool, [waiter]);
    else for (const { reject } of batch) reject(retryable(error));
  }
}

/** An item that arrives in pieces. The caller ends it by `finish`, or by `drop` after any rejection. */
export type ItemSession = Readonly<{
  /**
   * Adds the next bytes. Resolves when they are copied and the caller may reuse its buffer. Rejects if earlier bytes
   * failed.
   */
  feed: (bytes: Uint8Array) => Promise<void>;
  /** Ends the item. @returns Its place on the disk. */
  finish: () => Promise<WrittenItem>;
  /** Removes the item. Never rejects: a file that cannot be removed is found at the next start. */
  drop: () => Promise<void>;
}>;

export type ItemSessionParts = Readonly<{
  /** The folder of uploads, as an absolute path. */
  folder: string;
  /** Size of the complete item, bytes; `undefined` if it was not announced. */
  size: number | undefined;
  /** Offset of the payload. Bytes. */
  headerSize: number;
  /** Pools of one thread each, entry `intake`; may be the same pool. */
  pool: Pool<Workers["intake"]>;
  digestPool: Pool<Workers["intake"]>;
  /** Count of pieces beyond the first two of each session. */
  shared: PieceCount;
}>;

export type PieceCount = { pieces: number };

/** Size of a piece. Bytes. */
const pieceBytes = 2 ** 20;

/** Pieces of every session: one is written while the other is filled. */
const piecesMin = 2;

/** Most pieces of a session: half of them are written, in one job, while the other half is filled. */
const piecesMax = 8;

/** Most pieces beyond the first two of each session: bounds the memory of all sessions. */
const sharedPiecesMax = 128;

type Piece = Uint8Array<SharedArrayBuffer>;

/** Begins a session. @param onEnd - Called once, at its end. */
export function createItemSession(parts: ItemSessionParts, onEnd: () => void): ItemSession {
  const session = crypto.randomUUID();
  const threads = createThreads(parts, session);
  const pieces = createPieces(parts.shared);
  let failure: { error: unknown } | undefined;
  let working: Promise<void> | undefined;
  let isOpen = true;
  const end = () => {
    if (!isOpen) return;
    isOpen = false;
    pieces.release();
    onEnd();
  };

  /** Passes the full pieces to the threads. While these are at work, the next full pieces gather for one job. */
  function work(): void {
    const full = working === undefined && failure === undefined ? pieces.takeFull() : [];
    if (full.length === 0) return;
    working = threads
      .feed(full)
      .then(
        () => pieces.giveBack(full),
        (error) => {
          failure ??= { error };
        },
      )
      .then(() => {
        working = undefined;
        work();
      });
  }

  async function untilDone(): Promise<void> {
    work();
    while (working !== undefined) await working;
    if (failure !== undefined) throw failure.error;
  }

  return {
    feed: async (bytes) => {
      for (let at = 0; at < bytes.length; ) {
        if (failure !== undefined) throw failure.error;
        at += pieces.fill(bytes.subarray(at));
        work();
        // Backpressure: bytes that arrive while the threads are at work wait in the connection.
        if (at < bytes.length && !pieces.hasSpace()) await working;
      }
    },
    finish: async () => {
      pieces.endLast();
      await untilDone();
      const item = await threads.finish();
      end();
      return item;
    },
    drop: async () => {
      failure ??= { error: new Failure("busy", { reason: "the item was dropped" }) };
      // No write may follow the removal.
      while (working !== undefined) await working;
      await threads.drop();
      end();
    },
  };
}

/** The pieces of an item: free, being filled, or full. */
function createPieces(shared: PieceCount) {
  const free: Piece[] = [];
  let full: Piece[] = [];
  let filling: Piece | undefined;
  let filled = 0;
  let allocated = 0;

  const mayAllocate = () => allocated < piecesMin || (allocated < piecesMax && shared.pieces < sharedPiecesMax);

  function take(): Piece | undefined {
    const known = free.pop();
    if (known !== undefined || !mayAllocate()) return known;
    allocated += 1;
    if (allocated > piecesMin) shared.pieces += 1;
    return new Uint8Array(new SharedArrayBuffer(pieceBytes));
  }

  return {
    hasSpace: () => filling !== undefined || free.length > 0 || mayAllocate(),
    /** Copies as many bytes as fit into one piece. @returns The number of copied bytes. */
    fill: (bytes: Uint8Array): number => {
      filling ??= take();
      if (filling === undefined) return 0;
      const part = bytes.subarray(0, pieceBytes - filled);
      filling.set(part, filled);
      filled += part.length;
      if (filled === pieceBytes) {
        full.push(filling);
        filling = undefined;
        filled = 0;
      }
      return part.length;
    },
    takeFull: (): readonly Piece[] => {
      const taken = full;
      full = [];
      return taken;
    },
    giveBack: (pieces: readonly Piece[]) => {
      free.push(...pieces);
    },
    /** Ends the count of this session's pieces. */
    release: () => {
      shared.pieces -= Math.max(0, allocated - piecesMin);
    },
    /** Marks the last piece as full. */
    endLast: () => {
      if (filling !== undefined && filled > 0) full.push(filling.subarray(0, filled));
      filling = undefined;
      filled = 0;
    },
  };
}

/** The two threads of an item. */
function createThreads({ folder, size, headerSize, pool, digestPool }: ItemSessionParts, session: string) {
  let received = 0;
  const begun = step(pool.run("beginItem", { folder, session, size }));
  ignoreRejection(begun); // the first piece or the end awaits the promise

  function digestJob(pieces: readonly Uint8Array[]): DigestItemJob {
    const ofHeader = Math.max(0, headerSize - received);
    const start = Math.max(0, received - headerSize);
    let left = ofHeader;
    const payload = pieces.map((piece) => {
      const skipped = Math.min(left, piece.length);
      left -= skipped;
      return piece.subarray(skipped);
    });
    return { session, start, pieces: payload };
  }

  return {
    /** Waits for both threads, also when one fails. @throws The first error. */
    feed: async (pieces: readonly Uint8Array[]): Promise<void> => {
      await begun;
      const digested = step(digestPool.run("digestItem", digestJob(pieces)));
      const fed = step(pool.run("feedItem", { session, pieces }));
      for (const { length } of pieces) received += length;
      const results = await Promise.allSettled([fed, digested]);
      for (const result of results) if (result.status === "rejected") throw result.reason;
    },
    finish: async (): Promise<WrittenItem> => {
      await begun;
      const { digest } = await step(digestPool.run("endDigest", { session }));
      const { item } = await step(pool.run("finishItem", { session, digest }));
      return item;
    },
    drop: async (): Promise<void> => {
      const ignore = () => undefined;
      await Promise.all([
        pool.run("dropItem", { folder, session }).then(ignore, ignore),
        digestPool.run("endDigest", { session }).then(ignore, ignore),
      ]);
    },
  };
}

async function step<Result extends Readonly<{ kind: string }>>(
  running: Promise<Result | NotTaken>,
): Promise<Exclude<Result, NotTaken>> {
  try {
    const response = await running;
    if (isNotTaken(response)) throw failureOf(response);
    return response as Exclude<Result, NotTaken>;
  } catch (error) {
    throw retryable(error);
  }
}

function isNotTaken(response: Readonly<{ kind: string }>): response is NotTaken {
  return response.kind === "invalid" || response.kind === "unwritten" || response.kind === "lost";
}

/** The failure of an item that was not accepted. */
export function failureOf(response: NotTaken): Failure {
  const { reason } = response;
  switch (response.kind) {
    case "invalid":
      return invalidItem(reason);
    case "unwritten":
      return diskFailure(response.code, reason);
    case "lost":
      return new Failure("busy", { reason });
  }
}

/** Whether an error says that a thread ended, and its job with it. */
export function isThreadLost(error: unknown): boolean {
  return error instanceof Failure && error.code === "worker_failed";
}

/** The client may retry after the end of a thread, which is replaced. */
export function retryable(error: unknown): unknown {
  return isThreadLost(error) ? new Failure("busy", { reason: "a thread ended" }, error) : error;
}
