/**
 * The end of what has expired: gives back, again and again, what abandoned reservations and expired approvals hold.
 *
 * Nobody waits for it: approvals cannot be spent from their expiry on, and count as given back, whether it has
 * come by or not.
 * @module
 */
import type { Log } from "../../lib/log.ts";
import { sleep } from "../../lib/stop.ts";
import type { Credits } from "./credits.ts";

/** What expires, and how often. */
export type ExpiryOptions = Readonly<{
  credits: Pick<Credits, "expire">;
  /** Rest between two rounds. Milliseconds. */
  everyMs: number;
  log: Log;
}>;

/** Rounds that go on until they are closed. */
export type Expiry = Readonly<{
  /** Ends the round under way after its transaction, and all further ones. */
  close: () => Promise<void>;
}>;

/** Begins the rounds; the first is under way when this returns. A round that fails is logged, the next tries again. */
export function openExpiry({ credits, everyMs, log }: ExpiryOptions): Expiry {
  const life = new AbortController();
  const { signal } = life;

  const round = async (): Promise<void> => {
    try {
      const ended = await credits.expire(signal);
      if (ended > 0) log.debug("gave back what expired", { ended });
    } catch (error) {
      log.warn("what expired was not given back; it will be tried again", { error });
    }
  };
  const isRested = (): Promise<boolean> =>
    sleep(everyMs, signal).then(
      () => true,
      () => false, // closed
    );
  const run = async (): Promise<void> => {
    do await round();
    while (await isRested());
  };
  const running = run();
  return {
    close: async () => {
      life.abort(new DOMException("the expiry was closed", "AbortError"));
      await running;
    },
  };
}
