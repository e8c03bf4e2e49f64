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

/** Waits for a signal, then closes everything. @returns The exit code. */
export async function untilTold(closers: Closers, log: Log): Promise<number> {
  const first = Promise.withResolvers<string>();
  const told = (signal: string) => first.resolve(signal);
  for (const signal of signals) process.once(signal, told);
  log.info("stopping", { signal: await first.promise });
  for (const signal of signals) process.once(signal, () => process.exit(endedAtOnce));
  await closers.closeAll();
  return exitCodes.done;
}
