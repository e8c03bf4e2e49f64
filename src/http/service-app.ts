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
  /** Factories of stateless routes without a prefix; each is called once for every prefix. */
  routes: readonly (() => AnyElysia)[];
}>;

/** The version that clients put before every path. */
const versionPrefix = "/v1";

/** @param prefix - "" or "/payment". */
export function createServiceApp({ reference, publicUrl, routes }: Service, prefix = ""): AnyElysia {
  const create = () =>
    routes.reduce<AnyElysia>((app, routesOf) => app.use(routesOf()), new Elysia({ strictPath: true }));
  const bare = create();
  // One document for both prefixes: its paths are relative. It does not list itself.
  const own = [...bare.routes];
  const createReference = () => createReferenceRoutes(reference, () => own, publicUrl);
  return new Elysia({ strictPath: true })
    .use(below(prefix, bare.use(createReference())))
    .use(below(prefix + versionPrefix, create().use(createReference())));
}

function below(prefix: string, routes: AnyElysia): AnyElysia {
  return new Elysia({ prefix, strictPath: true }).use(routes);
}
