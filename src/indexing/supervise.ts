/**
 * A loop that never stops for ever: runs a step again and again, waits longer after each failure, says why it is not
 * getting on.
 *
 * Work is taken at our own pace (style.md rule 9): `wake` only shortens the wait, it never runs a step itself.
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { type BackoffRule, backoffMs, type Chance } from "./backoff.ts";

/** Where a line about indexing goes. */
export type Log = (
  level: "debug" | "info" | "warn" | "error",
  message: string,
  facts: Readonly<Record<string, unknown>>,
) => void;

/** How a loop is doing. Times are milliseconds since the Unix epoch. */
export type LoopStatus = Readonly<{
  /** False only before the start and after `close`. */
  running: boolean;
  /** Failures in a row; 0 while all is well. */
  failures: number;
  /** What the last failure said; undefined once a step has succeeded after it. */
  lastError: string | undefined;
  lastSuccessAt: number | undefined;
  /** When the step that runs now began; undefined between steps. */
  stepSince: number | undefined;
}>;

/** What a step says when it ends: `again` at once, or `rest` for the loop's interval or the given wait. */
export type StepOutcome = "again" | "rest" | Readonly<{ restMs: number }>;

/** What a loop is made of. */
export type LoopOptions = Readonly<{
  name: string;
  /** One step; must end soon after its signal fires. */
  step: (signal: AbortSignal) => Promise<StepOutcome>;
  /** Wait after `rest`, milliseconds. */
  intervalMs: number;
  backoff: BackoffRule;
  /** A step that takes longer is aborted and counts as a failure, milliseconds. */
  stepTimeoutMs: number;
  clock: Clock;
  chance: Chance;
  log: Log;
}>;

/** A running loop. */
export type Loop = Readonly<{
  /** Ends the present wait, so that the next step begins now. */
  wake: () => void;
  status: () => LoopStatus;
  /** Aborts the step that runs and waits until it has ended. */
  close: () => Promise<void>;
}>;

/** Starts a loop; its first step begins at once. */
export function openLoop(options: LoopOptions): Loop {
  const { name, step, intervalMs, backoff, stepTimeoutMs, clock, chance, log } = options;
  const closing = new AbortController();
  const rest = createRest(closing.signal);
  const state = {
    running: true,
    failures: 0,
    lastError: undefined as string | undefined,
    lastSuccessAt: undefined as number | undefined,
    stepSince: undefined as number | undefined,
  };

  const runStep = async (): Promise<StepOutcome> => {
    const deadline = AbortSignal.timeout(stepTimeoutMs);
    state.stepSince = clock();
    try {
      const outcome = await step(AbortSignal.any([closing.signal, deadline]));
      if (state.failures > 0) log("info", `${name} recovered`, { failures: state.failures });
      state.failures = 0;
      state.lastError = undefined;
      state.lastSuccessAt = clock();
      return outcome;
    } catch (error) {
      if (closing.signal.aborted) return "rest";
      state.failures += 1;
      state.lastError = explainError(error);
      const restMs = backoffMs(backoff, state.failures, chance);
      log("warn", `${name} failed`, { error: state.lastError, failures: state.failures, restMs });
      return { restMs };
    } finally {
      state.stepSince = undefined;
    }
  };

  const run = async () => {
    while (!closing.signal.aborted) {
      const outcome = await runStep();
      // A step that always says "again" must not keep the event loop from everything else.
      if (outcome === "again") await Bun.sleep(0);
      else await rest.wait(outcome === "rest" ? intervalMs : outcome.restMs);
    }
    state.running = false;
  };
  const ended = run();

  return {
    wake: rest.end,
    status: () => ({ ...state }),
    close: async () => {
      closing.abort(new Error(`${name} is closing`));
      await ended;
    },
  };
}

/**
 * Says what an error is for a person: its message, the facts of a failure, and the message of its cause.
 *
 * @returns One line.
 */
export function explainError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const facts = "facts" in error ? error.facts : undefined;
  const reason =
    typeof facts === "object" && facts !== null && Object.keys(facts).length > 0
      ? ` ${JSON.stringify(facts)}`
      : "";
  const cause = error.cause === undefined ? "" : ` (${explainError(error.cause)})`;
  return `${error.message}${reason}${cause}`;
}

/** One wait at a time, ended early by `end` or by the signal; an `end` while nobody waits ends the next wait. */
function createRest(signal: AbortSignal) {
  let wake: (() => void) | undefined;
  let woken = false;
  const end = () => {
    woken = true;
    wake?.();
  };
  signal.addEventListener("abort", end, { once: true });
  const wait = async (ms: number): Promise<void> => {
    if (!woken && !signal.aborted)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    wake = undefined;
    woken = false;
  };
  return { wait, end };
}
