/**
 * `GET /svc/events`: live changes of the index as server-sent events.
 * Source: docs/reference/gateway.md#events.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import type { EventHub } from "../../gateway/events/event-hub.ts";
import { namedEvents } from "../../gateway/events/event-text.ts";
import { eventHeaders, liveResponse } from "../live-events.ts";
import { failureResponses, inHeader, textSchema } from "../reference/openapi-types.ts";
import { contextOf } from "../request-context.ts";
import { servicePrefixes } from "../reserved-paths.ts";
import { described } from "../route-schema.ts";
import { eventParameters, readEvents } from "./event-parameters.ts";

/** Creates the routes, under both spellings of the service prefix. */
export function createEventRoutes(hub: Pick<EventHub, "subscribe">): AnyElysia {
  const respond = (request: Request): Response => {
    const { target, headOnly } = contextOf(request);
    const { filter, after } = readEvents(target.query, request.headers.get("last-event-id"));
    if (headOnly) return new Response(null, { headers: eventHeaders });
    return liveResponse(hub, request, { filter, format: namedEvents, after });
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
