/**
 * Waiting that ends: by a signal, by a deadline, whichever is first. Nothing here keeps a timer or a listener after
 * it ends.
 * @module
 */

/** The error's name when a deadline ended the wait, as `AbortSignal.timeout` has it. */
const timeoutName = "TimeoutError";

/** Whether an error says that a deadline of {@link withDeadline} (or of `AbortSignal.timeout`) passed. */
export function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === timeoutName;
}

/**
 * Waits.
 *
 * @param ms - Milliseconds, 0 or more.
 * @param signal - Ends the wait early.
 * @throws The signal's reason when it is aborted.
 */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}

/**
 * Runs work under a signal of its own, which is aborted with the parent or when time is up.
 *
 * @param parent - The caller's signal.
 * @param ms - Milliseconds until the work's signal is aborted with a `TimeoutError`.
 * @param work - Must heed its signal: it is waited for.
 */
export async function withDeadline<Value>(
  parent: AbortSignal,
  ms: number,
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const own = linkedController(parent);
  const timer = setTimeout(() => own.controller.abort(timeout(ms)), ms);
  try {
    return await work(own.controller.signal);
  } finally {
    clearTimeout(timer);
    own.unlink();
  }
}

/** A controller that is aborted with the first of its parents. `unlink` must be called when it is no longer needed. */
export function linkedController(
  ...parents: readonly AbortSignal[]
): Readonly<{ controller: AbortController; unlink: () => void }> {
  const controller = new AbortController();
  const links = parents.map((parent) => {
    const stop = () => controller.abort(parent.reason);
    if (parent.aborted) stop();
    else parent.addEventListener("abort", stop, { once: true });
    return { parent, stop };
  });
  return {
    controller,
    unlink: () => {
      for (const { parent, stop } of links) parent.removeEventListener("abort", stop);
    },
  };
}

/**
 * Waits for a promise no longer than a signal lets it. The promise goes on; its late failure is not an unhandled one.
 *
 * @throws The signal's reason when it is aborted first.
 */
export function untilStopped<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) {
      ignoreRejection(promise);
      return stop();
    }
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** Lets a promise fail without being an unhandled failure: nobody waits for it, or who does hears of it there. */
export function ignoreRejection(promise: Promise<unknown>): void {
  promise.then(undefined, () => undefined);
}

/** The error with which a deadline ends a wait. */
export function timeout(ms: number): DOMException {
  return new DOMException(`nothing within ${ms} ms`, timeoutName);
}
