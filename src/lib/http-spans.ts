/**
 * Spans of calls to other machines: host, status and bytes, but no URL, whose path may have a key.
 * Source: OpenTelemetry semantic conventions 1.43, "HTTP client span"; docs/decisions/101-traces.md.
 * @module
 */
import { endSpan, errorTypeOf, isTraced, type Span, spanKinds, startSpan, traceparentFor } from "./spans.ts";

type Called = Readonly<{ method: string; url: string; headers?: Readonly<Record<string, string>> }>;

/** The result of a call: of a fault, `status` and `reason`. */
type Replied =
  | Readonly<{ kind: "response"; status: number; body: Uint8Array }>
  | Readonly<{ kind: "stream"; status: number }>
  | Readonly<{ kind: "fault"; status?: number; reason: string }>;

/** A traced call. */
export type TracedCall<Request> = Readonly<{
  /** With `traceparent`, where the machine is one of the operator's own. */
  request: Request;
  /** Ends the span of a complete response or a fault; that of a stream ends with its body. */
  replied: (reply: Replied) => void;
  /** Ends the span of a streamed body. @param error - Undefined for a complete body. */
  streamed: (bytes: number, error: unknown) => void;
  /** Ends the span of a call that rejects. */
  failed: (error: unknown) => void;
}>;

/**
 * Begins the span of a call; `undefined` outside of a traced request.
 *
 * @param isStranger - The machine was learned from others: it gets no `traceparent`.
 */
export function traceCall<Request extends Called>(
  request: Request,
  isStranger: boolean,
): TracedCall<Request> | undefined {
  if (!isTraced()) return undefined;
  const url = URL.parse(request.url);
  if (url === null) return undefined;
  const span = startSpan(request.method, spanKinds.client);
  if (span !== undefined) {
    span.attributes = {
      "http.request.method": request.method,
      "server.address": url.hostname,
      "server.port": Number(url.port || (url.protocol === "https:" ? 443 : 80)),
    };
  }
  const traceparent = isStranger ? undefined : traceparentFor(url.origin, span);
  return {
    request: traceparent === undefined ? request : { ...request, headers: { ...request.headers, traceparent } },
    replied: (reply) => span && noteReply(span, reply),
    streamed: (bytes, error) => span && noteBody(span, bytes, error),
    failed: (error) => span && fail(span, errorTypeOf(error)),
  };
}

function noteReply(span: Span, reply: Replied): void {
  if (reply.status !== undefined) span.attributes["http.response.status_code"] = reply.status;
  if (reply.kind === "fault") fail(span, reply.reason);
  else if (reply.status >= 400) span.error = String(reply.status);
  if (reply.kind === "response") noteBody(span, reply.body.length, undefined);
}

function noteBody(span: Span, bytes: number, error: unknown): void {
  span.attributes["http.response.body.size"] = bytes;
  if (error !== undefined) span.error = errorTypeOf(error);
  endSpan(span);
}

function fail(span: Span, type: string): void {
  span.error = type;
  endSpan(span);
}
