/**
 * The context of a request: its id for the logs, its target, whether it is HEAD, and how long its connection may be
 * silent.
 * Source: docs/reference/gateway.md#request-ids.
 * @module
 */
import type { Composing } from "../lib/event-loop.ts";
import { type RequestMemory, unlimitedMemory } from "./body-memory.ts";
import { readSegments, readTarget, type Target } from "./request-target.ts";

export type RequestContext = Readonly<{
  requestId: string;
  /** The path is canonical: escapes only where they are needed. */
  target: Target;
  /** The path's segments, decoded. */
  segments: readonly string[];
  /** HEAD: routes see a GET. Routes for which a body is costly omit the body and set Content-Length. */
  headOnly: boolean;
  /** Scheme of the client's URL, also behind a proxy. */
  scheme: string;
  /** Host of the client's URL, with its port unless it is the default; "" when unknown. */
  host: string;
  /** Address of the client, by trusted proxies; "" when unknown. */
  clientAddress: () => string;
  /** Sets the idle timeout of the connection, 0 to 255 seconds: sources can take longer than the default. */
  extendIdleTimeout: (seconds: number) => void;
  /** Memory that the bodies of this request and its response hold. */
  memory: RequestMemory;
}>;

export type RequestSummary = Pick<RequestContext, "target" | "headOnly" | "clientAddress">;

const contexts = new WeakMap<Request, RequestContext>();

export function setContext(request: Request, context: RequestContext): void {
  contexts.set(request, context);
}

/**
 * The context of a request; created for one that came through no server (a test's `app.handle`).
 *
 * @throws Failure `malformed_path` for a request that came through no server.
 */
export function contextOf(request: Request): RequestContext {
  const known = contexts.get(request);
  if (known !== undefined) return known;
  const target = readTarget(request.url);
  const context: RequestContext = {
    requestId: requestIdOf(request.headers.get("x-request-id")),
    target,
    segments: readSegments(target.path),
    headOnly: request.method === "HEAD",
    scheme: target.scheme,
    host: target.host,
    clientAddress: () => "",
    extendIdleTimeout: () => undefined,
    memory: unlimitedMemory,
  };
  contexts.set(request, context);
  return context;
}

/** How a response body is composed: until the client disconnects, within the memory of responses. */
export function composingOf(request: Request): Composing {
  const { holdResponse: hold, ...compositions } = contextOf(request).memory;
  return { signal: request.signal, hold, ...compositions };
}

const requestIdPattern = /^[A-Za-z0-9._:-]{1,128}$/;

/** Random bytes of a generated id. */
const generatedBytes = 16;

/** Returns the id in the `X-Request-Id` header if it is valid; otherwise generates 22 base64url characters. */
export function requestIdOf(given: string | null): string {
  if (given !== null && requestIdPattern.test(given)) return given;
  return crypto.getRandomValues(new Uint8Array(generatedBytes)).toBase64({ alphabet: "base64url", omitPadding: true });
}
