/**
 * Several nodes of the chain: which to ask first, and one question to as many of them as it takes.
 *
 * Asking several sources one question: one after the other, the next one early when one is slow, until one has it.
 *
 * Which of several sources to ask first: by how often and how fast they responded, with a backoff after a fault and
 * longer ones after untruth. Every source is asked some time, so that one that recovers is found.
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { fault } from "../lib/http-client.ts";
import type { Log } from "../lib/log.ts";
import { linkedController } from "../lib/stop.ts";
import type { Node, NodeResponse } from "./node.ts";

/** Why a value that a node gave is not true; undefined when it is. */
export type Check<Value> = (value: Value, node: Node) => string | undefined;

/** Several nodes. */
export type Nodes = Readonly<{
  /** Those it was made of. */
  all: readonly Node[];
  /**
   * The nodes in the order in which to ask them: better ones mostly first, then some of those that help out,
   * those with recent faults or false responses last.
   */
  inOrder: () => readonly Node[];
  /** Whether a node is in backoff after a fault or a false response. */
  rests: (node: Node) => boolean;
  /** Adds a node that the operator did not choose: its responses must be proven. */
  join: (node: Node) => void;
  /** Lets such a node go; it is closed by who opened it. */
  leave: (node: Node) => void;
  /**
   * Asks nodes until one responds with a value that passes its check; the next one also when one is slow. A
   * call may check for itself and return fault `wrong`: the node is then distrusted.
   * @param among - Which nodes are asked; by default all.
   * @returns The value; else `pending`, a fault if any node had one, a rejection, or `absent` when all say so.
   */
  ask: <Value>(
    call: (node: Node, signal: AbortSignal) => Promise<NodeResponse<Value>>,
    signal: AbortSignal,
    check?: Check<Value>,
    among?: (node: Node) => boolean,
  ) => Promise<NodeResponse<Value>>;
  /** Notes that a node said something that is provably not true. */
  distrust: (node: Node, reason: string) => void;
  /** Notes how a node did that was asked otherwise than through `ask`. */
  noteResponse: (node: Node, ms: number) => void;
  noteFault: (node: Node) => void;
  /** Of all, also of those that help out. */
  sourceStatus: () => readonly (SourceStatus & Readonly<{ url: string }>)[];
  /** Ends every call under way. */
  close: () => void;
}>;

/** Nodes that help out with one question: strangers may be slow by intent, and each costs a wait. */
const helpersAskedMax = 5;

/** Joins nodes. @param random - in [0, 1). */
export function createNodes(
  all: readonly Node[],
  parts: Readonly<{ clock: Clock; random: () => number; log: Log }>,
): Nodes {
  const { clock, random, log } = parts;
  const ranking = createRanking(all, clock, random);
  const helpers = new Set<Node>();

  const rests = (node: Node): boolean => ranking.sourceStatus(node).restsUntil > clock();

  function inOrder(): readonly Node[] {
    const ordered = ranking.inOrder();
    if (helpers.size === 0) return ordered;
    const own = ordered.filter((node) => !helpers.has(node));
    const helping = ordered.filter((node) => helpers.has(node)).slice(0, helpersAskedMax);
    return [...own.filter((node) => !rests(node)), ...helping, ...own.filter(rests)];
  }

  function distrust(node: Node, reason: string): void {
    ranking.noteWrong(node);
    log.warn("a node said what is not true", { node: node.url, reason });
  }

  /** Asks one node and notes how it did. */
  async function askOne<Value>(
    node: Node,
    call: (node: Node, signal: AbortSignal) => Promise<NodeResponse<Value>>,
    check: Check<Value>,
    signal: AbortSignal,
  ): Promise<NodeResponse<Value>> {
    const startedAt = performance.now();
    const response = await call(node, signal);
    if (response.kind === "fault") {
      if (response.reason === "wrong") distrust(node, response.detail);
      else if (response.reason !== "busy") ranking.noteFault(node);
      return response;
    }
    ranking.noteResponse(node, performance.now() - startedAt);
    const untruth = response.kind === "ok" ? check(response.value, node) : undefined;
    if (untruth === undefined) return response;
    distrust(node, untruth);
    return fault("wrong", `${node.url}: ${untruth}`);
  }

  return {
    all,
    inOrder,
    rests,
    join: (node) => {
      helpers.add(node);
      ranking.add(node);
    },
    leave: (node) => {
      if (helpers.delete(node)) ranking.remove(node);
    },
    async ask(call, signal, check = () => undefined, among = () => true) {
      const { final, others } = await askInOrder(
        {
          sources: inOrder().filter(among),
          ask: (node, own) => askOne(node, call, check, own),
          isFinal: ({ kind }) => kind === "ok",
          hedgeAfterMs: ranking.hedgeAfterMs,
          onOutrun: ranking.noteOutrun,
        },
        signal,
      );
      return final ?? summarize(others);
    },
    distrust,
    noteResponse: ranking.noteResponse,
    noteFault: ranking.noteFault,
    sourceStatus: () => [...all, ...helpers].map((node) => ({ url: node.url, ...ranking.sourceStatus(node) })),
    close: () => {
      for (const node of all) node.close();
    },
  };
}

/** A question to several sources. */
export type Question<Source, Result> = Readonly<{
  /** In the order in which to ask them. */
  sources: readonly Source[];
  /** Must heed its signal, which is aborted when another source was sooner. */
  ask: (source: Source, signal: AbortSignal) => Promise<Result>;
  /** Whether a response ends the search. */
  isFinal: (response: Result) => boolean;
  /** How long to wait for a source before the next one is asked as well. Milliseconds. */
  hedgeAfterMs: (source: Source) => number;
  /** Called with each source that took longer than that while another one was faster. */
  onOutrun?: (source: Source) => void;
}>;

