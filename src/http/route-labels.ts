/**
 * Where a request went, as metrics and the access log name it: the service, and the pattern of the route.
 * Both come from the routes that are registered, so there are few of them, whatever is asked for.
 * @module
 */
import { isAdministration } from "./cors.ts";

/** The services of the program. */
const services = ["gateway", "payment", "upload", "admin"] as const;
export type ServiceName = (typeof services)[number];

/** A service, and the pattern of a route of it: `/tx/{id}/offset`. */
export type RouteLabel = Readonly<{ service: ServiceName; route: string }>;

/** The label of requests without a route: unknown paths and methods, preflights, rejected requests. */
export const unrouted = "unrouted";

/** Content, by its id or by its host. */
const contentRoute = "/{id}";
const rawRoute = "/raw/{id}";

/** The pattern under which content is registered. */
const catchAll = "/*";

/** Chunks, as their routes are registered. */
const chunkRoutes = ["/chunk/{offset}", "/chunk/{offset}/data"] as const;

/** Labels the requests of one listener. */
export type RouteLabels = Readonly<{
  /** @param pattern - As it is registered, prefixes included; undefined for content on a host of its own. */
  ofRoute: (pattern: string | undefined, path: string) => RouteLabel;
  /** Of a request that no route took. */
  ofNone: (path: string) => RouteLabel;
  /** Of a response from memory. @param url - The whole address. */
  ofHit: (url: string) => RouteLabel;
}>;

/** Creates the labels. @param listener - Whose listener it is; the gateway's has other services below prefixes. */
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
  const byPattern = new Map<string, RouteLabel>();
  const create = (pattern: string): RouteLabel => {
    const service = serviceOf(pattern, listener);
    return label(service, routeOf(pattern, service === listener ? "" : `/${service}`));
  };
  return {
    ofRoute: (pattern, path) => {
      if (pattern === undefined || pattern === catchAll) return path.startsWith("/raw/") ? raw : content;
      const found = byPattern.get(pattern) ?? create(pattern);
      byPattern.set(pattern, found);
      return found;
    },
    ofNone: (path) => label(serviceOf(path, listener), unrouted),
    ofHit: (url) => {
      const start = url.indexOf("/", url.indexOf("//") + 2);
      if (url.startsWith("/raw/", start)) return raw;
      if (!url.startsWith("/chunk/", start)) return content;
      return chunks[url.endsWith("/data") ? 1 : 0] ?? content;
    },
  };
}

function serviceOf(path: string, listener: ServiceName): ServiceName {
  if (isAdministration(path)) return "admin";
  if (listener !== "gateway") return listener;
  const first = path.split("/", 2)[1];
  return first === "payment" || first === "upload" ? first : listener;
}

/** The pattern without the place of its service and its version, with parameters in braces. */
function routeOf(pattern: string, prefix: string): string {
  const bare = pattern.startsWith(prefix) ? pattern.slice(prefix.length) : pattern;
  const path = bare.replace(/^\/v1(?=\/|$)/, "").replace(/^\/ar-io\//, "/svc/");
  return path.replace(/:([^/?]+)\??/g, "{$1}").replace(/^$/, "/");
}
