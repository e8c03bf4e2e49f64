/**
 * Runs until a stop signal. The first signal shuts down gracefully, also during the start; the second ends at once.
 *
 * An error that nothing catches is logged, and the program goes on: each step on disk is whole or undone, and a request
 * that leads to a defect must not end the service of all others.
 * @module
 */
import { readFileSync } from "node:fs";
import { exitCodes } from "../app/complaints.ts";
import type { Closers } from "../lib/closers.ts";
import type { Log } from "../lib/log.ts";

const signals = ["SIGTERM", "SIGINT"] as const;

/** Time for a stopped start to notice the signal before its open parts are closed. Milliseconds. */
const openingMsMax = 1_000;

export type Running = Readonly<{ closers: Closers; log: Log }>;

export type StopOptions = Readonly<{
  /** Whether SIGHUP, as of a closed terminal, is a stop signal too, unless the parent ignores it as `nohup` does. */
  isHangupStop?: boolean;
}>;

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
  { isHangupStop = false }: StopOptions = {},
): Promise<number> {
  const stopped = firstSignal(isHangupStop);
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
 * SIGTERM, 130 for SIGINT). That of SIGHUP stays: a shell and the system may both send it for one closed terminal.
 * @returns The signal's name.
 */
function firstSignal(isHangupStop: boolean): Promise<string> {
  const first = Promise.withResolvers<string>();
  const listener = (name: string) => {
    for (const signal of signals) process.off(signal, listener);
    first.resolve(name);
  };
  for (const signal of signals) process.on(signal, listener);
  if (isHangupStop && !isHangupIgnored()) process.on("SIGHUP", listener);
  return first.promise;
}

/** Whether the parent has set SIGHUP to be ignored; false where the system does not tell. */
function isHangupIgnored(): boolean {
  try {
    const [, mask = "0"] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
    return (BigInt(`0x${mask}`) & 1n) === 1n; // bit 0 is signal 1
  } catch {
    return false; // only Linux has the file
  }
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