/** The final response, if there was one, and the others in order of arrival. */
export type Asked<Result> = Readonly<{ final: Result | undefined; others: readonly Result[] }>;

/**
 * Asks until a response is final or every source has responded.
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
 * Combines several responses without a value. The result is an absence only when there was no fault, and a timeout
 * only when all faults were timeouts.
 */
export function summarize<Value>(responses: readonly NodeResponse<Value>[]): NodeResponse<Value> {
  const faults = responses.filter((response) => response.kind === "fault");
  const found =
    responses.find(({ kind }) => kind === "ok" || kind === "pending") ??
    faults.find(({ reason }) => reason !== "timeout") ??
    faults[0] ??
    responses.find(({ kind }) => kind === "rejected") ??
    responses[0];
  return found ?? { kind: "fault", reason: "connect", detail: "no source is configured" };
}

/** The record of a source. */
export type SourceStatus = Readonly<{
  successShare: number; // of late, 0 to 1
  latencyMs: number; // of late
  faults: number; // since the start
  wrongs: number; // since the start
  restsUntil: number; // Unix milliseconds; in the past when it does not rest
}>;

/** An order of sources that learns. */
export type Ranking<Source> = Readonly<{
  /** All sources: those that rest last, the others by chance, weighted by how good they are. */
  inOrder: () => Source[];
  /** Records a response and its duration. An absence is a response too. */
  noteResponse: (source: Source, ms: number) => void;
  /** Records a call without a response. */
  noteFault: (source: Source) => void;
  /** Notes that a source was so slow that another one was asked too, and was sooner. */
  noteOutrun: (source: Source) => void;
  /** Records a response that is provably false. */
  noteWrong: (source: Source) => void;
  sourceStatus: (source: Source) => SourceStatus;
  /** Takes a source in, or lets one go. */
  add: (source: Source) => void;
  remove: (source: Source) => void;
  /** How long to wait for a source before another one is asked as well. Milliseconds. */
  hedgeAfterMs: (source: Source) => number;
}>;

type Record = {
  successShare: number;
  latencyMs: number;
  faults: number;
  wrongs: number;
  inRow: number; // faults since the last response
  restsUntil: number;
};

/** The weight of the newest response in the averages. */
const newestShare = 0.2;

/** Latency of a source that was not asked yet. */
const firstLatencyMs = 200;

/** Sources closer than this differ by chance. */
const latencyGrainMs = 50;

const restFirstMs = 500;
const restLongestMs = 60_000;

/** A source that lied is asked again when others fail, and by itself only after this. */
const restAfterWrongMs = 300_000;

const hedgeShortestMs = 500;
const hedgeLongestMs = 4_000;

/** The least weight of a source that never responds. */
const successShareMin = 0.05;

/** Makes an order. @param random - in [0, 1). */
export function createRanking<Source>(sources: readonly Source[], clock: Clock, random: () => number): Ranking<Source> {
  const records = new Map(sources.map((source) => [source, newRecord()]));
  /** A source that was removed during its request leaves no record. */
  const recordOf = (source: Source): Record => records.get(source) ?? newRecord();

  /** Chance to a power that falls with weight; the greatest is a source drawn by its weight (Efraimidis, Spirakis). */
  function draw({ successShare, latencyMs }: Record): number {
    const weight = Math.max(successShareMin, successShare) ** 2 / (latencyMs + latencyGrainMs);
    return Math.log(Math.max(random(), Number.MIN_VALUE)) / weight;
  }

  function rest(record: Record, ms: number): void {
    record.restsUntil = Math.max(record.restsUntil, clock() + ms);
  }

  return {
    inOrder() {
      const now = clock();
      const drawn = [...records].map(([source, record]) => ({
        source,
        restMs: Math.max(0, record.restsUntil - now),
        key: draw(record),
      }));
      return drawn.sort((a, b) => a.restMs - b.restMs || b.key - a.key).map(({ source }) => source);
    },
    noteResponse(source, ms) {
      const record = recordOf(source);
      record.successShare += newestShare * (1 - record.successShare);
      record.latencyMs += newestShare * (ms - record.latencyMs);
      record.inRow = 0;
    },
    noteFault(source) {
      const record = recordOf(source);
      record.successShare -= newestShare * record.successShare;
      record.faults += 1;
      rest(record, Math.min(restLongestMs, restFirstMs * 2 ** record.inRow));
      record.inRow = Math.min(record.inRow + 1, 16);
    },
    noteOutrun(source) {
      const record = recordOf(source);
      record.successShare -= newestShare * record.successShare;
    },
    noteWrong(source) {
      const record = recordOf(source);
      record.successShare -= 2 * newestShare * record.successShare;
      record.wrongs += 1;
      rest(record, restAfterWrongMs);
    },
    sourceStatus: (source) => ({ ...recordOf(source) }),
    add: (source) => {
      records.set(source, newRecord());
    },
    remove: (source) => {
      records.delete(source);
    },
    hedgeAfterMs: (source) => Math.min(hedgeLongestMs, Math.max(hedgeShortestMs, 3 * recordOf(source).latencyMs)),
  };
}

function newRecord(): Record {
  return { successShare: 1, latencyMs: firstLatencyMs, faults: 0, wrongs: 0, inRow: 0, restsUntil: 0 };
}

/** Weight of a source, 1 to 100: half at a latency of 200 ms, and less with every failure. */
export function weightOf({ successShare, latencyMs }: SourceStatus): number {
  const weight = (100 * successShare ** 2 * firstLatencyMs) / (firstLatencyMs + latencyMs);
  return Math.min(100, Math.max(1, Math.round(weight)));
}
