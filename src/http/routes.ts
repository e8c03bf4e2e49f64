/**
 * The methods of a path, from the registered routes.
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

/** Looks up methods by path. */
export type RouteTable = Readonly<{
  /**
   * Methods of a path, HEAD where there is GET, OPTIONS last (but in administration, which has no
   * preflight); empty when no route has the path.
   */
  methodsOf: (path: string) => readonly string[];
}>;

/** The route that takes what no other takes is not evidence that a path exists. */
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
