/**
 * The registered routes: the methods of a path, and the labels by which metrics and the access log name a request: the
 * service and the pattern of the route. The number of labels is bounded by the number of routes.
 * @module
 */
import { isAdministration } from "./cors.ts";

/** A registered route. */
export type RegisteredRoute = Readonly<{
  method: string;
  path: string;
  /** The schemas and the description that the route declares. */
  hooks?: Readonly<{ detail?: unknown; params?: unknown }>;
}>;

export type RouteTable = Readonly<{
  /**
   * Methods of a path: HEAD if it has GET, OPTIONS last (except in administration, which has no preflight). Empty when
   * no route has the path.
   */
  methodsOf: (path: string) => readonly string[];
}>;

/** The pattern of the content route. It matches every path, so it does not show that a path exists. */
const catchAll = "/*";

/** Creates the table; a route for every method (`ALL`) counts as GET and POST. */
export function createRouteTable(routes: readonly RegisteredRoute[]): RouteTable {
  const patterns = routes
    .filter(({ path }) => path !== catchAll)
    .map(({ method, path }) => ({ methods: methodsOf(method), pattern: patternOf(path) }));
  return {
    methodsOf: (path) => {
      const found = new Set(patterns.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => methods));
      if (found.size === 0) return [];
      found.delete("OPTIONS");
      return isAdministration(path) ? [...found] : [...found, "OPTIONS"];
    },
  };
}

function methodsOf(method: string): string[] {
  if (method === "GET") return ["GET", "HEAD"];
  return method === "ALL" ? ["GET", "HEAD", "POST"] : [method];
}

function patternOf(path: string): RegExp {
  const parts = path.split("/").map((part) => {
    if (part === "*") return ".*";
    return part.startsWith(":") ? "[^/]+" : part.replace(/[.+?^${}()|[\]\\]/g, "\\$&");
  });
  return new RegExp(`^${parts.join("/")}$`);
}

const services = ["gateway", "payment", "upload", "admin"] as const;
export type ServiceName = (typeof services)[number];

/** A response, and the pattern of the route that would have made it. */
export type RoutedResponse = Readonly<{ response: Response; pattern: string }>;

/** A service, and the pattern of a route of it: `/tx/{id}/offset`. */
export type RouteLabel = Readonly<{ service: ServiceName; route: string }>;

/** The label of requests without a route: unknown paths and methods, preflights, rejected requests. */
export const unrouted = "unrouted";

/** Content, by its id or by its host. */
const contentRoute = "/{id}";
const rawRoute = "/raw/{id}";

/** Routes of chunks. */
const chunkRoutes = ["/chunk/{offset}", "/chunk/{offset}/data"] as const;

export type RouteLabels = Readonly<{
  /** @param pattern - As registered, prefixes included; undefined for content on a host of its own. */
  ofRoute: (pattern: string | undefined, path: string) => RouteLabel;
  /** For a request without a route. */
  ofUnrouted: (path: string) => RouteLabel;
  /** For a response from the response cache. */
  ofCached: (url: string) => RouteLabel;
}>;

/** @param listener - Service of the listener; the gateway's listener has the other services below prefixes. */
export function createRouteLabels(listener: ServiceName): RouteLabels {
  const known = new Map<string, RouteLabel>();
  const label = (service: ServiceName, route: string): RouteLabel => {
    const key = `${service} ${route}`;
    const found = known.get(key) ?? { service, route };
    known.set(key, found);
    return found;
  };
  const content = label(listener, contentRoute);
  const raw = label(listener, rawRoute);
  const chunks = chunkRoutes.map((route) => label(listener, route));
  const transaction = label(listener, "/tx/{id}");
  const blockByHeight = label(listener, "/block/height/{height}");
  const blockByHash = label(listener, "/block/hash/{hash}");
  const byPattern = new Map<string, RouteLabel>();
  const create = (pattern: string): RouteLabel => {
    const service = serviceOf(pattern, listener);
    return label(service, routeOf(pattern, service === listener ? "" : `/${service}`));
  };
  const ofSegments = (url: string, start: number): RouteLabel => {
    if (url.startsWith("/raw/", start)) return raw;
    if (url.startsWith("/tx/", start)) return transaction;
    if (url.startsWith("/block/", start)) return url.startsWith("height", start + 7) ? blockByHeight : blockByHash;
    if (!url.startsWith("/chunk/", start)) return content;
    return chunks[url.endsWith("/data") ? 1 : 0] ?? content;
  };
  return {
    ofRoute: (pattern, path) => {
      if (pattern === undefined || pattern === catchAll) return path.startsWith("/raw/") ? raw : content;
      const found = byPattern.get(pattern) ?? create(pattern);
      byPattern.set(pattern, found);
      return found;
    },
    ofUnrouted: (path) => label(serviceOf(path, listener), unrouted),
    ofCached: (url) => {
      const start = url.indexOf("/", url.indexOf("//") + 2);
      return url.includes("/", start + 1) ? ofSegments(url, start) : content; // most have one segment, an id
    },
  };
}

function serviceOf(path: string, listener: ServiceName): ServiceName {
  if (isAdministration(path)) return "admin";
  if (listener !== "gateway") return listener;
  const first = path.split("/", 2)[1];
  return first === "payment" || first === "upload" ? first : listener;
}

/** The pattern without the prefix of its service and without its version, with parameters in braces. */
function routeOf(pattern: string, prefix: string): string {
  const bare = pattern.startsWith(prefix) ? pattern.slice(prefix.length) : pattern;
  const path = bare.replace(/^\/v1(?=\/|$)/, "").replace(/^\/ar-io\//, "/svc/");
  return path.replace(/:([^/?]+)\??/g, "{$1}").replace(/^$/, "/");
}
