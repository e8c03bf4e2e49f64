/**
 * A budget of bytes for concurrent clients: a total, a limit for each client, and a bounded queue of requests that wait
 * until bytes are released.
 * @module
 */
import { assert } from "./assert.ts";

export type ByteBudgetOptions = Readonly<{
  /** Maximum bytes in use by all clients together. */
  bytesMax: number;
  /** Maximum bytes in use by one client. */
  clientBytesMax: number;
  /** Longest wait for bytes. Milliseconds. */
  waitMsMax: number;
  /** Maximum bytes that queued requests hold beside the total; an eighth of the total by default. */
  heldBytesMax?: number;
  /** Called before a request waits or fails, to release unused bytes. */
  collect?: () => void;
}>;

export type ByteBudget = Readonly<{
  /** Takes bytes at once; returns false when they do not fit. */
  take: (client: string, bytes: number) => boolean;
  /**
   * Takes bytes, after a wait if they do not fit yet. Returns false when they do not fit in time, when the queue is
   * full, or when the signal is aborted.
   *
   * @param heldBytes - Bytes that the caller holds in memory while it waits; bounded for all waiting requests together.
   */
  takeSoon: (client: string, bytes: number, heldBytes: number, signal: AbortSignal) => Promise<boolean>;
  /** Takes bytes that are in memory already, whether they fit or not. */
  add: (client: string, bytes: number) => void;
  release: (client: string, bytes: number) => void;
  bytes: () => number;
  /** Whether a client uses more than `clientBytesMax`. */
  isOverShare: (client: string) => boolean;
  /** Requests in the queue. */
  waiting: () => number;
}>;

type Waiter = Readonly<{ client: string; bytes: number; start: () => void }>;

/** Maximum number of waiting requests; each takes about 1 KiB. */
const waitersMax = 1_024;

/** Default of `heldBytesMax`: the total divided by this number. */
const heldShareDefault = 8;

/**
 * Creates a budget with nothing in use.
 *
 * A client that uses nothing may exceed its limit, and the only client may exceed the total: otherwise a body larger
 * than a limit could never be sent.
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

  /** Waits in the queue. A waiter whose client is at its limit does not block the others. */
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
