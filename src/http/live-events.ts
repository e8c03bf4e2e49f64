/**
 * Responses that follow live events.
 * Source: docs/reference/gateway.md#events.
 * @module
 */
import { Failure } from "../failures.ts";
import type { EventHub, EventRequest } from "../gateway/events/event-hub.ts";
import { addressBlock } from "./client-address.ts";
import { openEventStream } from "./event-stream.ts";
import { contextOf } from "./request-context.ts";
import { noStore } from "./responses.ts";

/** Headers of a stream of events. */
export const eventHeaders = {
  "Content-Type": "text/event-stream; charset=utf-8",
  ...noStore,
  // Proxies that follow nginx do not hold the stream back.
  "X-Accel-Buffering": "no",
} as const;

/** Subscribes the client of a request until it leaves. @throws Failure `busy` when there are too many subscribers. */
export function liveResponse(
  hub: Pick<EventHub, "subscribe">,
  request: Request,
  wanted: Omit<EventRequest, "client">,
): Response {
  const client = addressBlock(contextOf(request).clientAddress());
  const { body, sink } = openEventStream(() => subscription?.leave());
  const subscription = hub.subscribe({ ...wanted, client }, sink);
  if (subscription === undefined) throw new Failure("busy", { reason: "too many subscribers" });
  request.signal.addEventListener("abort", subscription.leave, { once: true });
  return new Response(body, { headers: eventHeaders });
}
