/**
 * The span of a request, with the labels of the metrics. Neither the query of a URL nor the address of a client is in
 * it, because spans leave the machine.
 * Source: OpenTelemetry semantic conventions 1.43, "HTTP server span"; docs/operating.md#traces.
 * @module
 */
import { endSpan, errorTypeOf, inSpan, type Span, type SpanAttributes, type Tracer } from "../lib/spans.ts";
import type { CachedRequest, CompletedRequest } from "./request-metrics.ts";
import { bytesOf, cachedPathOf, cachedTierOf, knownMethods, tierOf } from "./request-metrics.ts";
import { bodySizeOf } from "./responses.ts";
import { type RouteLabel, unrouted } from "./route-table.ts";

export type RequestSpans = Readonly<{
  /** Runs a request within its span, if it has one, which `responded` completes. */
  run: (request: Request, work: (span?: Span) => Promise<Response>) => Promise<Response>;
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
  const sharedBy = createSharedTable();
  return {
    run: (request, work) => {
      const span = begin(request.headers.get("traceparent"));
      return span === undefined ? work() : runRequest(span, work);
    },
    responded: (span, { request, context, label, response }) => {
      if (!span.trace.isSampled) return;
      const { status } = response;
      const shared = sharedBy(label, knownMethods.has(request.method) ? request.method : otherMethod, status);
      const { target, requestId, headOnly } = context;
      const attributes: SpanAttributes = {
        "url.path": target.path.slice(0, pathMax),
        "url.scheme": target.scheme,
        "cairn.request_id": requestId,
      };
      const bytes = headOnly ? 0 : bytesOf(response);
      // A body of unknown length counts as 0.
      if (bytes > 0) attributes["http.response.body.size"] = bytes;
      span.name = shared.name;
      span.shared = shared.attributes;
      span.attributes = attributes;
      const from = tierOf(response);
      if (from !== undefined) attributes["cairn.content.from"] = from;
      if (status >= 500) span.error = String(status);
    },
    respondedFromCache: ({ request, label, response }) => {
      const span = begin(request.headers.get("traceparent"));
      if (!span?.trace.isSampled) return;
      const shared = sharedBy(label, "GET", response.status);
      span.name = shared.name;
      span.shared = shared.attributes;
      span.attributes = {
        "url.path": cachedPathOf(request.url).slice(0, pathMax),
        "http.response.body.size": bodySizeOf(response),
        "cairn.content.from": cachedTierOf(response),
      };
      endSpan(span, span.startMs);
    },
  };
}

async function runRequest(span: Span, work: (span: Span) => Promise<Response>): Promise<Response> {
  try {
    return await inSpan(span, () => work(span));
  } catch (error) {
    span.error = errorTypeOf(error);
    throw error;
  } finally {
    endSpan(span);
  }
}

/** The values of a span that all requests of a route with one method and status share. */
type Shared = Readonly<{ name: string; attributes: Readonly<SpanAttributes> }>;

/** As many values as the metrics have series, but for statuses outside of the registered ones. */
function createSharedTable() {
  const byLabel = new Map<RouteLabel, Map<string, Map<number, Shared>>>();
  return (label: RouteLabel, method: string, status: number): Shared => {
    const known = byLabel.get(label)?.get(method)?.get(status);
    if (known !== undefined) return known;
    const shared = sharedOf(label, method, status);
    byLabel
      .getOrInsertComputed(label, () => new Map())
      .getOrInsertComputed(method, () => new Map())
      .set(status, shared);
    return shared;
  };
}

function sharedOf({ service, route }: RouteLabel, method: string, status: number): Shared {
  const attributes: SpanAttributes = {
    "http.request.method": method,
    "http.response.status_code": status,
    "cairn.service": service,
  };
  if (route === unrouted) return { name: method, attributes };
  return { name: `${method} ${route}`, attributes: { ...attributes, "http.route": route } };
}
