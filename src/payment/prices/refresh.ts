/**
 * A value of the outside world, asked for again and again in the background, so that those who need it find it there.
 *
 * Nobody's request asks the outside world: a caller waits for the attempt under way at most, or has the rest between
 * two attempts cut short where the last one is some time ago.
 * @module
 */
import type { Log } from "../../lib/log.ts";
import { type RetryPlan, retryWaitMs } from "../../lib/retry.ts";
import { ignoreRejection, isTimeout, untilStopped, withDeadline } from "../../lib/stop.ts";

/** What is asked for, and how often. */
export type RefreshOptions = Readonly<{
  /** For the log. */
  name: string;
  /** Makes one attempt and keeps what it found; must heed its signal. What it throws is logged, once an outage. */
  ask: (signal: AbortSignal) => Promise<void>;
  /** Rest after an attempt that succeeded. Milliseconds. */
  everyMs: number;
  /** Longest that one attempt may take. Milliseconds. */
  timeoutMs: number;
  /** Attempts that callers may bring about are at least so far apart. Milliseconds; five seconds unless told. */
  wokenEveryMs?: number;
  /** In [0, 1). */
  random: () => number;
  log: Log;
}>;

/** Attempts that go on until they are closed. */
export type Refresh = Readonly<{
  /**
   * Waits for the attempt under way; begins one that would be due later, but not more often than `wokenEveryMs`.
   * Returns at once after a failure.
   * @throws The signal's reason.
   */
  settled: (signal: AbortSignal) => Promise<void>;
  /** Ends the attempt under way, and all further ones. */
  close: () => Promise<void>;
}>;

/** Waits after failures: soon at first, then as often as a source in trouble can be asked. */
const afterFailure: RetryPlan = { attempts: 1, firstMs: 1_000, longestMs: 30_000 };

const wokenEveryMsDefault = 5_000;

/** Begins the attempts; the first is under way when this returns. */
export function openRefresh(options: RefreshOptions): Refresh {
  const { name, ask, everyMs, timeoutMs, wokenEveryMs = wokenEveryMsDefault, random, log } = options;
  const life = new AbortController();
  let failed = 0; // attempts in a row
  let startedAt = 0;
  let underWay: Promise<void> | undefined;
  let timer: Timer | undefined;

  const tryOnce = async (): Promise<void> => {
    startedAt = performance.now();
    try {
      // Work that does not heed its signal is left behind: it must not keep all later attempts from being made.
      await withDeadline(life.signal, timeoutMs, (own) => untilStopped(ask(own), own));
      if (failed > 0) log.info("a price can be had again", { source: name, failed });
      failed = 0;
    } catch (error) {
      if (life.signal.aborted) return; // closed: nobody wants to know
      failed += 1;
      const facts = { source: name, ...(isTimeout(error) ? { timeoutMs } : { error }) };
      if (failed === 1) log.warn("a price cannot be had; the last one is used while it may be", facts);
      else log.debug("a price still cannot be had", facts);
    }
  };

  /** Joins the attempt under way, or makes one; the next one is made when its time has come. */
  const attempt = (): Promise<void> => {
    clearTimeout(timer);
    underWay ??= tryOnce().finally(() => {
      underWay = undefined;
      if (life.signal.aborted) return;
      const restMs = failed === 0 ? everyMs : retryWaitMs(afterFailure, failed, random);
      timer = setTimeout(() => ignoreRejection(attempt()), restMs);
    });
    return underWay;
  };
  ignoreRejection(attempt());

  return {
    settled: async (signal) => {
      const isDue = failed === 0 && performance.now() - startedAt >= wokenEveryMs;
      const pending = underWay ?? (isDue && !life.signal.aborted ? attempt() : undefined);
      if (pending !== undefined) await untilStopped(pending, signal);
    },
    close: async () => {
      life.abort(new DOMException("prices were closed", "AbortError"));
      clearTimeout(timer);
      await underWay;
    },
  };
}
