/**
 * What the gateway says of itself: information, peers, health.
 * Source: docs/reference/gateway.md#information-and-health.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { failures } from "../../failures.ts";
import type { Health } from "../../gateway/health.ts";
import type { JsonValue } from "../../lib/json.ts";
import { writeJson } from "../../lib/json.ts";
import { jsonAnswer, jsonTextAnswer } from "../answers.ts";
import { servicePrefixes } from "../reserved.ts";

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
  const infoAnswer = () => jsonTextAnswer(writeJson(info()));
  const peersAnswer = async ({ request }: Readonly<{ request: Request }>) =>
    jsonTextAnswer(writeJson(await peers(request.signal)));
  const healthAnswer = () => jsonAnswer(health.record(), 200, noStore);
  const readyAnswer = () => {
    if (health.isReady()) return jsonAnswer(health.record(), 200, noStore);
    const { status, retryAfterSeconds } = failures.busy;
    return jsonAnswer(health.record(), status, { ...noStore, "Retry-After": String(retryAfterSeconds) });
  };

  const routes = new Elysia({ strictPath: true }).get("/health", healthAnswer).get("/ready", readyAnswer);
  for (const prefix of servicePrefixes) {
    routes
      .get(`${prefix}/info`, infoAnswer)
      .get(`${prefix}/peers`, peersAnswer)
      .get(`${prefix}/healthcheck`, healthAnswer);
  }
  return routes;
}
