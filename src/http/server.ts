/**
 * HTTP server: from a request to a response, the same for every service.
 *
 * Only this file converts a Failure to a response, and distinguishes 404 from 405.
 * Source: docs/reference/gateway.md#which-route-serves-a-request; docs/reference/gateway.md#errors;
 *   docs/reference/gateway.md#request-ids; RFC 9110 §9.3.2 (HEAD).
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { type Failure, failures } from "../failures.ts";
import type { Log } from "../lib/log.ts";
import type { Span } from "../lib/spans.ts";
import { clientClosedStatus, reportsDisconnect } from "./client-disconnect.ts";
import { corsHeaders, isAdministration, preflightResponse } from "./cors.ts";
import { createImmediateResponses, type ImmediateOptions, noteResponse, type Unsent } from "./immediate-responses.ts";
import { type Received, receive } from "./incoming-request.ts";
import { type Certificate, createConnections, openListener, reachableHost } from "./listener.ts";
import type { Admission, PaidReads } from "./paid-reads.ts";
import { contextOf, type RequestContext } from "./request-context.ts";
import { clearLargeCookies } from "./request-limits.ts";
import type { Target } from "./request-target.ts";
import { codeResponse, failureMessageOf, failureResponse, sizeOf, withBodySize } from "./responses.ts";
import { failureOf } from "./route-schema.ts";
import {
  createRouteLabels,
  createRouteTable,
  type RouteLabel,
  type RouteLabels,
  type RouteTable,
  type ServiceName,
  unrouted,
} from "./route-table.ts";

export type ServerOptions = ImmediateOptions &
  Readonly<{
    hostname: string;
    /** 0 takes a free port. */
    port: number;
    /** Composes the routes, at the first request that needs them: a program is started before any service is used. */
    app: () => AnyElysia;
    /** Other services of the listener: each has all routes of some targets, and `app` has none of theirs. */
    mounts?: readonly Mount[];
    /** Shows a failure to a person; undefined where the client gets its JSON. */
    failurePage?: (request: Request, failure: ShownFailure) => Response | undefined;
    /** The path by which routes, limits and metrics see a request. Default: its own. */
    pathOf?: (target: Target) => string;
    /** HTTPS with a certificate, HTTP without. */
    certificate?: Certificate | undefined;
    /** Idle timeout of a connection. Default: {@link idleSecondsMax}. */
    idleSeconds?: number;
    /** Largest request body of any route; routes have smaller limits of their own. Bytes. */
    bodyBytesMax: number;
    /** Whether the peer at this address is a proxy whose `X-Forwarded-…` headers are read. */
    isTrustedProxy?: (address: string) => boolean;
    /** Sells requests beyond the rate limits; absent: none are sold. */
    paidReads?: PaidReads | undefined;
    log: Log;
    /** The service of the listener, for metrics. Default: the gateway. */
    service?: ServiceName;
  }>;

/** Routes that are composed apart from those of their listener. */
export type Mount = Readonly<{
  /** Composes the routes, at the first request for such a target. */
  app: () => AnyElysia;
  serves: (target: Target) => boolean;
}>;

/** A response that was made from a failure. */
export type ShownFailure = Readonly<{
  response: Response;
  /** Without its JSON. */
  message: string;
  /** Of the request, as the routes see it. */
  context: Pick<RequestContext, "target" | "scheme" | "host">;
}>;

export type HttpServer = Readonly<{
  port: number;
  /** Origin at which this machine reaches the server. */
  url: string;
  /**
   * Serves new connections with another certificate; only for an HTTPS server.
   * @throws Error when the certificate and the key are invalid; the previous certificate stays in use.
   */
  renew: (certificate: Certificate) => void;
  /** From now on every response closes its connection, so that keep-alive clients reconnect elsewhere. */
  drain: () => void;
  /** Accepts no new connections, waits at most `graceMs` for responses, then cuts connections. Idempotent. */
  close: (graceMs: number) => Promise<void>;
}>;

/** Idle timeout of a connection: a paused client reconnects, and a stuck client must not stay. Seconds. */
const idleSecondsMax = 60;

type BunServer = ReturnType<typeof Bun.serve>;

/** The routes of a listener, composed. */
type ComposedRoutes = Readonly<{ root: AnyElysia; table: RouteTable }>;

