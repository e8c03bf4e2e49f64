/**
 * Routes for information (`/info`), peers and health of the gateway.
 * Source: docs/reference/gateway.md#information-and-health.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { failures } from "../../failures.ts";
import type { Health } from "../../gateway/health.ts";
import { type JsonValue, writeJson } from "../../lib/json.ts";
import { json, type Responses, type Result, ref, textSchema } from "../reference/openapi-types.ts";
import { servicePrefixes } from "../reserved-paths.ts";
import { jsonResponse, jsonTextResponse } from "../responses.ts";
import { described } from "../route-schema.ts";

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

  const routes = new Elysia({ strictPath: true })
    .get("/health", healthResponse, shown("Health, under the path of orchestrators", health200))
    .get(
      "/ready",
      () => readyResponse(health),
      shown("Whether the gateway can serve", health200, { 503: json("Not yet.", ref("Health")) }),
    );
  for (const prefix of servicePrefixes) {
    // The reference shows one of the two prefixes.
    const detailOf = (summary: string, found: Result) => (prefix === "/svc" ? shown(summary, found) : {});
    routes
      .get(`${prefix}/info`, infoResponse, detailOf("Information about this gateway", info200))
      .get(`${prefix}/peers`, peersResponse, detailOf("The peers of this gateway", json("The record.", ref("Peers"))))
      .get(`${prefix}/healthcheck`, healthResponse, detailOf("Health, with reasons", health200));
  }
  return routes;
}

/** 200 when the program can serve, else 503; the body says why not. */
export function readyResponse(health: Health): Response {
  if (health.isReady()) return jsonResponse(health.record(), 200, noStore);
  const { status, retryAfterSeconds } = failures.busy;
  return jsonResponse(health.record(), status, { ...noStore, "Retry-After": String(retryAfterSeconds) });
}

const info200 = json("The record.", ref("GatewayInfo"));
const health200 = json("The health record.", ref("Health"));

function shown(summary: string, found: Result, more: Responses = {}) {
  return { detail: described({ tag: "Information", summary, responses: { 200: found, ...more } }) };
}

/** The description of `/` without an apex. */
export const rootDetail = described({
  tag: "Information",
  summary: "Information about this gateway, or the content that the operator chose",
  responses: {
    200: {
      description: "The record; or content, with its own type.",
      content: { "application/json": { schema: ref("GatewayInfo") }, "*/*": { schema: textSchema } },
    },
  },
});
