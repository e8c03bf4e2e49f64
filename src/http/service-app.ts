/**
 * A service at the root of its own port, below `/v1` there, and below a prefix on the gateway's port.
 * Source: docs/reference/gateway.md#which-route-serves-a-request.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import type { Reference } from "./reference/document.ts";
import { createReferenceRoutes } from "./reference/reference-routes.ts";

export type Service = Readonly<{
  reference: Reference;
  /** Address of the service in the settings. */
  publicUrl?: string | undefined;
  /** Creates the routes, without a prefix; each is served below every prefix. */
  routes: () => readonly AnyElysia[];
}>;

/** The version that clients put before every path. */
const versionPrefix = "/v1";

/** @param prefix - "" or "/payment". */
export function createServiceApp({ reference, publicUrl, routes }: Service, prefix = ""): AnyElysia {
  const all = routes().reduce<AnyElysia>((app, each) => app.use(each), new Elysia({ strictPath: true }));
  // One document for both prefixes: its paths are relative. It does not list itself.
  const described = [...all.routes];
  all.use(createReferenceRoutes(reference, () => described, publicUrl));
  return new Elysia({ strictPath: true }).use(below(prefix, all)).use(below(prefix + versionPrefix, all));
}

function below(prefix: string, routes: AnyElysia): AnyElysia {
  return new Elysia({ prefix, strictPath: true }).use(routes);
}