/** Opens a listener. Throws when the port is taken. */
export function openServer(options: ServerOptions): HttpServer {
  const { spans, memory, log } = options;
  const idleSeconds = options.idleSeconds ?? idleSecondsMax;
  const routesOf = createRoutesOf(options);
  const labels = createRouteLabels(options.service ?? "gateway");
  const connections = createConnections({
    isTrustedProxy: options.isTrustedProxy,
    isEncrypted: options.certificate !== undefined,
    idleSeconds,
  });
  const immediate = createImmediateResponses(options, connections, labels);
  let draining = false;

  const reply = async (
    arrived: Request,
    server: BunServer,
    { startedAt, unsent }: Before,
    span?: Span,
  ): Promise<Response> => {
    const account = memory?.open(arrived, connections.requestsAt(server));
    const received = receive(arrived, connections.of(arrived, server), account, options.pathOf);
    const { context } = received;
    if (unsent.error !== undefined)
      log.warn("a read failed; its route is tried", { requestId: context.requestId, error: unsent.error });
    const admission: Admission = unsent.response === undefined ? await admit(options, received, arrived.method) : {};
    const { rejected } = admission;
    const made = rejected ?? found(received, unsent) ?? (await route(received, routesOf));
    const settled = account === undefined ? made : await account.settle(made);
    connections.resetIdleTimeout(arrived, server, settled);
    const response = finish(shownTo(arrived, received, settled, options), context, draining);
    clearLargeCookies(arrived, response);
    await charge(options, admission, received, arrived.method, response);
    const label = rejected === undefined ? labelOf(received, labels) : labels.ofUnrouted(context.target.path);
    const durationMs = performance.now() - startedAt;
    noteResponse(options, { request: arrived, context, label, response, durationMs }, span);
    return context.headOnly ? await headersOnly(response) : response;
  };

  const handle = (request: Request, server: BunServer): Response | Promise<Response> => {
    const ready = draining ? undefined : immediate.fromMemory(request, server);
    if (ready !== undefined) return ready;
    const startedAt = performance.now();
    const respond = (span?: Span) => {
      const made = draining ? {} : immediate.withoutRouter(request, server, startedAt, span);
      return made instanceof Response ? made : reply(request, server, { startedAt, unsent: made }, span);
    };
    return spans === undefined ? respond() : spans.run(request, respond);
  };

  const drain = () => {
    draining = true;
  };
  return openAt(options, idleSeconds, handle, drain);
}

/** What happened to a request before it came to the routes. */
type Before = Readonly<{
  /** `performance.now()` when it arrived. */
  startedAt: number;
  unsent: Unsent;
}>;

type Handle = (request: Request, server: BunServer) => Response | Promise<Response>;

function openAt(options: ServerOptions, idleSeconds: number, handle: Handle, drain: () => void): HttpServer {
  const { hostname, port, certificate, bodyBytesMax, log } = options;
  const error = (thrown: Error) => unsentResponse(thrown, log);
  const listener = openListener({
    hostname,
    port,
    certificate,
    bodyBytesMax,
    idleSecondsMax: idleSeconds,
    fetch: handle,
    error,
  });
  let closing: Promise<void> | undefined;
  const scheme = certificate === undefined ? "http" : "https";
  return {
    port: listener.port,
    url: `${scheme}://${reachableHost(hostname)}:${listener.port}`,
    renew: listener.renew,
    drain,
    close: (graceMs) => {
      drain();
      closing ??= listener.close(graceMs);
      return closing;
    },
  };
}

function unsentResponse(error: Error, log: Log): Response {
  log.error("response could not be sent", { error });
  return codeResponse(isMissingFile(error) ? "busy" : "internal");
}

type Limits = Pick<ServerOptions, "limiter" | "paidReads">;

/** Admits a request within the rate limits or for a payment. */
async function admit(
  { limiter, paidReads }: Limits,
  { request, context }: Received,
  method: string,
): Promise<Admission> {
  if (paidReads !== undefined) return await paidReads.admit(request, method, context);
  return { rejected: limiter?.reject(method, context) };
}

/** Charges the cost of a response. */
async function charge(
  { limiter, paidReads }: Limits,
  { rejected, reader, headers = {} }: Admission,
  { context }: Received,
  method: string,
  response: Response,
): Promise<void> {
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
  if (reader !== undefined) await paidReads?.charge(reader, context, response);
  else if (rejected === undefined) limiter?.charge(method, context, response);
}

/** The page of a failure where a person gets one; otherwise the response itself. */
function shownTo(
  arrived: Request,
  { request, context }: Received,
  response: Response,
  { failurePage }: ServerOptions,
): Response {
  const message = failureMessageOf(response) ?? failureMessages.get(request);
  if (message === undefined) return response;
  return failurePage?.(arrived, { response, message, context }) ?? response;
}

/** Messages of failures by request: the response that the router passes on is another object than the handler's. */
const failureMessages = new WeakMap<Request, string>();

/** Finds the routes of a target. */
function createRoutesOf({ app, mounts = [], log }: ServerOptions): (target: Target) => ComposedRoutes {
  const composedOnce = (each: () => AnyElysia) => {
    let composed: ComposedRoutes | undefined;
    return () => {
      composed ??= compose(each(), log);
      return composed;
    };
  };
  const own = composedOnce(app);
  const mounted = mounts.map((each) => ({ serves: each.serves, routes: composedOnce(each.app) }));
  return (target) => (mounted.find(({ serves }) => serves(target))?.routes ?? own)();
}

