/**
 * Semaphores with a bounded queue, first come first served.
 * @module
 */

/** Releases a permit. A second call does nothing. */
export type Release = () => void;

export type Semaphore = Readonly<{
  /**
   * Requests a permit.
   * @returns `undefined` when the queue is full; otherwise a promise of the permit, which the holder must release. The
   * promise rejects with the signal's reason when the signal is aborted first.
   */
  take: (signal: AbortSignal) => Promise<Release> | undefined;
  atWork: () => number;
  waiting: () => number;
}>;

type Waiter = Readonly<{ start: () => void }>;

/**
 * Creates a semaphore.
 *
 * @param atWorkMax - Maximum number of permits in use, 1 or more.
 * @param waitingMax - Maximum number of queued callers, 0 or more.
 */
export function createSemaphore(atWorkMax: number, waitingMax: number): Semaphore {
  const queue = new Set<Waiter>(); // in order of arrival; removal from the middle is cheap
  let atWork = 0;

  function begin(): Release {
    atWork += 1;
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      atWork -= 1;
      const [next] = queue;
      if (next !== undefined) {
        queue.delete(next);
        next.start();
      }
    };
  }

  function wait(signal: AbortSignal): Promise<Release> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        queue.delete(waiter);
        reject(signal.reason);
      };
      const waiter: Waiter = {
        start() {
          signal.removeEventListener("abort", leave);
          resolve(begin());
        },
      };
      signal.addEventListener("abort", leave, { once: true });
      queue.add(waiter);
    });
  }

  return {
    take(signal) {
      if (signal.aborted) return Promise.reject(signal.reason);
      if (atWork < atWorkMax) return Promise.resolve(begin());
      return queue.size < waitingMax ? wait(signal) : undefined;
    },
    atWork: () => atWork,
    waiting: () => queue.size,
  };
}
