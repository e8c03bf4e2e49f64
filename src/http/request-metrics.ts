/**
 * Metrics and log lines about requests: every response is counted once and logged once.
 * @module
 */
import { STATUS_CODES } from "node:http";
import type { Log } from "../lib/log.ts";
import type { Metrics, Series } from "../lib/metrics.ts";
import { clientClosedStatus } from "./client-disconnect.ts";
import type { RequestContext } from "./request-context.ts";
import type { RouteLabel } from "./route-table.ts";

/** A request with its response. */
export type CompletedRequest = Readonly<{
  method: string;
  context: Pick<RequestContext, "requestId" | "target">;
  label: RouteLabel;
  status: number;
  /** Until the headers were ready. Milliseconds. */
  durationMs: number;
}>;

export type RequestMetrics = Readonly<{
  responded: (request: CompletedRequest) => void;
  /**
   * Counts a response with status 200 from the response cache. Its duration counts as 0: it is about 15 µs, and reading
   * the clock twice would add to it.
   *
   * @param label - The same object for the same route: the series is looked up by it.
   */
  respondedFromCache: (label: RouteLabel, url: string) => void;
}>;

/** Upper bounds in seconds, from a memory look-up to the longest wait for a source. */
const durationBuckets = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100] as const;

const knownMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** Label of every other method. */
const otherMethod = "OTHER";

/** Registered statuses; relayed responses of nodes and gateways may have others. */
const knownStatuses: ReadonlySet<string> = new Set([...Object.keys(STATUS_CODES), String(clientClosedStatus)]);

function methodLabel(method: string): string {
  return knownMethods.has(method) ? method : otherMethod;
}

/** The label of a status: itself, or its class, `5xx`. */
function statusLabel(status: number): string {
  const text = String(status);
  return knownStatuses.has(text) ? text : `${text.slice(0, 1)}xx`;
}

/** Metrics of all listeners. @param logsCachedResponses - Whether responses from the response cache are logged. */
export function createRequestMetrics(metrics: Metrics, log: Log, logsCachedResponses = true): RequestMetrics {
  const duration = metrics.histogram({
    name: "http_request_duration_seconds",
    help: "Time until the headers of a response were ready, in seconds; every response is counted once.",
    labels: ["service", "path", "method", "status_code"],
    buckets: durationBuckets,
  });
  const left = metrics.counter({
    name: "client_disconnects_total",
    help: "Requests whose client left before the response.",
  });
  let cachedResponses = 0;
  metrics.countOf({
    name: "http_memory_hits_total",
    help: "Of all responses, content that was in memory.",
    read: () => cachedResponses,
  });
  const seriesOf = ({ service, route }: RouteLabel, method: string, status: number) =>
    duration.series({
      service,
      path: route,
      method: methodLabel(method),
      status_code: statusLabel(status),
    });
  const cachedSeries = new Map<RouteLabel, Series>();
  const logsCached = logsCachedResponses && log.writes("info");
  return {
    responded: ({ method, context, label, status, durationMs }) => {
      if (status === clientClosedStatus) left.inc();
      seriesOf(label, method, status).observe(durationMs / 1_000);
      const { requestId, target } = context;
      const { service, route } = label;
      log[status >= 500 ? "warn" : "info"]("request completed", {
        requestId,
        method,
        path: target.path,
        service,
        route,
        status,
        durationMs: Math.round(durationMs * 10) / 10,
      });
    },
    respondedFromCache: (label, url) => {
      cachedResponses += 1;
      let series = cachedSeries.get(label);
      if (series === undefined) {
        series = seriesOf(label, "GET", 200);
        cachedSeries.set(label, series);
      }
      series.observe(0);
      if (!logsCached) return;
      const { service, route } = label;
      const path = url.slice(url.indexOf("/", url.indexOf("//") + 2)).split("?", 1)[0];
      const responded = { method: "GET", path, service, route, status: 200, durationMs: 0 };
      log.info("request completed", { ...responded, from: "memory" });
    },
  };
}
