/**
 * Running until the system says stop: the first signal ends in order, the second at once. A start ends as well.
 * @module
 */

import { exitCodes } from "../app/complaints.ts";
import type { Closers } from "../lib/closers.ts";
import type { Log } from "../lib/log.ts";

const signals = ["SIGTERM", "SIGINT"] as const;

/** How long a start that was ended may take to notice it, before what is open is closed under it. Milliseconds. */
const openingMsMax = 1_000;

/** What is closed in the end, and where it is said. */
export type Running = Readonly<{ closers: Closers; log: Log }>;

/**
 * Opens, and waits for the first signal; then closes everything.
 *
 * @param open - Opens what runs. Its signal is aborted when the start is to end: nothing may be waited for any more.
 * @returns The exit code. Of a start that was ended the process exits itself: what still opens would keep it alive.
 * @throws What `open` throws, when everything is closed.
 */
export async function runUntilStopped(
  { closers, log }: Running,
  open: (stop: AbortSignal) => Promise<void>,
): Promise<number> {
  const told = firstSignal();
  const stop = new AbortController();
  const opening = open(stop.signal);
  try {
    const signal = await Promise.race([opening.then(() => undefined), told]);
    if (signal === undefined) return await untilTold(told, { closers, log });
    log.info("stopping during the start", { signal });
  } catch (error) {
    await closers.closeAll();
    throw error;
  }
  stop.abort();
  // How the start fails now is of no use to anybody.
  await Promise.race([Promise.allSettled([opening]), Bun.sleep(openingMsMax)]);
  await closers.closeAll();
  process.exit(exitCodes.done);
}

/**
 * Listens for the first signal from now on, also while the program is still opening.
 *
 * From then on no signal is listened for: the system ends the process at a second one, whatever the process does at
 * that moment (exit status 143 for SIGTERM, 130 for SIGINT). @returns The signal's name.
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

async function untilTold(first: Promise<string>, { closers, log }: Running): Promise<number> {
  log.info("stopping", { signal: await first });
  await closers.closeAll();
  return exitCodes.done;
}
