/**
 * Responses that are made at once, before the routes: those from the response cache, and those that one read makes.
 * They are within the same limits as all others, and counted with them.
 *
 * What a request needs for its routes (its canonical path, the size of its head, an account of memory, promises) takes
 * 12 µs of 60 of a record from the index (measured, bench/http/routes.ts). Responses from the cache get no header of
 * their own, which would take as long as they do (8 and 5 µs, measured; bench/http/http.ts).
 * @module
 */
import type { Log } from "../lib/log.ts";
import type { Span } from "../lib/spans.ts";
import type { BodyMemory } from "./body-memory.ts";
import { hasSeveralHosts, requestSummaryOf } from "./incoming-request.ts";
import type { createConnections } from "./listener.ts";
import type { RateLimiter } from "./rate-limiter.ts";
import { type RequestSummary, requestIdOf } from "./request-context.ts";
import { clearLargeCookies } from "./request-limits.ts";
import type { CompletedRequest, RequestMetrics } from "./request-metrics.ts";
import type { RequestSpans } from "./request-spans.ts";
import type { Target } from "./request-target.ts";
import type { RoutedResponse, RouteLabels } from "./route-table.ts";

export type ImmediateOptions = Readonly<{
  /** Responds from the response cache, or returns undefined; notes the size of the body. Called first. */
  cachedResponse?: (request: Request) => Response | undefined;
  /**
   * Finds what responds to a GET request with less work than the router. It is called when the limits admit the
   * request. The routes respond where there is none, where it returns undefined, and where it throws.
   */
  withoutRouter?: (target: Target) => (() => RoutedResponse | undefined) | undefined;
  /** Absent: requests have no rate limit. */
  limiter?: RateLimiter | undefined;
  /** Memory of bodies; absent: unlimited. */
  memory?: BodyMemory | undefined;
  log: Log;
  stats: Pick<RequestMetrics, "responded" | "respondedFromCache">;
  /** Absent: requests are not traced. */
  spans?: RequestSpans | undefined;
}>;

type BunServer = ReturnType<typeof Bun.serve>;

/** Both return undefined if the routes must respond. */
export type ImmediateResponses = Readonly<{
  fromMemory: (request: Request, server: BunServer) => Response | undefined;
  withoutRouter: (request: Request, server: BunServer, span: Span | undefined) => Response | undefined;
}>;

export function createImmediateResponses(
  options: ImmediateOptions,
  connections: Pick<ReturnType<typeof createConnections>, "of" | "requestsAt">,
  labels: RouteLabels,
): ImmediateResponses {
  const { stats, spans, limiter, memory } = options;

  const cached = (request: Request, server: BunServer): Response | undefined => {
    const ready = options.cachedResponse?.(request);
    if (ready === undefined || hasSeveralHosts(request.headers)) return undefined;
    const listener = connections.requestsAt(server);
    if (memory?.isExhausted(request, listener)) return undefined;
    if (limiter !== undefined) {
      const summary = requestSummaryOf(request, connections.of(request, server));
      if (!limiter.admits(request.method, summary)) return undefined;
      limiter.charge(request.method, summary, ready);
    }
    memory?.noteSent(request, listener, ready);
    return ready;
  };

  /** The response of a read, if limits admit its request. */
  const read = (request: Request, server: BunServer, summary: RequestSummary): RoutedResponse | undefined => {
    const { method, headers } = request;
    const make = method === "GET" ? options.withoutRouter?.(summary.target) : undefined;
    // Routes reject invalid hosts.
    if (make === undefined || summary.target.host === "" || hasSeveralHosts(headers)) return undefined;
    const listener = connections.requestsAt(server);
    if (memory?.isExhausted(request, listener) || limiter?.wouldAdmit(method, summary) === false) return undefined;
    const made = attempt(make, summary.target, options.log);
    if (made === undefined) return undefined;
    limiter?.admits(method, summary);
    limiter?.charge(method, summary, made.response);
    memory?.noteSent(request, listener, made.response);
    return made;
  };

  return {
    fromMemory: (request, server) => {
      const response = cached(request, server);
      if (response === undefined) return undefined;
      const clientAddress = () => requestSummaryOf(request, connections.of(request, server)).clientAddress();
      const responded = { request, label: labels.ofCached(request.url), response, clientAddress };
      stats.respondedFromCache(responded);
      spans?.respondedFromCache(responded);
      return response;
    },
    withoutRouter: (request, server, span) => {
      const startedAt = performance.now();
      const summary = requestSummaryOf(request, connections.of(request, server));
      const made = read(request, server, summary);
      if (made === undefined) return undefined;
      const { response, pattern } = made;
      const requestId = requestIdOf(request.headers.get("x-request-id"));
      response.headers.set("X-Request-Id", requestId);
      clearLargeCookies(request, response);
      const label = labels.ofRoute(pattern, summary.target.path);
      const durationMs = performance.now() - startedAt;
      noteResponse(options, { request, context: { ...summary, requestId }, label, response, durationMs }, span);
      return response;
    },
  };
}

/** Counts, logs and traces a response. */
export function noteResponse(
  { stats, spans }: Pick<ImmediateOptions, "stats" | "spans">,
  completed: CompletedRequest,
  span: Span | undefined,
): void {
  stats.responded(completed);
  if (span !== undefined) spans?.responded(span, completed);
}

function attempt(make: () => RoutedResponse | undefined, { path }: Target, log: Log): RoutedResponse | undefined {
  try {
    return make();
  } catch (error) {
    log.warn("response without the router failed; its route is tried", { path, error });
    return undefined;
  }
}
