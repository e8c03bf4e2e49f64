/**
 * The sandbox's routes: Stripe's protocol, its checkout pages, the price feed.
 * @module
 */
import { Elysia } from "elysia";
import { Failure, failures } from "../../failures.ts";
import { callerLeft, reportsDisconnect } from "../../http/client-disconnect.ts";
import { codeResponse, failureResponse } from "../../http/responses.ts";
import type { Log } from "../../lib/log.ts";
import { createCheckoutRoutes } from "./checkout-routes.ts";
import { createStripeRoutes, type StripeRoutesOptions } from "./stripe-routes.ts";

/** What the routes are made of. */
export type SandboxRoutesOptions = StripeRoutesOptions &
  Readonly<{
    /** Responds to requests of the price feed; undefined for all others. */
    priceFeed: (request: Request) => Response | undefined;
    log: Log;
  }>;

/** Creates the handler of all requests. */
export function createSandboxRoutes(options: SandboxRoutesOptions): (request: Request) => Promise<Response> {
  const { sandbox, priceFeed, log } = options;
  const app = new Elysia({ strictPath: true })
    .onError({ as: "global" }, ({ error, code, request }) => {
      if (code === "NOT_FOUND") return codeResponse("not_found");
      if (error instanceof Failure && failures[error.code].status < 500) return failureResponse(error);
      if (reportsDisconnect(error, request.signal)) return new Response(null, { status: callerLeft });
      log.error("defect in the sandbox", { error });
      return codeResponse("internal");
    })
    .use(createStripeRoutes(options))
    .use(createCheckoutRoutes(sandbox));
  return async (request) => priceFeed(request) ?? (await app.fetch(request));
}
