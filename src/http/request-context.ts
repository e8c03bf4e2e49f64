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
  /** The path is in its one spelling: escapes only where they are needed. */
  target: Target;
  /** The path's segments, decoded. */
  segments: readonly string[];
  /** HEAD: routes see a GET, and those for which a body is costly leave it out and set Content-Length. */
  headOnly: boolean;
  /** Scheme of the client's URL, also behind a proxy. */
  scheme: string;
  /** Host of the client's URL, with its port unless it is the default; "" when unknown. */
  host: string;
  /** Address of the client, by trusted proxies; "" when unknown. */
  clientAddress: () => string;
  /**
   * Lets the connection be silent for this many seconds, 0 to 255; sources take longer than the usual limit.
   */
  allowSilence: (seconds: number) => void;
  /** What bodies of this request and its response hold in memory. */
  memory: RequestMemory;
}>;

export type Asker = Pick<RequestContext, "target" | "headOnly" | "clientAddress">;

const contexts = new WeakMap<Request, RequestContext>();

/** Attaches the context to a request. */
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
    allowSilence: () => undefined,
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

const fitPattern = /^[A-Za-z0-9._:-]{1,128}$/;

/** Random bytes in an id that is made here. */
const madeBytes = 16;

/** Gives the id of a request from its `X-Request-Id` header, or makes one of 22 base64url characters. */
export function requestIdOf(given: string | null): string {
  if (given !== null && fitPattern.test(given)) return given;
  return crypto.getRandomValues(new Uint8Array(madeBytes)).toBase64({ alphabet: "base64url", omitPadding: true });
}
