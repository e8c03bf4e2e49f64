/**
 * Requests to several sources of one kind: the better sources first, the next one early when a source is slow. Their
 * responses are checked, and sources with false responses or faults receive fewer requests.
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { fault } from "../lib/http-client.ts";
import type { Log } from "../lib/log.ts";
import type { NodeResponse } from "./node.ts";
import { askInOrder, createRanking, type SourceStatus, summarize } from "./nodes.ts";

/** @param random - in [0, 1). */
export type SourceParts = Readonly<{ clock: Clock; random: () => number; log: Log }>;

/** Several sources. */
export type Sources<Source> = Readonly<{
  /**
   * Sends a request to source after source until a response passes its check.
   *
   * @param question - The request. A fault counts against the source.
   * @param check - Converts a response into the value. Fault `wrong`: the response is false. Fault `absent`: the
   *   response names content that cannot be found. Both count against the source; other faults do not.
   * @returns The value; otherwise the summary of the responses ({@link summarize}); `absent` without a source.
   */
  ask: <Said, Value>(
    question: (source: Source, signal: AbortSignal) => Promise<NodeResponse<Said>>,
    check: (said: Said, signal: AbortSignal) => Promise<NodeResponse<Value>>,
    signal: AbortSignal,
  ) => Promise<NodeResponse<Value>>;
  /** Notes that a source did not give what it had announced. */
  noteFault: (source: Source) => void;
  sourceStatus: (source: Source) => SourceStatus;
}>;

/** Joins sources. @param sources - Those of a lower priority are asked first, unless they rest. */
export function createSources<Source extends Readonly<{ url: string; priority?: number }>>(
  sources: readonly Source[],
  { clock, random, log }: SourceParts,
): Sources<Source> {
  const ranking = createRanking(sources, clock, random);

  function inOrder(): readonly Source[] {
    const now = clock();
    const placed = ranking.inOrder().map((source) => {
      const rests = ranking.sourceStatus(source).restsUntil > now;
      return { source, rests, priority: rests ? 0 : (source.priority ?? 0) };
    });
    // Sorting is stable: equals stay in the order of the ranking, and those that rest stay last.
    placed.sort((a, b) => Number(a.rests) - Number(b.rests) || a.priority - b.priority);
    return placed.map(({ source }) => source);
  }

  async function askOne<Said, Value>(
    source: Source,
    question: (source: Source, signal: AbortSignal) => Promise<NodeResponse<Said>>,
    check: (said: Said, signal: AbortSignal) => Promise<NodeResponse<Value>>,
    signal: AbortSignal,
  ): Promise<NodeResponse<Value>> {
    const startedAt = performance.now();
    const said = await question(source, signal);
    if (said.kind === "fault") {
      if (said.reason === "wrong") noteWrong(source, said.detail);
      else if (said.reason !== "busy") ranking.noteFault(source);
      return said;
    }
    ranking.noteResponse(source, performance.now() - startedAt);
    if (said.kind !== "ok") return said;
    const checked = await check(said.value, signal);
    if (checked.kind === "fault" && checked.reason === "wrong") noteWrong(source, checked.detail);
    if (checked.kind !== "absent") return checked;
    ranking.noteFault(source);
    return fault("status", `${source.url} names what cannot be found`);
  }

  function noteWrong(source: Source, detail: string): void {
    ranking.noteWrong(source);
    log.warn("a source said what is not true", { source: source.url, detail });
  }

  return {
    async ask(question, check, signal) {
      const { final, others } = await askInOrder(
        {
          sources: inOrder(),
          ask: (source, own) => askOne(source, question, check, own),
          isFinal: ({ kind }) => kind === "ok",
          hedgeAfterMs: ranking.hedgeAfterMs,
          onOutrun: ranking.noteOutrun,
        },
        signal,
      );
      return final ?? (others.length > 0 ? summarize(others) : { kind: "absent" });
    },
    noteFault: ranking.noteFault,
    sourceStatus: ranking.sourceStatus,
  };
}
