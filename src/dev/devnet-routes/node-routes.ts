/**
 * The HTTP API of a node of the chain, and the controls of the devnet.
 * Source: ArweaveTeam/arweave, ar_http_iface_middleware.
 * @module
 */
import { Elysia } from "elysia";
import { clientClosedStatus, reportsDisconnect } from "../../http/client-disconnect.ts";
import { readSegments, readTarget } from "../../http/request-target.ts";
import { type Log, silentLog } from "../../lib/log.ts";
import type { Devnet } from "../devnet/devnet.ts";
import { controlRoutes, type Shown } from "./controls.ts";
import { postRoutes } from "./node-posts.ts";
import { blockRoutes, chunkRoutes, transactionRoutes, walletRoutes } from "./node-reads.ts";
import { nodeText } from "./node-responses.ts";

/**
 * Creates the routes.
 *
 * @param log - Receives defects; the client gets only status 500.
 * @param shown - Resolves when other services show the effect of a control; the control responds then.
 *
 * Paths may have empty segments, as on a node; an unknown path or method is 400 `Request type not found.`.
 */
export function createDevnetRoutes(devnet: Devnet, log: Log = silentLog, shown: Shown = async () => undefined) {
  const known = new Elysia({ name: "devnet" })
    .onRequest(({ request }) => (isMalformed(request.url) ? nodeText("Malformed path", 400) : undefined))
    .onError({ as: "scoped" }, ({ error, request }) => {
      if (reportsDisconnect(error, request.signal)) return new Response(null, { status: clientClosedStatus });
      log.error("the devnet failed to respond", { error, method: request.method, url: request.url });
      return nodeText("Internal Server Error", 500);
    })
    .use(blockRoutes(devnet))
    .use(walletRoutes(devnet))
    .use(chunkRoutes(devnet))
    .use(postRoutes(devnet))
    .use(controlRoutes(devnet, shown))
    .use(transactionRoutes(devnet));
  return known
    .options("/*", () => preflight())
    .all(
      "/*",
      async ({ request }) => {
        const url = new URL(request.url);
        const tidy = `/${url.pathname.split("/").filter(Boolean).join("/")}`;
        if (tidy === url.pathname) return nodeText("Request type not found.", 400);
        return await known.handle(new Request(`${url.origin}${tidy}${url.search}`, request));
      },
      { parse: "none" },
    );
}

/** Whether a path has an invalid escape or is not UTF-8: the router cannot decode it. */
function isMalformed(url: string): boolean {
  if (!url.includes("%")) return false;
  try {
    readSegments(readTarget(url).path);
    return false;
  } catch {
    return true;
  }
}

/** The devnet allows pages every method; a node allows POST only on some paths. */
function preflight(): Response {
  return nodeText("OK", 200, {
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "Content-Type, X-Network, arweave-tx-id, arweave-data-root, arweave-data-size",
    "Access-Control-Max-Age": "86400",
  });
}
