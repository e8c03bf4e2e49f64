/**
 * Subscriptions as server-sent events: graphql-yoga's protocol, with cursors as ids.
 * Source: docs/reference/graphql.md#subscriptions; GraphQL over Server-Sent Events (distinct connections mode).
 * @module
 */
import { isRowChange } from "../../gateway/events/event-filter.ts";
import type { EventHub } from "../../gateway/events/event-hub.ts";
import { closeReasons, type EventFormat, resetReasons } from "../../gateway/events/event-text.ts";
import { compileBlockEvents, compileTransactionEvents } from "../../graphql/event-shapes.ts";
import type { SubscriptionPlan } from "../../graphql/subscription-plan.ts";
import { assert } from "../../lib/assert.ts";
import { concatBytes, utf8Bytes } from "../../lib/bytes.ts";
import { type Cursor, cursorText, readCursor } from "../../store/index/journal/journal-cursor.ts";
import { eventHeaders, liveResponse } from "../live-events.ts";

const complete = "event: complete\ndata:\n\n";

/** One result as a stream that ends. @param result - JSON of one line. */
export function resultAsEvents(result: Uint8Array): Response {
  const body = concatBytes([utf8Bytes("event: next\ndata: "), result, utf8Bytes(`\n\n${complete}`)]);
  return new Response(new Uint8Array(body), { headers: eventHeaders });
}

/** An error as the only result of a stream. */
export function errorAsEvents(message: string): Response {
  return resultAsEvents(utf8Bytes(JSON.stringify({ errors: [{ message }] })));
}

/** Reads the header that a browser sends when it connects again. @returns "invalid" for any other text. */
export function readLastEventId({ headers }: Pick<Request, "headers">): Cursor | undefined | "invalid" {
  const text = headers.get("last-event-id") ?? "";
  return text === "" ? undefined : (readCursor(text) ?? "invalid");
}

/** Follows a subscription. @throws Failure `busy` when there are too many subscribers. */
export function subscriptionResponse(
  hub: Pick<EventHub, "subscribe">,
  request: Request,
  plan: SubscriptionPlan,
  lastEventId: Cursor | undefined,
): Response {
  const { rows, blocks, after } = plan;
  return liveResponse(hub, request, {
    filter: { rows, blocks },
    format: subscriptionFormat(plan),
    after: lastEventId ?? after,
  });
}

/** Codes of the errors that end a stream. */
const closeCodes: Readonly<Record<keyof typeof closeReasons, string>> = {
  slow: "SLOW_CLIENT",
  stopping: "GATEWAY_STOPPING",
  failed: "INTERNAL_SERVER_ERROR",
};

/** Writes the events of a subscription. */
export function subscriptionFormat({ topic, selection }: Pick<SubscriptionPlan, "topic" | "selection">): EventFormat {
  const write = topic === "blocks" ? blockWriter(selection) : rowWriter(selection);
  return {
    key: JSON.stringify([topic, selection]),
    change: (change, at) => nextEvent(cursorText(at), write(cursorText(at), change, undefined)),
    reset: (name, at) => nextEvent(cursorText(at), write(cursorText(at), undefined, resetReasons[name])),
    closed: (name) => {
      const error = { message: closeReasons[name], extensions: { code: closeCodes[name] } };
      return utf8Bytes(`event: next\ndata: ${JSON.stringify({ errors: [error] })}\n\n${complete}`);
    },
  };
}

type SentChange = Parameters<EventFormat["change"]>[0];
type WriteEvent = (cursor: string, change: SentChange | undefined, reason: string | undefined) => Uint8Array;

function rowWriter(selection: SubscriptionPlan["selection"]): WriteEvent {
  const write = compileTransactionEvents(selection);
  return (cursor, change, reason) => {
    assert(change === undefined || isRowChange(change), "a subscription to transactions chooses rows");
    return write({ cursor, change, reason });
  };
}

function blockWriter(selection: SubscriptionPlan["selection"]): WriteEvent {
  const write = compileBlockEvents(selection);
  return (cursor, change, reason) => {
    assert(change === undefined || !isRowChange(change), "a subscription to blocks chooses blocks");
    return write({ cursor, change, reason });
  };
}

function nextEvent(cursor: string, result: Uint8Array): Uint8Array {
  return concatBytes([utf8Bytes(`id: ${cursor}\nevent: next\ndata: `), result, endOfEvent]);
}

const endOfEvent = utf8Bytes("\n\n");
