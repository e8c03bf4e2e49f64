/**
 * Metrics and log lines about requests: every response is counted once and logged once.
 * @module
 */
import type { Log } from "../lib/log.ts";
import type { Metrics, Series } from "../lib/metrics.ts";
import { clientClosedStatus } from "./client-disconnect.ts";
import type { RequestContext } from "./request-context.ts";
import { bodySizeOf, heldMemoryOf } from "./responses.ts";
import type { RouteLabel } from "./route-table.ts";

/** A request with its response. */
export type CompletedRequest = Readonly<{
  request: Pick<Request, "method" | "headers">;
  context: Pick<RequestContext, "requestId" | "target" | "clientAddress" | "headOnly">;
  /** As that of {@link CachedRequest}. */
  label: RouteLabel;
  response: Response;
  /** Until the headers were ready. Milliseconds. */
  durationMs: number;
}>;

/** A request that the response cache responded to, with status 200 or 206. */
export type CachedRequest = Readonly<{
  request: Pick<Request, "url" | "headers">;
  /** If the client sent one; another if it is invalid. */
  requestId: string | undefined;
  /** The same object for the same route: the series are looked up by it. */
  label: RouteLabel;
  response: Response;
  /** Called only if the line is logged. */
  clientAddress: () => string;
}>;

/** Where the bytes of content were: in memory, on this disk, or at a node or gateway. */
export const contentTiers = ["memory", "disk", "source"] as const;
export type ContentTier = (typeof contentTiers)[number];

/** Totals since the start, of all services together. */
export type RequestTotals = Readonly<{
  responses: number;
  /** Responses with status 500 or more. */
  serverErrors: number;
  /** Responses with content, and the bytes of their bodies, by the place of the bytes. */
  content: Readonly<Record<ContentTier, Readonly<{ responses: number; bytes: number }>>>;
  /** Bytes of all bodies. */
  bytes: number;
  /** Responses from routes by duration: the upper bounds are {@link durationBuckets}, and one bucket without bound. */
  durations: readonly number[];
}>;

/** A recent response, for the operator. */
export type RecentRequest = Readonly<{
  at: number /* Unix milliseconds */;
  requestId: string;
  method: string;
  path: string;
  service: string;
  route: string;
  status: number;
  durationMs: number;
  bytes: number;
}>;

export type RequestMetrics = Readonly<{
  responded: (request: CompletedRequest) => void;
  /**
   * Counts a response from the response cache. Its duration counts as 0: it is about 15 µs, and reading
   * the clock twice would add to it.
   */
  respondedFromCache: (request: CachedRequest) => void;
  totals: () => RequestTotals;
  /** The latest responses from routes beside administration, newest first, and all with status 500 or more. */
  recent: () => Readonly<{ requests: readonly RecentRequest[]; errors: readonly RecentRequest[] }>;
}>;

/** Upper bounds in seconds, from a memory look-up to the longest wait for a source. */
export const durationBuckets = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100] as const;

/** Methods that are label values. */
export const knownMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** Label of every other method. */
const otherMethod = "OTHER";

/** Statuses with a name: those of node:http, which a start does not load. */
const namedStatuses = "100-103 200-208 226 300-305 307-308 400-418 421-426 428-429 431 451 500-511";

/** Those, and one of this program; relayed responses of nodes and gateways may have others. */
const knownStatuses: ReadonlySet<string> = new Set(
  `${namedStatuses} ${clientClosedStatus}`.split(" ").flatMap((range) => {
    const [first = 0, last = first] = range.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => String(first + index));
  }),
);

/** Longest logged user agent; the rest is cut off. Characters. */
const userAgentMax = 256;

/** Recent responses in memory, of each kind. */
const recentMax = 50;

/** Longest stored path of a recent response. Characters. */
const recentPathMax = 256;

function methodLabel(method: string): string {
  return knownMethods.has(method) ? method : otherMethod;
}

/** The label of a status: itself, or its class, `5xx`. */
function statusLabel(status: number): string {
  const text = String(status);
  return knownStatuses.has(text) ? text : `${text.slice(0, 1)}xx`;
}

/** Which successful responses are logged; failures of the gateway always are. */
export type LoggedResponses = Readonly<{
  completed: boolean;
  /** Those from the response cache. */
  cached: boolean;
}>;

