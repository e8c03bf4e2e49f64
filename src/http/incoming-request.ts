/**
 * Normalises an incoming request for the routes and attaches its context.
 * Source: docs/reference/gateway.md#which-route-serves-a-request; docs/reference/gateway.md#request-ids;
 *   RFC 9112 §3.2 (Host).
 * @module
 */
import { Failure } from "../failures.ts";
import { type RequestMemory, unlimitedMemory } from "./body-memory.ts";
import { clientAddressOf } from "./client-address.ts";
import { type RequestContext, type RequestSummary, requestIdOf, setContext } from "./request-context.ts";
import { checkHeadSize } from "./request-limits.ts";
import { hostPort, readSegments, readTarget, type Target, writePath } from "./request-target.ts";

export type Connection = Readonly<{
  /** Address of the peer; "" when it is not known. */
  peerAddress: () => string;
  /** Whether the peer at this address is a proxy whose `X-Forwarded-…` headers are read. */
  isTrustedProxy: (address: string) => boolean;
  extendIdleTimeout: (seconds: number) => void;
}>;

/** A request with its context; `rejected` when no route may handle it. */
export type Received = Readonly<{ request: Request; context: RequestContext; rejected?: Failure }>;

/** Elysia looks for the path after a host of at least this length; a shorter host is replaced. */
const hostLengthMin = 4;
const placeholderHost = "localhost";

/** The parts of a request that limits apply to. Its path is as it arrived. */
export function requestSummaryOf(arrived: Request, connection: Connection): RequestSummary {
  return {
    target: readTarget(arrived.url),
    headOnly: arrived.method === "HEAD",
    clientAddress: () =>
      clientAddressOf(connection.peerAddress(), arrived.headers.get("x-forwarded-for"), connection.isTrustedProxy),
  };
}

/** @param pathOf - The path of a target for routes. */
export function receive(
  arrived: Request,
  connection: Connection,
  memory: RequestMemory = unlimitedMemory,
  pathOf: (target: Target) => string = ({ path }) => path,
): Received {
  const { target: raw, ...asker } = requestSummaryOf(arrived, connection);
  const parts = {
    ...asker,
    requestId: requestIdOf(arrived.headers.get("x-request-id")),
    scheme: schemeOf(arrived, raw, connection),
    host: hostOf(arrived, raw, connection),
    extendIdleTimeout: connection.extendIdleTimeout,
    memory,
  };
  try {
    const target = { ...raw, path: pathOf({ ...raw, path: canonicalPath(raw.path) }) };
    checkHost(arrived, raw);
    checkHeadSize(arrived, raw);
    const context = { ...parts, target, segments: readSegments(target.path) };
    const request = routable(arrived, raw, target);
    setContext(request, context);
    return { request, context };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const context = { ...parts, target: raw, segments: [] };
    setContext(arrived, context);
    return { request: arrived, context, rejected: error };
  }
}

function canonicalPath(path: string): string {
  return path.includes("%") ? writePath(readSegments(path)) : path;
}

/**
 * Rejects an invalid Host, and several of them. Bun returns a bare path for a missing Host, which HTTP/1.0 allows, and
 * for an invalid one. Of several hosts, Bun uses the first; a proxy may have used another.
 */
function checkHost(request: Request, target: Target): void {
  const sent = request.headers.get("host");
  if (sent === null || sent === "") return;
  if (target.host === "" || hasSeveralHosts(request.headers)) throw new Failure("malformed_host", { host: sent });
}

/** Whether a request has more than one Host header; the runtime joins them by commas, which no host contains. */
export function hasSeveralHosts(headers: Headers): boolean {
  return headers.get("host")?.includes(",") ?? false;
}

function schemeOf(request: Request, target: Target, connection: Connection): string {
  const forwarded = request.headers.get("x-forwarded-proto");
  const named = forwarded === "http" || forwarded === "https" ? forwarded : undefined;
  return named !== undefined && connection.isTrustedProxy(connection.peerAddress()) ? named : target.scheme;
}

/** A name or an IPv4 address, or an IPv6 address in brackets; a port may follow. */
const hostPattern = /^(?:[a-z0-9](?:[a-z0-9._-]{0,253}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/;

/** The host that a trusted proxy forwards, otherwise the Host header; "" for an invalid host. */
function hostOf(request: Request, target: Target, connection: Connection): string {
  const forwardedHost = request.headers.get("x-forwarded-host")?.toLowerCase();
  const forwardedPort = request.headers.get("x-forwarded-port");
  const isForwarded =
    (forwardedHost !== undefined || forwardedPort !== null) && connection.isTrustedProxy(connection.peerAddress());
  const isNamedHost = isForwarded && forwardedHost !== undefined && hostPattern.test(forwardedHost);
  const host = isNamedHost ? forwardedHost : target.host;
  if (!hostPattern.test(host)) return "";
  const port = isForwarded ? Number(forwardedPort ?? "") : 0;
  const isNamed = Number.isInteger(port) && port > 0 && port < 65_536 && hostPort(host) === "";
  return isNamed && port !== defaultPorts[schemeOf(request, target, connection)] ? `${host}:${port}` : host;
}

const defaultPorts: Readonly<Record<string, number>> = { http: 80, https: 443 };

/** The request for the routes: with GET for HEAD, a host of enough characters, and the canonical path. */
function routable(arrived: Request, raw: Target, target: Target): Request {
  const isShort = raw.host.length < hostLengthMin;
  if (arrived.method !== "HEAD" && !isShort && raw.path === target.path) return arrived;
  const query = raw.query === "" ? "" : `?${raw.query}`;
  const url = `${raw.scheme}://${isShort ? placeholderHost : raw.host}${target.path}${query}`;
  const method = arrived.method === "HEAD" ? "GET" : arrived.method;
  const { headers, signal } = arrived;
  if (method === "GET") return new Request(url, { method, headers, signal });
  return new Request(url, { method, headers, signal, body: arrived.body });
}
