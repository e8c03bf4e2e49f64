/**
 * Figures and log lines about requests.
 * @module
 */
import type { Log } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { RequestContext } from "./context.ts";

/** Takes note of requests. */
export type RequestFigures = Readonly<{
  /** Notes an answered request. `durationMs` ends when the headers left. */
  answered: (method: string, context: RequestContext, status: number, durationMs: number) => void;
  /** Notes an answer from memory: a count and nothing else, because more would cost as much as the answer. */
  hit: () => void;
}>;

/** The caller went away before it was answered; for figures and the log, since nobody reads it. */
export const callerLeft = 499;

/** Upper bounds in seconds, from a memory look-up to the longest wait for a source. */
const durationBuckets = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100] as const;

/**
 * Creates the figures of one listener.
 *
 * @param labelOf - A path's label; it must have few values, whatever is asked for.
 */
export function createRequestFigures(
  metrics: Metrics,
  log: Log,
  labelOf: (path: string) => string,
): RequestFigures {
  const duration = metrics.histogram({
    name: "http_request_duration_seconds",
    help: "Time until the headers of an answer left, in seconds; answers from memory are counted apart.",
    labels: ["status_code", "method", "path"],
    buckets: durationBuckets,
  });
  const left = metrics.counter({
    name: "client_disconnects_total",
    help: "Requests whose client left before it was answered.",
  });
  let hits = 0;
  metrics.countOf({
    name: "http_memory_hits_total",
    help: "Content answered from memory.",
    read: () => hits,
  });
  return {
    answered: (method, context, status, durationMs) => {
      const { path } = context.target;
      if (status === callerLeft) left.inc();
      duration.observe({ status_code: String(status), method, path: labelOf(path) }, durationMs / 1_000);
      const { requestId } = context;
      const level = status >= 500 ? "warn" : "info";
      log[level]("request answered", {
        requestId,
        method,
        path,
        status,
        durationMs: Math.round(durationMs * 10) / 10,
      });
    },
    hit: () => {
      hits += 1;
    },
  };
}
