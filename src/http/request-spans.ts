/**
 * The span of a request, with the labels of the metrics. Neither the query of a URL nor the address of a client is in
 * it, because spans leave the machine.
 * Source: OpenTelemetry semantic conventions 1.43, "HTTP server span"; docs/operating.md#traces.
 * @module
 */
import { endSpan, errorTypeOf, inSpan, type Span, type Tracer } from "../lib/spans.ts";
import type { CachedRequest, CompletedRequest, ContentTier } from "./request-metrics.ts";
import { bytesOf, cachedPathOf, cachedTierOf, knownMethods, tierOf } from "./request-metrics.ts";
import { bodySizeOf } from "./responses.ts";
import { type RouteLabel, unrouted } from "./route-table.ts";

export type RequestSpans = Readonly<{
  /** Runs a request within its span, which `responded` completes. */
  run: (request: Request, work: (span: Span) => Promise<Response>) => Promise<Response>;
  /** Completes the span of a request with the values of the metrics. */
  responded: (span: Span, completed: CompletedRequest) => void;
  /** Records the span of a response from the response cache. Its duration is 0, as in the metrics. */
  respondedFromCache: (cached: CachedRequest) => void;
}>;

/** The value of `http.request.method` for every other method. */
const otherMethod = "_OTHER";

/** Longest path in a span. Characters. */
const pathMax = 256;

export function createRequestSpans(begin: Tracer): RequestSpans {
  return {
    run: async (request, work) => {
      const span = begin(request.headers.get("traceparent"));
      try {
        return await inSpan(span, () => work(span));
      } catch (error) {
        span.error = errorTypeOf(error);
        throw error;
      } finally {
        endSpan(span);
      }
    },
    responded: (span, { request, context, label, response }) => {
      if (!span.trace.isSampled) return;
      const { status } = response;
      const method = knownMethods.has(request.method) ? request.method : otherMethod;
      note(span, { label, method, path: context.target.path, status });
      const { attributes } = span;
      attributes["url.scheme"] = context.target.scheme;
      attributes["http.response.body.size"] = context.headOnly ? 0 : bytesOf(response);
      attributes["cairn.request_id"] = context.requestId;
      const from = tierOf(response);
      if (from !== undefined) attributes["cairn.content.from"] = from;
      if (status >= 500) span.error = String(status);
    },
    respondedFromCache: ({ request, label, response }) => {
      const span = begin(request.headers.get("traceparent"));
      if (!span.trace.isSampled) return;
      note(span, { label, method: "GET", path: cachedPathOf(request.url), status: response.status });
      const from: ContentTier = cachedTierOf(response);
      span.attributes["http.response.body.size"] = bodySizeOf(response);
      span.attributes["cairn.content.from"] = from;
      endSpan(span);
    },
  };
}

type Noted = Readonly<{ label: RouteLabel; method: string; path: string; status: number }>;

function note(span: Span, { label, method, path, status }: Noted): void {
  const { service, route } = label;
  const isRouted = route !== unrouted;
  span.name = isRouted ? `${method} ${route}` : method;
  span.attributes = {
    "http.request.method": method,
    "url.path": path.slice(0, pathMax),
    "http.response.status_code": status,
    "cairn.service": service,
  };
  if (isRouted) span.attributes["http.route"] = route;
}
