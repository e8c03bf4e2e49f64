/**
 * `GET /svc/events`: live changes of the index as server-sent events.
 * Source: docs/reference/gateway.md#events.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import type { EventHub } from "../../gateway/events/event-hub.ts";
import { namedEvents } from "../../gateway/events/event-text.ts";
import { addressBlock } from "../client-address.ts";
import { failureResponses, inHeader, textSchema } from "../reference/openapi-types.ts";
import { contextOf } from "../request-context.ts";
import { servicePrefixes } from "../reserved-paths.ts";
import { noStore } from "../responses.ts";
import { described } from "../route-schema.ts";
import { eventParameters, readEvents } from "./event-parameters.ts";
import { openEventStream } from "./event-stream.ts";

const headers = {
  "Content-Type": "text/event-stream; charset=utf-8",
  ...noStore,
  // Proxies that follow nginx do not hold the stream back.
  "X-Accel-Buffering": "no",
} as const;

/** Creates the routes, under both spellings of the service prefix. */
export function createEventRoutes(hub: Pick<EventHub, "subscribe">): AnyElysia {
  const respond = (request: Request): Response => {
    const { target, headOnly, clientAddress } = contextOf(request);
    const { filter, after } = readEvents(target.query, request.headers.get("last-event-id"));
    if (headOnly) return new Response(null, { headers });
    const { body, sink } = openEventStream(() => subscription?.leave());
    const subscription = hub.subscribe(
      { filter, format: namedEvents, after, client: addressBlock(clientAddress()) },
      sink,
    );
    if (subscription === undefined) throw new Failure("busy", { reason: "too many subscribers" });
    request.signal.addEventListener("abort", subscription.leave, { once: true });
    return new Response(body, { headers });
  };

  const routes = new Elysia({ strictPath: true });
  for (const prefix of servicePrefixes) {
    // The reference shows one of the two prefixes.
    const detail = prefix === "/svc" ? { detail: eventDetail } : {};
    routes.get(`${prefix}/events`, ({ request }) => respond(request), detail);
  }
  return routes;
}

const lastEventId = inHeader("Last-Event-ID", textSchema, "The cursor of the last event; browsers send it again.");

const eventDetail = described({
  tag: "Index query",
  summary: "Follow changes of the index as server-sent events",
  parameters: [...Object.values(eventParameters), lastEventId],
  responses: {
    200: {
      description:
        "Events `pending`, `mined`, `forked` and `dropped` of transactions and data items, `block` and " +
        "`block_forked` of blocks, `reset` when changes are missing, and `closed` before the gateway ends the stream.",
      content: { "text/event-stream": { schema: textSchema } },
    },
    ...failureResponses("invalid_subscription", "busy"),
  },
});
