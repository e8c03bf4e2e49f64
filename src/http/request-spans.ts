/**
 * The span of a request, with the labels of the metrics. Neither the query of a URL nor the address of a client is in
 * it, because spans leave the machine.
 * Source: OpenTelemetry semantic conventions 1.43, "HTTP server span"; docs/operating.md#traces.
 * @module
 */
import {
  endSpan,
  errorTypeOf,
  type InstantSpan,
  inSpan,
  requestIdAttribute,
  type SharedValues,
  type Span,
  type SpanAttributes,
  type Tracer,
} from "../lib/spans.ts";
import type { CachedRequest, CompletedRequest, ContentTier } from "./request-metrics.ts";
import { bytesOf, cachedTierOf, contentTiers, knownMethods, tierOf } from "./request-metrics.ts";
import { bodySizeOf } from "./responses.ts";
import { type RouteLabel, unrouted } from "./route-table.ts";

export type RequestSpans = Readonly<{
  /** Runs a request within its span, if it has one, which `responded` completes. */
  run: (request: Request, work: (span?: Span) => Response | Promise<Response>) => Response | Promise<Response>;
  /** Completes the span of a request with the values of the metrics. */
  responded: (span: Span, completed: CompletedRequest) => void;
  /** Records the span of a response from the response cache. Its duration is 0, as in the metrics. */
  respondedFromCache: (cached: CachedRequest) => void;
}>;

/** The value of `http.request.method` for every other method. */
const otherMethod = "_OTHER";

/** Longest path in a span. Characters. */
const pathMax = 256;

/** @param record - Receives the spans of responses from the response cache. Must not throw. */
export function createRequestSpans({ begin, placeOf }: Tracer, record: (span: InstantSpan) => void): RequestSpans {
  const sharedBy = createSharedTable();
  return {
    run: (request, work) => {
      const span = begin(request.headers.get("traceparent"));
      return span === undefined ? work() : runRequest(span, work);
    },
    responded: (span, { request, context, label, response }) => {
      if (!span.trace.isSampled) return;
      const { status } = response;
      const method = knownMethods.has(request.method) ? request.method : otherMethod;
      const { target, requestId, headOnly } = context;
      const attributes: SpanAttributes = {
        "url.path": target.path.slice(0, pathMax),
        "url.scheme": target.scheme,
        [requestIdAttribute]: requestId,
      };
      const bytes = headOnly ? 0 : bytesOf(response);
      // A body of unknown length counts as 0.
      if (bytes > 0) attributes["http.response.body.size"] = bytes;
      span.shared = sharedBy(label, method, status, tierOf(response));
      span.attributes = attributes;
      if (status >= 500) span.error = String(status);
    },
    respondedFromCache: ({ request, requestId, label, response }) => {
      const place = placeOf(request.headers.get("traceparent"));
      if (place === undefined) return;
      const shared = sharedBy(label, "GET", response.status, cachedTierOf(response));
      record({ place, atMs: Date.now(), shared, url: request.url, requestId, size: bodySizeOf(response) });
    },
  };
}

async function runRequest(span: Span, work: (span: Span) => Response | Promise<Response>): Promise<Response> {
  try {
    return await inSpan(span, () => work(span));
  } catch (error) {
    span.error = errorTypeOf(error);
    throw error;
  } finally {
    endSpan(span);
  }
}

/** As many values as the metrics have series, but for statuses outside of the registered ones. */
function createSharedTable() {
  const byLabel = new Map<RouteLabel, Map<string, Map<number, SharedValues>>>();
  return (label: RouteLabel, method: string, status: number, from: ContentTier | undefined): SharedValues => {
    const number = status * (contentTiers.length + 1) + (from === undefined ? 0 : 1 + contentTiers.indexOf(from));
    const known = byLabel.get(label)?.get(method)?.get(number);
    if (known !== undefined) return known;
    const shared = sharedOf(label, method, status, from);
    byLabel
      .getOrInsertComputed(label, () => new Map())
      .getOrInsertComputed(method, () => new Map())
      .set(number, shared);
    return shared;
  };
}

/** The values of a span that all requests of a route with one method, status and place of content share. */
function sharedOf(
  { service, route }: RouteLabel,
  method: string,
  status: number,
  from: ContentTier | undefined,
): SharedValues {
  const attributes: SpanAttributes = {
    "http.request.method": method,
    "http.response.status_code": status,
    "cairn.service": service,
  };
  if (from !== undefined) attributes["cairn.content.from"] = from;
  if (route !== unrouted) attributes["http.route"] = route;
  return { name: route === unrouted ? method : `${method} ${route}`, attributes, encoded: undefined };
}