/** Metrics of all listeners. */
export function createRequestMetrics(
  metrics: Metrics,
  log: Log,
  logged: LoggedResponses = { completed: true, cached: true },
): RequestMetrics {
  const counts = createCounts(metrics);
  const requests = createRecent<RecentRequest>(recentMax);
  const errors = createRecent<RecentRequest>(recentMax);
  const logsCached = logged.cached && log.writes("info");
  return {
    responded: (completed) => {
      const { request, context, label, response, durationMs } = completed;
      const { method, headers } = request;
      const { status } = response;
      const bytes = context.headOnly ? 0 : bytesOf(response);
      const from = tierOf(response);
      counts.count({ label, method, status, durationMs, bytes, from });
      const { requestId, target, clientAddress } = context;
      const { service, route } = label;
      const { path } = target;
      const rounded = Math.round(durationMs * 10) / 10;
      const line = { requestId, method, path, service, route, status, durationMs: rounded, bytes };
      const recent = { at: Date.now(), ...line, path: path.slice(0, recentPathMax) };
      // The console reads every few seconds: its own requests would replace all others.
      if (service !== "admin") requests.add(recent);
      if (status >= 500) errors.add(recent);
      const level = status >= 500 ? "warn" : "info";
      if (!log.writes(level) || (level === "info" && !logged.completed)) return;
      const place = from === undefined ? {} : { from };
      log[level]("request completed", { ...line, ...place, ...clientFields(headers, clientAddress()) });
    },
    respondedFromCache: ({ request, requestId, label, response, clientAddress }) => {
      const bytes = bodySizeOf(response);
      const { status } = response;
      const from = cachedTierOf(response);
      counts.countCached({ label, status, bytes, from });
      if (!logsCached) return;
      const { service, route } = label;
      const { url, headers } = request;
      const path = cachedPathOf(url);
      const line = { method: "GET", path, service, route, status, durationMs: 0, bytes, from };
      const id = requestId === undefined ? {} : { requestId };
      log.info("request completed", { ...id, ...line, ...clientFields(headers, clientAddress()) });
    },
    totals: counts.totals,
    recent: () => ({ requests: requests.list(), errors: errors.list() }),
  };
}

/** Whose request it was: the address of the client, and what program it names. */
function clientFields(headers: Headers, client: string): Readonly<Record<string, string>> {
  const userAgent = headers.get("user-agent");
  return userAgent === null ? { client } : { client, userAgent: userAgent.slice(0, userAgentMax) };
}

/** Bytes of a body: as noted, or as the response states; 0 for a stream of unknown length. */
export function bytesOf(response: Response): number {
  const noted = bodySizeOf(response);
  if (noted > 0) return noted;
  const stated = Number(response.headers.get("content-length") ?? 0);
  return Number.isSafeInteger(stated) && stated > 0 ? stated : 0;
}

/** The place of content; undefined for a response that is not content. */
export function tierOf({ headers }: Response): ContentTier | undefined {
  const cache = headers.get("X-Cache");
  if (cache === "HIT") return "disk";
  return cache === "MISS" ? "source" : undefined;
}

/** The place of a response from the response cache. */
export function cachedTierOf(response: Response): ContentTier {
  return heldMemoryOf(response)?.kind === "file" ? "disk" : "memory";
}

/** The path of a request that the response cache responded to. */
export function cachedPathOf(url: string): string {
  return url.slice(url.indexOf("/", url.indexOf("//") + 2)).split("?", 1)[0] ?? "";
}

type Counted = Readonly<{
  label: RouteLabel;
  method: string;
  status: number;
  durationMs: number;
  bytes: number;
  from: ContentTier | undefined;
}>;

type Counts = Readonly<{
  count: (counted: Counted) => void;
  countCached: (counted: Omit<Counted, "method" | "durationMs" | "from"> & Readonly<{ from: ContentTier }>) => void;
  totals: RequestMetrics["totals"];
}>;

/** Label of the bytes of a response that is not content. */
const noTier = "none";

function createMetricSeries(metrics: Metrics) {
  const labels = ["service", "path"] as const;
  return {
    duration: metrics.histogram({
      name: "http_request_duration_seconds",
      help: "Time until the headers of a response were ready, in seconds; every response is counted once.",
      labels: [...labels, "method", "status_code"],
      buckets: durationBuckets,
    }),
    bytes: metrics.counterSeries({
      name: "http_response_bytes_total",
      help: "Bytes of response bodies, by where content was; a client that leaves early has received fewer.",
      labels: [...labels, "from"],
    }),
    left: metrics.counterSeries({
      name: "client_disconnects_total",
      help: "Requests whose client left before the response.",
      labels,
    }),
    fromMemory: metrics.counterSeries({
      name: "http_memory_hits_total",
      help: "Of all responses, content that was in memory.",
      labels,
    }),
  };
}

