/**
 * What trusted gateways said of names, kept for as long as it is good, and asked for once however many want it.
 *
 * What is old is given while a new answer is slow or cannot be had; that nobody could say is never kept.
 * @module
 */
import { LRUCache } from "lru-cache";
import type { NameAnswer, NameGateways } from "../../chain/name-gateways.ts";
import type { Clock } from "../../lib/clock.ts";
import { failureOf, type Trouble, trouble } from "../../lib/http-client.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { createSingleFlight } from "../../lib/single-flight.ts";
import { isTimeout, unheard, untilStopped, withDeadline } from "../../lib/stop.ts";

/** What was said of a name, and when. */
export type KeptName = Readonly<{
  answer: Exclude<NameAnswer, { kind: "trouble" }>;
  /** Milliseconds since the epoch. */
  resolvedAt: number;
}>;

/** Names of trusted gateways. */
export type KeptNames = Readonly<{
  /**
   * @param hops - How many gateways stand between the reader and us.
   * @throws Failure `source_failed`, `source_timeout`, `busy` when nobody could say and nothing is kept.
   */
  find: (name: string, hops: number, signal: AbortSignal) => Promise<KeptName>;
  /** Ends every asking under way. */
  close: () => void;
}>;

/** What it is made of. */
export type KeptNamesOptions = Readonly<{
  gateways: Pick<NameGateways, "ask">;
  /** How long what is old is given when nobody can say otherwise. Milliseconds since it was resolved. */
  keptMs: number;
  /** Names that are kept, at least 1. */
  keptMax: number;
  /** How long a reader waits for a new answer where an old one is there. Milliseconds. */
  patienceMs: number;
  metrics: Metrics;
  clock: Clock;
  log: Log;
}>;

/** That nobody has a name is asked again after this long: it may be registered any moment. Milliseconds. */
const absentMs = 10_000;

/** Gateways that were in trouble are left alone for this long where an old answer is there. Milliseconds. */
const troubleMs = 5_000;

/** Gateways that ask one another: the third in a row asks no further. */
const hopsMax = 3;

/** Until when it is given without asking. Milliseconds since the epoch. */
type Entry = KeptName & Readonly<{ freshUntil: number }>;

type Asked = KeptName | Trouble;

/** Creates the keeper. */
export function createKeptNames(options: KeptNamesOptions): KeptNames {
  const { gateways, clock, log } = options;
  const entries = new LRUCache<string, Entry>({ max: Math.max(1, options.keptMax) });
  const flights = createSingleFlight<Asked>();
  const life = new AbortController();
  const figures = figuresIn(options.metrics);

  /** Hops are told apart, or two gateways that trust each other would each wait for the other's one asking. */
  const ask = (name: string, hops: number, signal: AbortSignal): Promise<Asked> =>
    flights.run(`${name} ${hops}`, signal, async (own) => {
      const startedAt = performance.now();
      const answer = await gateways.ask(name, hops, own);
      figures.asked(performance.now() - startedAt);
      if (answer.kind !== "trouble") return keep(name, answer);
      log.warn("a name could not be resolved", { name, reason: answer.reason, detail: answer.detail });
      postpone(name);
      return answer;
    });

  const keep = (name: string, answer: KeptName["answer"]): KeptName => {
    const resolvedAt = clock();
    const freshMs = answer.kind === "resolved" ? answer.record.ttlSeconds * 1_000 : absentMs;
    entries.set(name, { answer, resolvedAt, freshUntil: resolvedAt + freshMs });
    return { answer, resolvedAt };
  };

  /** Lets an old answer be given for a moment, but not for longer than anything is. */
  const postpone = (name: string): void => {
    const old = entries.peek(name);
    if (old === undefined) return;
    const freshUntil = Math.min(clock() + troubleMs, old.resolvedAt + options.keptMs);
    if (old.freshUntil < freshUntil) entries.set(name, { ...old, freshUntil });
  };

  const isUsable = (entry: Entry | undefined): entry is Entry =>
    entry?.answer.kind === "resolved" && clock() < entry.resolvedAt + options.keptMs;

  /** Waits a moment; the asking goes on behind. */
  const askPatiently = async (name: string, hops: number, signal: AbortSignal): Promise<Asked> => {
    const asking = ask(name, hops, life.signal);
    unheard(asking);
    try {
      return await withDeadline(signal, options.patienceMs, (own) => untilStopped(asking, own));
    } catch (error) {
      if (isTimeout(error)) return trouble("timeout", `nothing within ${options.patienceMs} ms`);
      throw error;
    }
  };

  return {
    find: async (name, hops, signal) => {
      const entry = entries.get(name);
      if (entry !== undefined && clock() < entry.freshUntil) {
        figures.kept();
        return entry;
      }
      const old = isUsable(entry) ? entry : undefined;
      const asked =
        hops >= hopsMax
          ? trouble("wrong", `${hops} gateways ask one another`)
          : await (old === undefined ? ask(name, hops, signal) : askPatiently(name, hops, signal));
      if ("answer" in asked) return asked;
      if (old === undefined) throw failureOf(asked, { name });
      return old;
    },
    close: () => life.abort(new DOMException("names were closed", "AbortError")),
  };
}

/** Upper bounds of the histogram: from next door to beyond the time-out. Milliseconds. */
const buckets = [10, 50, 100, 250, 500, 1_000, 3_000, 10_000];

function figuresIn(metrics: Metrics) {
  const kept = metrics.counter({ name: "arns_cache_hit_total", help: "Names given as they were kept." });
  const asked = metrics.counter({
    name: "arns_cache_miss_total",
    help: "Names that gateways were asked for.",
  });
  const times = metrics.histogram({
    name: "arns_resolution_time_ms",
    labels: [],
    help: "How long gateways took for a name, in milliseconds.",
    buckets,
  });
  const ofAll = times.series({});
  return {
    kept: () => kept.inc(),
    asked: (ms: number) => {
      asked.inc();
      ofAll.observe(ms);
    },
  };
}
