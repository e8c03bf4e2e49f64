/**
 * Asking several sources one question: one after the other, the next one early when one is slow, until one has it.
 * @module
 */
import { linkedController } from "../lib/stop.ts";
import type { NodeResponse } from "./node.ts";

/** A question to several sources. */
export type Question<Source, Result> = Readonly<{
  /** In the order in which to ask them. */
  sources: readonly Source[];
  /** Must heed its signal, which is aborted when another source was sooner. */
  ask: (source: Source, signal: AbortSignal) => Promise<Result>;
  /** Whether an answer ends the asking. */
  isFinal: (response: Result) => boolean;
  /** How long to wait for a source before the next one is asked as well. Milliseconds. */
  hedgeAfterMs: (source: Source) => number;
  /** Told of each source that took longer than that, and that another one was sooner than. */
  onOutrun?: (source: Source) => void;
}>;

/** The final answer, if there was one, and those that were not final, in the order in which they came. */
export type Asked<Result> = Readonly<{ final: Result | undefined; others: readonly Result[] }>;

/**
 * Asks until an answer is final or every source has answered.
 *
 * @throws The signal's reason; what `ask` throws of itself.
 */
export async function askInOrder<Source, Result>(
  question: Question<Source, Result>,
  signal: AbortSignal,
): Promise<Asked<Result>> {
  const own = linkedController(signal);
  try {
    return await run(question, own.controller.signal);
  } finally {
    own.unlink();
    own.controller.abort(new DOMException("another source was sooner", "AbortError"));
  }
}

function run<Source, Result>(question: Question<Source, Result>, signal: AbortSignal): Promise<Asked<Result>> {
  const { sources, ask, isFinal, hedgeAfterMs, onOutrun } = question;
  const others: Result[] = [];
  const asking = new Map<Source, number>(); // since when
  let next = 0;
  let timer: Timer | undefined;
  return new Promise((resolve, reject) => {
    const end = (final: Result | undefined) => {
      clearTimeout(timer);
      const now = performance.now();
      for (const [source, since] of asking) if (now - since >= hedgeAfterMs(source)) onOutrun?.(source);
      resolve({ final, others });
    };
    const fail = (error: unknown) => {
      clearTimeout(timer);
      reject(error);
    };
    const askNext = () => {
      clearTimeout(timer);
      const source = sources[next];
      if (source === undefined) return asking.size === 0 ? end(undefined) : undefined;
      next += 1;
      asking.set(source, performance.now());
      ask(source, signal).then((response) => {
        asking.delete(source);
        if (isFinal(response)) return end(response);
        others.push(response);
        askNext();
      }, fail);
      if (next < sources.length) timer = setTimeout(askNext, hedgeAfterMs(source));
    };
    askNext();
  });
}

/**
 * What several answers that have no value amount to. That something is absent is believed only when nobody was in
 * trouble; a time-out is told from other trouble only when there was nothing else.
 */
export function summarize<Value>(responses: readonly NodeResponse<Value>[]): NodeResponse<Value> {
  const faults = responses.filter((response) => response.kind === "trouble");
  const found =
    responses.find(({ kind }) => kind === "ok" || kind === "pending") ??
    faults.find(({ reason }) => reason !== "timeout") ??
    faults[0] ??
    responses.find(({ kind }) => kind === "refused") ??
    responses[0];
  return found ?? { kind: "trouble", reason: "connect", detail: "there is no source" };
}
