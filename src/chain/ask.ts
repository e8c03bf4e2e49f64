/**
 * Asking several sources one question: one after the other, the next one early when one is slow, until one has it.
 * @module
 */
import { linkedController } from "../lib/stop.ts";
import type { NodeAnswer } from "./node.ts";

/** A question to several sources. */
export type Question<Source, Answer> = Readonly<{
  /** In the order in which to ask them. */
  sources: readonly Source[];
  /** Must heed its signal, which is aborted when another source was sooner. */
  ask: (source: Source, signal: AbortSignal) => Promise<Answer>;
  /** Whether an answer ends the asking. */
  isFinal: (answer: Answer) => boolean;
  /** How long to wait for a source before the next one is asked as well. Milliseconds. */
  hedgeAfterMs: (source: Source) => number;
  /** Told of each source that took longer than that, and that another one was sooner than. */
  onOutrun?: (source: Source) => void;
}>;

/** The final answer, if there was one, and those that were not final, in the order in which they came. */
export type Asked<Answer> = Readonly<{ final: Answer | undefined; others: readonly Answer[] }>;

/**
 * Asks until an answer is final or every source has answered.
 *
 * @throws The signal's reason; what `ask` throws of itself.
 */
export async function askInTurn<Source, Answer>(
  question: Question<Source, Answer>,
  signal: AbortSignal,
): Promise<Asked<Answer>> {
  const own = linkedController(signal);
  try {
    return await run(question, own.controller.signal);
  } finally {
    own.unlink();
    own.controller.abort(new DOMException("another source was sooner", "AbortError"));
  }
}

function run<Source, Answer>(
  question: Question<Source, Answer>,
  signal: AbortSignal,
): Promise<Asked<Answer>> {
  const { sources, ask, isFinal, hedgeAfterMs, onOutrun } = question;
  const others: Answer[] = [];
  const asking = new Map<Source, number>(); // since when
  let next = 0;
  let timer: Timer | undefined;
  return new Promise((resolve, reject) => {
    const end = (final: Answer | undefined) => {
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
      ask(source, signal).then((answer) => {
        asking.delete(source);
        if (isFinal(answer)) return end(answer);
        others.push(answer);
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
export function summarize<Value>(answers: readonly NodeAnswer<Value>[]): NodeAnswer<Value> {
  const troubles = answers.filter((answer) => answer.kind === "trouble");
  const found =
    answers.find(({ kind }) => kind === "ok" || kind === "pending") ??
    troubles.find(({ reason }) => reason !== "timeout") ??
    troubles[0] ??
    answers.find(({ kind }) => kind === "refused") ??
    answers[0];
  return found ?? { kind: "trouble", reason: "connect", detail: "there is no source" };
}
