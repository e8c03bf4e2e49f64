/**
 * Waits that end with a signal or at a deadline. They release their timers and listeners when they end.
 *
 * `AbortSignal.any` and `AbortSignal.timeout` do not: in Bun 1.4.5 each of their signals takes 1 KB until its source is
 * aborted (measured), and most sources here live as long as the process.
 * @module
 */
import { setTimeout as resolveAfter } from "node:timers/promises";

/** Name of the error of a passed deadline; the same as that of `AbortSignal.timeout`. */
const timeoutName = "TimeoutError";

/** Whether an error reports a passed deadline of {@link withDeadline} or of `AbortSignal.timeout`. */
export function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === timeoutName;
}

/** @param ms - 0 or more. @throws The reason of the signal when it is aborted. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await resolveAfter(ms, undefined, { signal });
  } catch {
    throw signal.reason; // the promise of Node.js rejects with an error of its own
  }
}

/**
 * Runs work with a signal that is aborted with the parent, or with a `TimeoutError` at the deadline.
 *
 * @param ms - Time until the deadline.
 * @param work - Must end soon after its signal is aborted: this function waits for it.
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

/** Creates a controller that is aborted with the first of its parents. The caller must call `unlink` in the end. */
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
 * Waits for a promise until the signal is aborted. The work behind the promise continues; a later rejection is ignored.
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

/** Marks a rejection as handled: the caller does not need it, or receives it in another place. */
export function ignoreRejection(promise: Promise<unknown>): void {
  promise.then(undefined, () => undefined);
}

/** Creates the error of a passed deadline. */
export function timeout(ms: number): DOMException {
  return new DOMException(`nothing within ${ms} ms`, timeoutName);
}
