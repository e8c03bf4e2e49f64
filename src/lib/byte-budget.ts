/**
 * A budget of bytes that many clients use at once: a total, a share of it for each client, and a bounded queue of those
 * that wait until bytes are released.
 * @module
 */
import { assert } from "./assert.ts";

/** Limits of a budget. */
export type ByteBudgetOptions = Readonly<{
  /** Bytes in use by all clients together. */
  bytesMax: number;
  /** Bytes in use by one client. */
  clientBytesMax: number;
  /** Longest wait for bytes. Milliseconds. */
  waitMsMax: number;
  /** Bytes that requests in the queue may hold beside the total; an eighth of it unless given. */
  heldBytesMax?: number;
  /** Called before a request waits or fails: releases what is no longer used. */
  collect?: () => void;
}>;

/** Bytes in use. */
export type ByteBudget = Readonly<{
  /** Takes bytes at once; returns false when they do not fit. */
  take: (client: string, bytes: number) => boolean;
  /**
   * Takes bytes, after a wait if they do not fit yet; returns false when they did not fit in time, when the queue is
   * full, or when the signal is aborted.
   *
   * @param heldBytes - Bytes that the caller holds in memory while it waits; bounded over all that wait.
   */
  takeSoon: (client: string, bytes: number, heldBytes: number, signal: AbortSignal) => Promise<boolean>;
  /** Takes bytes that are in memory already, whether they fit or not. */
  add: (client: string, bytes: number) => void;
  release: (client: string, bytes: number) => void;
  bytes: () => number;
  /** Whether one client uses more than its share. */
  isOverShare: (client: string) => boolean;
  /** Requests in the queue. */
  waiting: () => number;
}>;

type Waiter = Readonly<{ client: string; bytes: number; start: () => void }>;

/** Requests that wait at once; a waiting request costs about 1 KiB. */
const waitersMax = 1_024;

/** Of the total, requests in the queue may hold one part in so many beside it, unless another limit is given. */
const heldShareDefault = 8;

/**
 * Creates a budget with nothing in use.
 *
 * A client that uses nothing may take more than its share, and the first of all more than the total: else what is
 * larger than a limit could never be sent.
 */
export function createByteBudget(options: ByteBudgetOptions): ByteBudget {
  const { bytesMax, clientBytesMax, waitMsMax, collect } = options;
  const heldBytesMax = options.heldBytesMax ?? bytesMax / heldShareDefault;
  const used = new Map<string, number>();
  const queue = new Set<Waiter>(); // in order of arrival
  let total = 0;
  let held = 0;

  const fits = (client: string, bytes: number): boolean => {
    const own = used.get(client) ?? 0;
    return (total === 0 || total + bytes <= bytesMax) && (own === 0 || own + bytes <= clientBytesMax);
  };
  const add = (client: string, bytes: number): void => {
    total += bytes;
    used.set(client, (used.get(client) ?? 0) + bytes);
  };
  const take = (client: string, bytes: number): boolean => {
    if (!fits(client, bytes)) {
      collect?.();
      if (!fits(client, bytes)) return false;
    }
    add(client, bytes);
    return true;
  };
  const release = (client: string, bytes: number): void => {
    const left = (used.get(client) ?? 0) - bytes;
    assert(left >= 0, "only bytes that were taken are released");
    total -= bytes;
    if (left === 0) used.delete(client);
    else used.set(client, left);
    for (const waiter of queue) {
      if (total >= bytesMax) return;
      if (fits(waiter.client, waiter.bytes)) waiter.start();
    }
  };

  /** Waits in the queue. A waiter whose client is at its share does not keep the others waiting. */
  const wait = (client: string, bytes: number, signal: AbortSignal): Promise<boolean> =>
    new Promise((resolve) => {
      const end = (isTaken: boolean) => {
        queue.delete(waiter);
        clearTimeout(timer);
        signal.removeEventListener("abort", leave);
        resolve(isTaken);
      };
      const leave = () => end(false);
      const waiter: Waiter = {
        client,
        bytes,
        start: () => {
          add(client, bytes);
          end(true);
        },
      };
      const timer = setTimeout(leave, waitMsMax);
      signal.addEventListener("abort", leave, { once: true });
      queue.add(waiter);
    });

  return {
    take,
    takeSoon: async (client, bytes, heldBytes, signal) => {
      if (take(client, bytes)) return true;
      if (signal.aborted || queue.size >= waitersMax || held + heldBytes > heldBytesMax) return false;
      held += heldBytes;
      try {
        return await wait(client, bytes, signal);
      } finally {
        held -= heldBytes;
      }
    },
    add,
    release,
    bytes: () => total,
    isOverShare: (client) => (used.get(client) ?? 0) > clientBytesMax,
    waiting: () => queue.size,
  };
}
