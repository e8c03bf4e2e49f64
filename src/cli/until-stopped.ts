/**
 * Runs until a stop signal. The first signal shuts down gracefully, also during the start; the second ends at once.
 *
 * An error that nothing catches is logged, and the program goes on: each step on disk is whole or undone, and a request
 * that leads to a defect must not end the service of all others.
 * @module
 */
import { exitCodes } from "../app/complaints.ts";
import type { Closers } from "../lib/closers.ts";
import type { Log } from "../lib/log.ts";

const signals = ["SIGTERM", "SIGINT"] as const;

/** Time for a stopped start to notice the signal before its open parts are closed. Milliseconds. */
const openingMsMax = 1_000;

export type Running = Readonly<{ closers: Closers; log: Log }>;

/**
 * Opens the parts, waits for the first signal, and closes everything.
 *
 * @param open - Opens the parts. Its signal is aborted when the start must end.
 * @returns The exit code. A stopped start exits the process here: parts that are still opening would keep it alive.
 * @throws The error of `open`, after everything is closed.
 */
export async function runUntilStopped(
  { closers, log }: Running,
  open: (stop: AbortSignal) => Promise<void>,
): Promise<number> {
  const stopped = firstSignal();
  const stop = new AbortController();
  logDefects(log);
  const opening = open(stop.signal);
  try {
    const signal = await Promise.race([opening.then(() => undefined), stopped]);
    if (signal === undefined) return await untilStopped(stopped, { closers, log });
    log.info("stopping during the start", { signal });
  } catch (error) {
    await closers.closeAll();
    throw error;
  }
  stop.abort();
  // The result of the start is ignored from here on.
  await Promise.race([Promise.allSettled([opening]), Bun.sleep(openingMsMax)]);
  await closers.closeAll();
  process.exit(exitCodes.done);
}

/**
 * Waits for the first signal, also during the start.
 *
 * After the first signal the handlers are removed, so the system ends the process at a second one (exit status 143 for
 * SIGTERM, 130 for SIGINT). @returns The signal's name.
 */
function firstSignal(): Promise<string> {
  const first = Promise.withResolvers<string>();
  const listener = (name: string) => {
    for (const signal of signals) process.off(signal, listener);
    first.resolve(name);
  };
  for (const signal of signals) process.on(signal, listener);
  return first.promise;
}

/** Without this, the runtime prints a stack between the lines of the log, and the program stops with exit code 1. */
function logDefects(log: Log): void {
  const note = (error: unknown): void => log.error("defect", { error });
  process.on("uncaughtException", note);
  process.on("unhandledRejection", note);
}

async function untilStopped(first: Promise<string>, { closers, log }: Running): Promise<number> {
  log.info("stopping", { signal: await first });
  await closers.closeAll();
  return exitCodes.done;
}
