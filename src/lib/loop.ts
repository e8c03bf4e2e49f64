/**
 * Background loops. Rounds never overlap: `wake` only shortens the wait between two rounds, so the loop sets the pace
 * of its work.
 * @module
 */
import { explainError } from "../failures.ts";
import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";
import { type RetryPlan, retryWaitMs } from "./retry.ts";
import { withDeadline } from "./stop.ts";

export type BackgroundLoop = Readonly<{
  /** Ends the current wait, so that the next round starts now. During a round, the wait after it is skipped. */
  wake: () => void;
  /** Aborts the current round and resolves when it has ended. */
  close: () => Promise<void>;
}>;

/**
 * Wait before the first round, unless the loop is woken. Most loops are opened with the program, whose first responses
 * their work would delay: the binary responds a sixth sooner (measured). Milliseconds.
 */
const firstRoundAfterMs = 50;

/**
 * Runs rounds one after another until `close`. The first round starts a moment later.
 *
 * @param name - Name of the loop in the reason of its abort.
 * @param round - Must end soon after its signal is aborted. Returns the wait before the next round, milliseconds.
 * @param onError - Receives the error of a round, unless the loop is closing, and returns the wait as `round` does.
 */
export function openBackgroundLoop(
  name: string,
  round: (signal: AbortSignal) => Promise<number>,
  onError: (error: unknown) => number,
): BackgroundLoop {
  const life = new AbortController();
  const idle = createIdleWait(life.signal);

  const runRound = async (): Promise<number> => {
    try {
      return await round(life.signal);
    } catch (error) {
      return life.signal.aborted ? 0 : onError(error);
    }
  };
  const run = async () => {
    await idle.wait(firstRoundAfterMs);
    while (!life.signal.aborted) {
      const waitMs = await runRound();
      // Even without a wait, the event loop serves requests between two rounds.
      if (waitMs <= 0) await Bun.sleep(0);
      else await idle.wait(waitMs);
    }
  };
  const ended = run();

  return {
    wake: idle.end,
    close: () => {
      life.abort(new DOMException(`${name}: closed`, "AbortError"));
      return ended;
    },
  };
}

/** The status of a supervised loop. Times are milliseconds since the Unix epoch. */
export type LoopStatus = Readonly<{
  /** False only after `close`. */
  running: boolean;
  /** Consecutive failures; 0 after a success. */
  failures: number;
  /** The last failure in one line; `undefined` after a success. */
  lastError: string | undefined;
  lastSuccessAt: number | undefined;
  /** Start of the current step; `undefined` between steps. */
  stepSince: number | undefined;
}>;

/** The wait after a step: none for `again`, the loop's interval for `rest`, or a given time. */
export type StepOutcome = "again" | "rest" | Readonly<{ restMs: number }>;

export type LoopOptions = Readonly<{
  name: string;
  /** Performs one step; must end soon after its signal is aborted. */
  step: (signal: AbortSignal) => Promise<StepOutcome>;
  /** Wait after `rest`, milliseconds. */
  intervalMs: number;
  /** Waits after failures, by default 1 s to 1 min. The number of attempts is unlimited. */
  backoff?: Omit<RetryPlan, "attempts">;
  /** A longer step is aborted and counts as a failure; milliseconds, by default 10 min. */
  stepTimeoutMs?: number;
  clock: Clock;
  random: () => number;
  log: Log;
}>;

export type Loop = BackgroundLoop & Readonly<{ status: () => LoopStatus }>;

/** Starts a loop that survives failures: it logs each failure, reports it in its status, and backs off. */
export function openLoop(options: LoopOptions): Loop {
  const { name, step, intervalMs, clock, random, log } = options;
  const { backoff = { firstMs: 1_000, longestMs: 60_000 }, stepTimeoutMs = 10 * 60_000 } = options;
  let status: LoopStatus = {
    running: true,
    failures: 0,
    lastError: undefined,
    lastSuccessAt: undefined,
    stepSince: undefined,
  };

  const runStep = async (signal: AbortSignal): Promise<number> => {
    status = { ...status, stepSince: clock() };
    try {
      const outcome = await withDeadline(signal, stepTimeoutMs, step);
      if (status.failures > 0) log.info(`${name} recovered`, { failures: status.failures });
      status = { ...status, failures: 0, lastError: undefined, lastSuccessAt: clock() };
      if (outcome === "again") return 0;
      return outcome === "rest" ? intervalMs : outcome.restMs;
    } finally {
      status = { ...status, stepSince: undefined };
    }
  };
  const loop = openBackgroundLoop(name, runStep, (error) => {
    const failures = status.failures + 1;
    const restMs = retryWaitMs({ ...backoff, attempts: 1 }, failures, random);
    status = { ...status, failures, lastError: explainError(error) };
    log.warn(`${name} failed`, { error, failures, restMs });
    return restMs;
  });

  return {
    wake: loop.wake,
    status: () => status,
    close: async () => {
      await loop.close();
      status = { ...status, running: false };
    },
  };
}

/** The wait between two rounds of one loop. */
export type IdleWait = Readonly<{
  /** Waits, at most 24 days; one caller at a time. @param ms - Milliseconds, 0 or more. Never rejects. */
  wait: (ms: number) => Promise<void>;
  /** Ends the current wait, or the next wait if none is running. */
  end: () => void;
}>;

/** The runtime ends a timer of more milliseconds after one. */
const waitMsMax = 2 ** 31 - 1;

/** @param signal - Ends the current wait and all later waits. */
export function createIdleWait(signal: AbortSignal): IdleWait {
  let finish: (() => void) | undefined;
  let isEnded = false;
  const end = () => {
    isEnded = true;
    finish?.();
  };
  signal.addEventListener("abort", end, { once: true });

  const wait = async (ms: number): Promise<void> => {
    if (!isEnded && !signal.aborted)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(ms, waitMsMax));
        finish = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    finish = undefined;
    isEnded = false;
  };
  return { wait, end };
}
