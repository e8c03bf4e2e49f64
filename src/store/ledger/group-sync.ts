/**
 * Group commit: several writers share one wait for the disk.
 *
 * A running synchronisation may miss later writes, so each caller waits for a synchronisation that begins
 * after its call; at most one runs.
 * @module
 */

/** Resolves when all writes before the call are on the disk. */
export type WaitForDisk = () => Promise<void>;

/**
 * Creates the shared wait.
 *
 * @param sync - Flushes all writes to the disk, off the event loop.
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
