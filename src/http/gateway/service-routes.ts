/**
 * What the gateway says of itself: information, peers, health.
 * Source: docs/reference/gateway.md#information-and-health.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { failures } from "../../failures.ts";
import type { Health } from "../../gateway/health.ts";
import { type JsonValue, writeJson } from "../../lib/json.ts";
import { servicePrefixes } from "../reserved-paths.ts";
import { jsonResponse, jsonTextResponse } from "../responses.ts";

/** What the routes ask. */
export type ServiceRoutesOptions = Readonly<{
  /** The gateway information record. */
  info: () => JsonValue;
  /** The peer record. */
  peers: (signal: AbortSignal) => Promise<JsonValue>;
  health: Health;
}>;

/** Health is of the moment. */
const noStore = { "Cache-Control": "no-store" } as const;

/** Creates the routes, under both spellings of the service prefix. */
export function createServiceRoutes({ info, peers, health }: ServiceRoutesOptions): AnyElysia {
  const infoResponse = () => jsonTextResponse(writeJson(info()));
  const peersResponse = async ({ request }: Readonly<{ request: Request }>) =>
    jsonTextResponse(writeJson(await peers(request.signal)));
  const healthResponse = () => jsonResponse(health.record(), 200, noStore);
  const readyResponse = () => {
    if (health.isReady()) return jsonResponse(health.record(), 200, noStore);
    const { status, retryAfterSeconds } = failures.busy;
    return jsonResponse(health.record(), status, { ...noStore, "Retry-After": String(retryAfterSeconds) });
  };

  const routes = new Elysia({ strictPath: true }).get("/health", healthResponse).get("/ready", readyResponse);
  for (const prefix of servicePrefixes) {
    routes
      .get(`${prefix}/info`, infoResponse)
      .get(`${prefix}/peers`, peersResponse)
      .get(`${prefix}/healthcheck`, healthResponse);
  }
  return routes;
}
