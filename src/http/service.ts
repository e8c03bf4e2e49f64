/**
 * A service that answers at the root of its own port, below `/v1` there, and below a prefix on the gateway's port.
 * Source: contract.md §0, §0a.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import type { Reference } from "./reference/document.ts";
import { createReferenceRoutes } from "./reference/reference-routes.ts";

/** What a service is made of. */
export type Service = Readonly<{
  reference: Reference;
  /** What it says of itself, at every root it has. */
  home: () => Response | Promise<Response>;
  /** Creators of its routes, with bare paths; each is called once for every place. They hold no state of their own. */
  routes: readonly (() => AnyElysia)[];
}>;

/** The version that clients put before every path. */
const versionPrefix = "/v1";

/** Creates a service's app for one place. @param prefix - Where it stands: "" or "/payment". */
export function createServiceApp({ reference, home, routes }: Service, prefix = ""): AnyElysia {
  const bare = () => routes.reduce<AnyElysia>((app, create) => app.use(create()), new Elysia());
  const own = bare();
  const app = new Elysia({ strictPath: true })
    .use(below(prefix, own))
    .use(below(prefix + versionPrefix, bare()));
  for (const root of [prefix, prefix + versionPrefix]) {
    app.get(`${root}/`, home);
    if (root !== "") app.get(root, home);
  }
  return app.use(
    below(
      prefix,
      createReferenceRoutes(reference, () => own.routes),
    ),
  );
}

function below(prefix: string, routes: AnyElysia): AnyElysia {
  return new Elysia({ prefix, strictPath: true }).use(routes);
}
