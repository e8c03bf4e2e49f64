/**
 * Cache of the name records of trusted gateways; concurrent requests for a name share one query.
 *
 * A stale record is returned while a new one is slow or unavailable. Failures are not cached.
 * @module
 */
import { LRUCache } from "lru-cache";
import type { NameGateways, NameResponse } from "../../chain/name-gateways.ts";
import type { Clock } from "../../lib/clock.ts";
import { entryLimit } from "../../lib/entry-limit.ts";
import { type Fault, failureOf, fault } from "../../lib/http-client.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { ownText } from "../../lib/own-text.ts";
import { createSingleFlight } from "../../lib/single-flight.ts";
import { ignoreRejection, isTimeout, untilStopped, withDeadline } from "../../lib/stop.ts";

export type StoredName = Readonly<{
  response: Exclude<NameResponse, { kind: "fault" }>;
  /** Milliseconds since the epoch. */
  resolvedAt: number;
}>;

export type StoredNames = Readonly<{
  /**
   * @param hops - Number of gateways that forwarded the request.
   * @throws Failure `source_failed`, `source_timeout`, `busy` when no gateway responds and nothing is cached.
   */
  find: (name: string, hops: number, signal: AbortSignal) => Promise<StoredName>;
  /** Aborts all queries. */
  close: () => void;
}>;

export type StoredNamesOptions = Readonly<{
  gateways: Pick<NameGateways, "ask">;
  /** Maximum age of a stale record that is still returned. Milliseconds since it was resolved. */
  retentionMs: number;
  /** Cached names, at least 1. */
  storedMax: number;
  /** Wait for a new record while a stale one is cached. Milliseconds. */
  patienceMs: number;
  metrics: Metrics;
  clock: Clock;
  log: Log;
}>;

/** Time to live of an absent name, which may be registered at any time. Milliseconds. */
const absentMs = 10_000;

/** Backoff after a fault of the gateways while a stale record is cached. Milliseconds. */
const faultMs = 5_000;

/** Maximum chain of gateways that forward a name query. */
const hopsMax = 3;

/** Fresh until then. Milliseconds since the epoch. */
type Entry = StoredName & Readonly<{ freshUntil: number }>;

type Asked = StoredName | Fault;

export function createStoredNames(options: StoredNamesOptions): StoredNames {
  const { gateways, clock, log } = options;
  const entries = new LRUCache<string, Entry>(entryLimit(Math.max(1, options.storedMax)));
  const flights = createSingleFlight<Asked>();
  const life = new AbortController();
  const stats = metricsIn(options.metrics);

  /** Keyed by hops: otherwise two gateways that trust each other would wait for each other's query. */
  const ask = (name: string, hops: number, signal: AbortSignal): Promise<Asked> =>
    flights.run(`${name} ${hops}`, signal, async (own) => {
      const startedAt = performance.now();
      const response = await gateways.ask(name, hops, own);
      stats.asked(performance.now() - startedAt);
      if (response.kind !== "fault") return keep(name, response);
      log.warn("a name could not be resolved", { name, reason: response.reason, detail: response.detail });
      postpone(name);
      return response;
    });

  const keep = (name: string, response: StoredName["response"]): StoredName => {
    const resolvedAt = clock();
    const freshMs = response.kind === "resolved" ? response.record.ttlSeconds * 1_000 : absentMs;
    entries.set(ownText(name), { response, resolvedAt, freshUntil: resolvedAt + freshMs });
    return { response, resolvedAt };
  };

  /** Extends a stale record for a moment, up to the maximum age. An old absence does not outlast a fault. */
  const postpone = (name: string): void => {
    const old = entries.peek(name);
    if (old?.response.kind !== "resolved") return;
    const freshUntil = Math.min(clock() + faultMs, old.resolvedAt + options.retentionMs);
    if (old.freshUntil < freshUntil) entries.set(name, { ...old, freshUntil });
  };

  const isUsable = (entry: Entry | undefined): entry is Entry =>
    entry?.response.kind === "resolved" && clock() < entry.resolvedAt + options.retentionMs;

  /** Waits a moment; the query continues in the background. */
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

/** Upper bounds of the histogram. Milliseconds. */
const buckets = [10, 50, 100, 250, 500, 1_000, 3_000, 10_000];

function metricsIn(metrics: Metrics) {
  const stored = metrics.counter({ name: "arns_cache_hit_total", help: "Names served from the cache." });
  const asked = metrics.counter({
    name: "arns_cache_miss_total",
    help: "Names that were requested from gateways.",
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
