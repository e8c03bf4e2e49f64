/**
 * Responses that are made at once, before the routes: those from the response cache, and those that one read makes.
 * They are within the same limits as all others, and counted with them.
 *
 * What else a request needs for its routes (its canonical path, an account of memory, promises) takes 12 µs of 60 of a
 * record from the index (measured, bench/http/routes.ts). Responses from the cache have an id only if the client sent
 * one, as proxies do, and their requests' heads are not measured: of their 12 µs, an id that was sent takes 0.5, one
 * that is made would take 3, and the size of the head 5 (measured).
 * Source: docs/decisions/093-request-heads.md.
 * @module
 */
import type { Span } from "../lib/spans.ts";
import type { BodyMemory } from "./body-memory.ts";
import { hasSeveralHosts, requestSummaryOf } from "./incoming-request.ts";
import type { createConnections } from "./listener.ts";
import type { RateLimiter } from "./rate-limiter.ts";
import { type RequestSummary, requestIdOf } from "./request-context.ts";
import { clearLargeCookies, hasLargeHead } from "./request-limits.ts";
import type { CompletedRequest, RequestMetrics } from "./request-metrics.ts";
import type { RequestSpans } from "./request-spans.ts";
import type { Target } from "./request-target.ts";
import { countedBytesMin, heldMemoryOf } from "./responses.ts";
import type { RoutedResponse, RouteLabels } from "./route-table.ts";

export type ImmediateOptions = Readonly<{
  /** Responds from the response cache, or returns undefined; notes the size of the body. Called first. */
  cachedResponse?: (request: Request) => Response | undefined;
  /**
   * Finds what responds to a GET request with less work than the router: it returns a complete response with status
   * 200, CORS headers and a noted size, and is called only if the limits admit the request. The routes respond where
   * nothing is found, where it returns undefined, and where it throws.
   */
  withoutRouter?: (target: Target) => (() => RoutedResponse | undefined) | undefined;
  /** Absent: requests have no rate limit. */
  limiter?: RateLimiter | undefined;
  /** Memory of bodies; absent: unlimited. */
  memory?: BodyMemory | undefined;
  stats: Pick<RequestMetrics, "responded" | "respondedFromCache">;
  /** Absent: requests are not traced. */
  spans?: RequestSpans | undefined;
}>;

type BunServer = ReturnType<typeof Bun.serve>;

/** What a read came to that sent nothing. */
export type Unsent = Readonly<{
  /** Admitted; its memory must be taken before it is sent. */
  response?: RoutedResponse;
  /** Why the routes must respond, if the read failed. */
  error?: unknown;
}>;

export type ImmediateResponses = Readonly<{
  /** Undefined: the response is not in memory, or may not be sent from there. */
  fromMemory: (request: Request, server: BunServer) => Response | undefined;
  /** @param startedAt - `performance.now()` when the request arrived. */
  withoutRouter: (request: Request, server: BunServer, startedAt: number, span?: Span) => Response | Unsent;
}>;

const nothing: Unsent = {};

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

  /** Makes a response by one read, if limits admit its request, and takes its first token. */
  const read = (request: Request, server: BunServer, summary: RequestSummary): Unsent => {
    const { method, headers } = request;
    const make = options.withoutRouter?.(summary.target);
    // Routes know which requests without a valid host are rejected.
    if (make === undefined || summary.target.host === "" || hasSeveralHosts(headers)) return nothing;
    if (hasLargeHead(request, summary.target) || memory?.isExhausted(request, connections.requestsAt(server)))
      return nothing;
    if (limiter?.wouldAdmit(method, summary) === false) return nothing;
    let response: RoutedResponse | undefined;
    try {
      response = make();
    } catch (error) {
      return { error };
    }
    if (response === undefined) return nothing;
    limiter?.admits(method, summary);
    return { response };
  };

  return {
    fromMemory: (request, server) => {
      const response = cached(request, server);
      if (response === undefined) return undefined;
      const given = request.headers.get("x-request-id");
      const requestId = given === null ? undefined : requestIdOf(given);
      if (requestId !== undefined) response.headers.set("X-Request-Id", requestId);
      const clientAddress = () => requestSummaryOf(request, connections.of(request, server)).clientAddress();
      const responded = { request, requestId, label: labels.ofCached(request.url), response, clientAddress };
      stats.respondedFromCache(responded);
      spans?.respondedFromCache(responded);
      return response;
    },
    withoutRouter: (request, server, startedAt, span) => {
      if (options.withoutRouter === undefined || request.method !== "GET") return nothing;
      const summary = requestSummaryOf(request, connections.of(request, server));
      const made = read(request, server, summary);
      if (made.response === undefined || holdsOwnMemory(made.response.response)) return made;
      const { response, pattern } = made.response;
      limiter?.charge(request.method, summary, response);
      memory?.noteSent(request, connections.requestsAt(server), response);
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

/** Whether a body holds memory that must be free before it is sent. */
function holdsOwnMemory(response: Response): boolean {
  const held = heldMemoryOf(response);
  return held?.kind === "bytes" && held.bytes >= countedBytesMin;
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
