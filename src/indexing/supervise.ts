/**
 * A loop that never stops for ever: runs a step again and again, waits longer after each failure, says why it
 * is not getting on.
 *
 * Work is taken at our own pace: `wake` only shortens the wait, it never runs a step
 * itself.
 * @module
 */
import { Failure } from "../failures.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { createRest } from "../lib/rest.ts";
import { type RetryPlan, retryWaitMs } from "../lib/retry.ts";
import { withDeadline } from "../lib/stop.ts";

/** How a loop is doing. Times are milliseconds since the Unix epoch. */
export type LoopStatus = Readonly<{
  /** False only after `close`. */
  running: boolean;
  /** Failures in a row; 0 while all is well. */
  failures: number;
  /** What the last failure said, in one line; undefined once a step has succeeded after it. */
  lastError: string | undefined;
  lastSuccessAt: number | undefined;
  /** When the step that runs now began; undefined between steps. */
  stepSince: number | undefined;
}>;

/** What a step says when it ends: `again` at once, `rest` for the loop's interval, or a rest of its own. */
export type StepOutcome = "again" | "rest" | Readonly<{ restMs: number }>;

/** What a loop is made of. */
export type LoopOptions = Readonly<{
  name: string;
  /** One step; must end soon after its signal fires. */
  step: (signal: AbortSignal) => Promise<StepOutcome>;
  /** Wait after `rest`, milliseconds. */
  intervalMs: number;
  /** Waits after failures; `attempts` is of no meaning here, there is no last one. */
  backoff: Omit<RetryPlan, "attempts">;
  /** A step that takes longer is aborted and counts as a failure, milliseconds. */
  stepTimeoutMs: number;
  clock: Clock;
  random: () => number;
  log: Log;
}>;

/** A running loop. */
export type Loop = Readonly<{
  /**
   * Ends the present wait, so that the next step begins now; while a step runs, the wait after it is skipped.
   */
  wake: () => void;
  status: () => LoopStatus;
  /** Aborts the step that runs and waits until it has ended. */
  close: () => Promise<void>;
}>;

/** Starts a loop; its first step begins at once. */
export function openLoop(options: LoopOptions): Loop {
  const { name, step, intervalMs, backoff, stepTimeoutMs, clock, random, log } = options;
  const closing = new AbortController();
  const rest = createRest(closing.signal);
  let status: LoopStatus = {
    running: true,
    failures: 0,
    lastError: undefined,
    lastSuccessAt: undefined,
    stepSince: undefined,
  };

  const succeed = () => {
    if (status.failures > 0) log.info(`${name} recovered`, { failures: status.failures });
    status = { ...status, failures: 0, lastError: undefined, lastSuccessAt: clock() };
  };

  const fail = (error: unknown): StepOutcome => {
    const failures = status.failures + 1;
    const restMs = retryWaitMs({ ...backoff, attempts: 1 }, failures, random);
    status = { ...status, failures, lastError: explainError(error) };
    log.warn(`${name} failed`, { error, failures, restMs });
    return { restMs };
  };

  const runStep = async (): Promise<StepOutcome> => {
    status = { ...status, stepSince: clock() };
    try {
      const outcome = await withDeadline(closing.signal, stepTimeoutMs, step);
      succeed();
      return outcome;
    } catch (error) {
      // What a step says while it is being closed is of no interest: it was told to end.
      return closing.signal.aborted ? "rest" : fail(error);
    } finally {
      status = { ...status, stepSince: undefined };
    }
  };

  const run = async () => {
    while (!closing.signal.aborted) {
      const outcome = await runStep();
      // A step that always says "again" must not keep the event loop from everything else.
      if (outcome === "again") await Bun.sleep(0);
      else await rest.wait(outcome === "rest" ? intervalMs : outcome.restMs);
    }
    status = { ...status, running: false };
  };
  const ended = run();

  return {
    wake: rest.end,
    status: () => status,
    close: async () => {
      closing.abort(new Error(`${name} is closing`));
      await ended;
    },
  };
}

/**
 * Says what an error is: its message, the context of a failure, and the same of its causes.
 *
 * @returns One line, for status pages and reasons; never for a caller of the gateway.
 */
export function explainError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const context =
    error instanceof Failure && Object.keys(error.context).length > 0
      ? ` ${JSON.stringify(error.context, writable)}`
      : "";
  const cause = error.cause === undefined ? "" : ` (${explainError(error.cause)})`;
  return `${error.message}${context}${cause}`;
}

/** Offsets in the weave are beyond what JSON's numbers hold. */
function writable(_name: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}