function compose(app: AnyElysia, log: Log): ComposedRoutes {
  const table = createRouteTable(app.routes);
  return { root: withErrorHandler(app, table, log).compile(), table };
}

/** Adds the handler that converts thrown errors to responses. */
function withErrorHandler(app: AnyElysia, table: RouteTable, log: Log): AnyElysia {
  const noted = (request: Request, response: Response): Response => {
    const message = failureMessageOf(response);
    if (message !== undefined) failureMessages.set(request, message);
    return response;
  };
  return new Elysia({ strictPath: true })
    .onTransform({ as: "global" }, ({ request, route }) => void routes.set(request, route))
    .onError({ as: "global" }, ({ error, code, request, route }) => {
      const { requestId, target } = contextOf(request);
      routes.set(request, code === "NOT_FOUND" ? unrouted : route);
      if (code === "NOT_FOUND") return noted(request, unroutedResponse(request.method, table.methodsOf(target.path)));
      if (reportsDisconnect(error, request.signal)) return new Response(null, { status: clientClosedStatus });
      const failure = failureOf(error);
      if (failure !== undefined) return noted(request, loggedFailure(failure, requestId, log));
      log.error("defect", { requestId, error });
      return noted(request, codeResponse("internal"));
    })
    .use(app);
}

/** Patterns of matched routes. Absent: content on a host of its own, or a request rejected before any route. */
const routes = new WeakMap<Request, string>();

function labelOf({ request, context, rejected }: Received, labels: RouteLabels): RouteLabel {
  const { path } = context.target;
  const pattern = routes.get(request);
  if (rejected !== undefined || pattern === unrouted) return labels.ofUnrouted(path);
  return labels.ofRoute(pattern, path);
}

/** The response that was found without the router. */
function found({ request }: Received, { response }: Unsent): Response | undefined {
  if (response !== undefined) routes.set(request, response.pattern);
  return response?.response;
}

async function route(received: Received, routesOf: (target: Target) => ComposedRoutes): Promise<Response> {
  const { request, context, rejected } = received;
  if (rejected !== undefined) return failureResponse(rejected);
  const { path } = context.target;
  const { root, table } = routesOf(context.target);
  if (request.method !== "OPTIONS" || isAdministration(path)) return withSize(request, await root.fetch(request));
  routes.set(request, unrouted);
  const methods = table.methodsOf(path);
  const asked = request.headers.get("access-control-request-headers");
  return preflightResponse(methods.length > 0 ? methods : contentMethods, asked);
}

/** Notes the size of an error's body: the router's copy of the response has lost it. */
function withSize(request: Request, response: Response): Response {
  const message = failureMessages.get(request);
  return message === undefined ? response : withBodySize(response, sizeOf(JSON.stringify(message)));
}

/** Methods of a path without a route, which may be content. */
const contentMethods = ["GET", "HEAD", "OPTIONS"] as const;

/** The response of a request without a route: no route has the path, or no route of the path has the method. */
function unroutedResponse(method: string, methods: readonly string[]): Response {
  if (methods.length === 0 || methods.includes(method)) return codeResponse("not_found");
  return codeResponse("method_not_allowed", { Allow: methods.join(", ") });
}

function loggedFailure(failure: Failure, requestId: string, log: Log): Response {
  const { code, context, cause } = failure;
  if (failures[code].status >= 500) log.warn("request failed", { requestId, code, context, cause });
  else log.debug("request rejected", { requestId, code, context });
  return failureResponse(failure);
}

/** Whether a cached file was evicted before it was opened. A repeated request finds another source. */
function isMissingFile(error: Error): boolean {
  return "code" in error && error.code === "ENOENT";
}

/**
 * Adds the request's id, CORS outside of administration, whose responses are not stored, and `Connection: close`
 * when the listener is closing.
 */
export function finish(response: Response, context: RequestContext, draining: boolean): Response {
  const { headers } = response;
  headers.set("X-Request-Id", context.requestId);
  if (isAdministration(context.target.path)) headers.set("Cache-Control", "no-store");
  else if (!headers.has("Access-Control-Allow-Origin"))
    for (const [name, value] of Object.entries(corsHeaders)) headers.set(name, value);
  if (draining) headers.set("Connection", "close");
  return response;
}

/**
 * The headers of a response without its body, with the length of the body.
 *
 * Routes for whose bodies that would be costly leave the body out and set Content-Length themselves.
 */
async function headersOnly(response: Response): Promise<Response> {
  const { status } = response;
  const headers = new Headers(response.headers);
  // Bun sets Date on every response except those to HEAD.
  if (!headers.has("Date")) headers.set("Date", new Date().toUTCString());
  if (!headers.has("Content-Length") && hasBody(status))
    headers.set("Content-Length", String((await response.arrayBuffer()).byteLength));
  else await response.body?.cancel();
  return new Response(null, { status, headers });
}

/** Whether responses of this status have a body. */
function hasBody(status: number): boolean {
  return status >= 200 && status !== 204 && status !== 304;
}