type SeriesKey = Readonly<{ method: string; status: number; from: ContentTier | undefined }>;

/** The series of all responses of one route with the same method, status and place of content. */
type ResponseSeries = Readonly<{
  duration: Series;
  bytes: Readonly<{ add: (by: number) => void }>;
  fromMemory: Readonly<{ add: (by: number) => void }> | undefined;
  left: Readonly<{ add: (by: number) => void }> | undefined;
}>;

/**
 * Looks up series without composing their labels, which took most of the time of a counted response (measured: 1.3 of
 * 1.8 µs; bench/http/observability.ts).
 */
function createSeriesTable(create: (label: RouteLabel, key: SeriesKey) => ResponseSeries) {
  const byLabel = new Map<RouteLabel, Map<string, Map<number, ResponseSeries>>>();
  return (label: RouteLabel, key: SeriesKey): ResponseSeries => {
    const number = key.status * tierNumbers + (key.from === undefined ? 0 : 1 + contentTiers.indexOf(key.from));
    // Three calls of `getOrInsertComputed` would take about 2,000 instructions more (measured): 4 % of a small request.
    const known = byLabel.get(label)?.get(key.method)?.get(number);
    if (known !== undefined) return known;
    const series = create(label, key);
    byLabel
      .getOrInsertComputed(label, () => new Map())
      .getOrInsertComputed(key.method, () => new Map())
      .set(number, series);
    return series;
  };
}

/** Places of content, and none. */
const tierNumbers = contentTiers.length + 1;

/** The index of the bucket of a duration. */
function bucketOf(durationMs: number): number {
  let at = 0;
  while (at < durationBuckets.length && durationMs > (durationBuckets[at] ?? 0) * 1_000) at += 1;
  return at;
}

function createCounts(metrics: Metrics): Counts {
  const { duration, bytes: sent, left, fromMemory } = createMetricSeries(metrics);
  const content = {
    memory: { responses: 0, bytes: 0 },
    disk: { responses: 0, bytes: 0 },
    source: { responses: 0, bytes: 0 },
  };
  const durations = new Array<number>(durationBuckets.length + 1).fill(0);
  let [responses, serverErrors, allBytes] = [0, 0, 0];
  const create = ({ service, route }: RouteLabel, { method, status, from }: SeriesKey): ResponseSeries => ({
    duration: duration.series({ service, path: route, method, status_code: statusLabel(status) }),
    bytes: sent.series({ service, path: route, from: from ?? noTier }),
    fromMemory: from === "memory" ? fromMemory.series({ service, path: route }) : undefined,
    left: status === clientClosedStatus ? left.series({ service, path: route }) : undefined,
  });
  const seriesOf = createSeriesTable(create);
  return {
    count: ({ label, method, status, durationMs, bytes, from }) => {
      responses += 1;
      allBytes += bytes;
      if (status >= 500) serverErrors += 1;
      const series = seriesOf(label, { method: methodLabel(method), status, from });
      series.left?.add(1);
      series.duration.observe(durationMs / 1_000);
      series.bytes.add(bytes);
      const at = bucketOf(durationMs);
      durations[at] = (durations[at] ?? 0) + 1;
      if (from === undefined) return;
      content[from].responses += 1;
      content[from].bytes += bytes;
    },
    countCached: ({ label, status, bytes, from }) => {
      responses += 1;
      allBytes += bytes;
      content[from].responses += 1;
      content[from].bytes += bytes;
      const series = seriesOf(label, { method: "GET", status, from });
      series.duration.observe(0);
      series.bytes.add(bytes);
      series.fromMemory?.add(1);
    },
    totals: () => ({ responses, serverErrors, content, bytes: allBytes, durations }),
  };
}

/** The newest values, in a ring of a fixed size. */
export function createRecent<Value>(max: number) {
  const values: Value[] = [];
  let next = 0;
  return {
    add: (value: Value): void => {
      values[next] = value;
      next = (next + 1) % max;
    },
    /** Newest first. */
    list: (): readonly Value[] => [...values.slice(0, next).reverse(), ...values.slice(next).reverse()],
  };
}
