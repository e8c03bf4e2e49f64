/**
 * Group commit: many writers share one wait for the disk.
 *
 * A synchronisation that has begun may have missed what was written since, so each caller waits for one that begins
 * after its call; at most one runs.
 * @module
 */

/** Resolves when all that was written before the call is on the disk. */
export type WaitForDisk = () => Promise<void>;

/**
 * Creates the shared wait.
 *
 * @param sync - Brings all that was written to the disk, off the event loop.
 */
export function createGroupSync(sync: () => Promise<void>): WaitForDisk {
  let running = false;
  let next: PromiseWithResolvers<void> | undefined;

  function start(): void {
    const waiters = next;
    if (waiters === undefined) return;
    next = undefined;
    running = true;
    sync()
      .then(waiters.resolve, waiters.reject)
      .finally(() => {
        running = false;
        start();
      });
  }

  return () => {
    next ??= Promise.withResolvers<void>();
    const { promise } = next;
    if (!running) start();
    return promise;
  };
}
