/**
 * Turns: a bounded number at work, a bounded number waiting, first come first served.
 * @module
 */

/** Gives a turn back. Calling it twice does nothing more. */
export type Release = () => void;

/** A line with a counter behind which a bounded number are served. */
export type Semaphore = Readonly<{
  /**
   * Asks for a turn.
   * @returns undefined at once when the line is full; else a promise of the turn, which the holder must end.
   * The promise rejects with the signal's reason when that is aborted before the turn came.
   */
  take: (signal: AbortSignal) => Promise<Release> | undefined;
  atWork: () => number;
  waiting: () => number;
}>;

type Waiter = Readonly<{ start: () => void }>;

/**
 * Makes a line.
 *
 * @param atWorkMax - Turns held at once, 1 or more.
 * @param waitingMax - Callers in line, 0 or more.
 */
export function createSemaphore(atWorkMax: number, waitingMax: number): Semaphore {
  const line = new Set<Waiter>(); // in order of arrival; leaving the middle costs nothing
  let atWork = 0;

  function begin(): Release {
    atWork += 1;
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      atWork -= 1;
      const [next] = line;
      if (next !== undefined) {
        line.delete(next);
        next.start();
      }
    };
  }

  function wait(signal: AbortSignal): Promise<Release> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        line.delete(waiter);
        reject(signal.reason);
      };
      const waiter: Waiter = {
        start() {
          signal.removeEventListener("abort", leave);
          resolve(begin());
        },
      };
      signal.addEventListener("abort", leave, { once: true });
      line.add(waiter);
    });
  }

  return {
    take(signal) {
      if (signal.aborted) return Promise.reject(signal.reason);
      if (atWork < atWorkMax) return Promise.resolve(begin());
      return line.size < waitingMax ? wait(signal) : undefined;
    },
    atWork: () => atWork,
    waiting: () => line.size,
  };
}
