/**
 * Events: stored with the object as it was then, delivered by webhook, and listed.
 * Source: Stripe's API reference, "Events", "Pagination".
 * @module
 */
import type { JsonObject } from "../../lib/json.ts";
import { type StripeContext, save, secondsNow, textOf } from "./stripe-context.ts";
import { noSuch, stripeFailure } from "./stripe-error.ts";

/** Filter of a list of events. Times are Unix seconds. */
export type EventQuery = Readonly<{
  from: number; // inclusive
  to: number | undefined; // exclusive
  types: readonly string[]; // empty: all
  limit: number;
  /** Only those older than this one. */
  after: string | undefined;
}>;

/** A page of a list, newest first. */
export type EventPage = Readonly<{ events: readonly JsonObject[]; hasMore: boolean }>;

/** Most waiting deliveries; further events are rejected until some are accepted. */
const deliveriesMax = 10_000;

/** Events that are looked through for one page. */
const lookedAtOnce = 500;

/** Stores an event and adds its deliveries. */
export function emitEvent(
  context: StripeContext,
  writeDeliveries: (eventId: string) => void,
  type: string,
  object: JsonObject,
  apiVersion: string,
): void {
  if (context.db.deliveryCount() >= deliveriesMax)
    throw stripeFailure({
      status: 429,
      type: "api_error",
      message: "Too many webhooks wait to be taken.",
      code: "rate_limit",
    });
  const event = save(context, "event", {
    id: context.makeId("evt"),
    object: "event",
    api_version: apiVersion,
    created: secondsNow(context),
    data: { object },
    livemode: false,
    pending_webhooks: 1,
    request: { id: null, idempotency_key: null },
    type,
  });
  writeDeliveries(textOf(event["id"]));
}

/** `GET /v1/events`. */
export function listEvents({ db }: StripeContext, question: EventQuery): EventPage {
  const { types, limit } = question;
  if (question.after !== undefined && db.find("event", question.after) === undefined)
    throw noSuch("event", question.after);
  const from = question.from * 1_000;
  const to = question.to === undefined ? Number.MAX_SAFE_INTEGER : question.to * 1_000;
  const found: JsonObject[] = [];
  let after = question.after;
  for (;;) {
    const events = db.list("event", { from, to, after, limit: lookedAtOnce });
    found.push(...events.filter((event) => types.length === 0 || types.includes(textOf(event["type"]))));
    if (found.length > limit || events.length < lookedAtOnce) break;
    after = textOf(events.at(-1)?.["id"]);
  }
  return { events: found.slice(0, limit), hasMore: found.length > limit };
}
