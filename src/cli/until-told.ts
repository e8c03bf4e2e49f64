/**
 * Running until the system says stop: the first signal ends in order, the second at once.
 * @module
 */
import type { Closers } from "../lib/closers.ts";
import type { Log } from "../lib/log.ts";
import { exitCodes } from "./complaints.ts";

const signals = ["SIGTERM", "SIGINT"] as const;

/** Exit code of a program that a second signal ended: 128 and the number of SIGTERM. */
const endedAtOnce = 143;

/** Listens for the first signal from now on, also while the program is still opening. @returns The signal's name. */
export function firstSignal(): Promise<string> {
  const first = Promise.withResolvers<string>();
  for (const signal of signals) process.once(signal, (name) => first.resolve(name));
  return first.promise;
}

/** Waits for the first signal, then closes everything. @returns The exit code. */
export async function untilTold(first: Promise<string>, closers: Closers, log: Log): Promise<number> {
  log.info("stopping", { signal: await first });
  for (const signal of signals) process.once(signal, () => process.exit(endedAtOnce));
  await closers.closeAll();
  return exitCodes.done;
}
