/**
 * What trusted gateways said of names, kept for as long as it is good, and asked for once however many want it.
 *
 * What is old is given while a new answer is slow or cannot be had; that nobody could say is never kept.
 * @module
 */
import { LRUCache } from "lru-cache";
import type { NameGateways, NameResponse } from "../../chain/name-gateways.ts";
import type { Clock } from "../../lib/clock.ts";
import { type Fault, failureOf, fault } from "../../lib/http-client.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { createSingleFlight } from "../../lib/single-flight.ts";
import { ignoreRejection, isTimeout, untilStopped, withDeadline } from "../../lib/stop.ts";

/** What was said of a name, and when. */
export type StoredName = Readonly<{
  response: Exclude<NameResponse, { kind: "trouble" }>;
  /** Milliseconds since the epoch. */
  resolvedAt: number;
}>;

/** Names of trusted gateways. */
export type StoredNames = Readonly<{
  /**
   * @param hops - How many gateways stand between the reader and us.
   * @throws Failure `source_failed`, `source_timeout`, `busy` when nobody could say and nothing is kept.
   */
  find: (name: string, hops: number, signal: AbortSignal) => Promise<StoredName>;
  /** Ends every asking under way. */
  close: () => void;
}>;

/** What it is made of. */
export type StoredNamesOptions = Readonly<{
  gateways: Pick<NameGateways, "ask">;
  /** How long what is old is given when nobody can say otherwise. Milliseconds since it was resolved. */
  retentionMs: number;
  /** Names that are kept, at least 1. */
  storedMax: number;
  /** How long a reader waits for a new answer where an old one is there. Milliseconds. */
  patienceMs: number;
  metrics: Metrics;
  clock: Clock;
  log: Log;
}>;

/** That nobody has a name is asked again after this long: it may be registered any moment. Milliseconds. */
const absentMs = 10_000;

/** Gateways that were in trouble are left alone for this long where an old answer is there. Milliseconds. */
const faultMs = 5_000;

/** Gateways that ask one another: the third in a row asks no further. */
const hopsMax = 3;

/** Until when it is given without asking. Milliseconds since the epoch. */
type Entry = StoredName & Readonly<{ freshUntil: number }>;

type Asked = StoredName | Fault;

/** Creates the keeper. */
export function createStoredNames(options: StoredNamesOptions): StoredNames {
  const { gateways, clock, log } = options;
  const entries = new LRUCache<string, Entry>({ max: Math.max(1, options.storedMax) });
  const flights = createSingleFlight<Asked>();
  const life = new AbortController();
  const stats = metricsIn(options.metrics);

  /** Hops are told apart, or two gateways that trust each other would each wait for the other's one asking. */
  const ask = (name: string, hops: number, signal: AbortSignal): Promise<Asked> =>
    flights.run(`${name} ${hops}`, signal, async (own) => {
      const startedAt = performance.now();
      const response = await gateways.ask(name, hops, own);
      stats.asked(performance.now() - startedAt);
      if (response.kind !== "trouble") return keep(name, response);
      log.warn("a name could not be resolved", { name, reason: response.reason, detail: response.detail });
      postpone(name);
      return response;
    });

  const keep = (name: string, response: StoredName["response"]): StoredName => {
    const resolvedAt = clock();
    const freshMs = response.kind === "resolved" ? response.record.ttlSeconds * 1_000 : absentMs;
    entries.set(name, { response, resolvedAt, freshUntil: resolvedAt + freshMs });
    return { response, resolvedAt };
  };

  /** Lets an old answer be given for a moment, but not for longer than anything is. */
  const postpone = (name: string): void => {
    const old = entries.peek(name);
    if (old === undefined) return;
    const freshUntil = Math.min(clock() + faultMs, old.resolvedAt + options.retentionMs);
    if (old.freshUntil < freshUntil) entries.set(name, { ...old, freshUntil });
  };

  const isUsable = (entry: Entry | undefined): entry is Entry =>
    entry?.response.kind === "resolved" && clock() < entry.resolvedAt + options.retentionMs;

  /** Waits a moment; the asking goes on behind. */
  const askPatiently = async (name: string, hops: number, signal: AbortSignal): Promise<Asked> => {
    const asking = ask(name, hops, life.signal);
    ignoreRejection(asking);
    try {
      return await withDeadline(signal, options.patienceMs, (own) => untilStopped(asking, own));
    } catch (error) {
      if (isTimeout(error)) return fault("timeout", `nothing within ${options.patienceMs} ms`);
      throw error;
    }
  };

  return {
    find: async (name, hops, signal) => {
      const entry = entries.get(name);
      if (entry !== undefined && clock() < entry.freshUntil) {
        stats.stored();
        return entry;
      }
      const old = isUsable(entry) ? entry : undefined;
      const asked =
        hops >= hopsMax
          ? fault("wrong", `${hops} gateways ask one another`)
          : await (old === undefined ? ask(name, hops, signal) : askPatiently(name, hops, signal));
      if ("response" in asked) return asked;
      if (old === undefined) throw failureOf(asked, { name });
      return old;
    },
    close: () => life.abort(new DOMException("names were closed", "AbortError")),
  };
}

/** Upper bounds of the histogram: from next door to beyond the time-out. Milliseconds. */
const buckets = [10, 50, 100, 250, 500, 1_000, 3_000, 10_000];

function metricsIn(metrics: Metrics) {
  const stored = metrics.counter({ name: "arns_cache_hit_total", help: "Names given as they were kept." });
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
    stored: () => stored.inc(),
    asked: (ms: number) => {
      asked.inc();
      ofAll.observe(ms);
    },
  };
}
