/**
 * The rest that a loop takes between two rounds: for a time, or until there is a reason for the next round.
 * @module
 */

/** A rest; one loop's. */
export type Rest = Readonly<{
  /** Waits, one at a time. @param ms - Milliseconds, 0 or more. Never rejects. */
  wait: (ms: number) => Promise<void>;
  /** Ends the wait; while nobody waits, the next one. */
  end: () => void;
}>;

/** Creates it. @param signal - Ends every wait; to be aborted once the loop is over. */
export function createRest(signal: AbortSignal): Rest {
  let finish: (() => void) | undefined;
  let isEnded = false;
  const end = () => {
    isEnded = true;
    finish?.();
  };
  signal.addEventListener("abort", end, { once: true });

  const wait = async (ms: number): Promise<void> => {
    if (!isEnded && !signal.aborted)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        finish = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    finish = undefined;
    isEnded = false;
  };
  return { wait, end };
}
