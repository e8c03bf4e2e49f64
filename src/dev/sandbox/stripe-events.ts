/**
 * Events: stored with a copy of the object, delivered by webhook, and listed.
 *
 * Webhooks are signed and sent to one target, with retries until they are accepted. Random faults simulate those of a
 * network.
 * Source: Stripe's API reference, "Events", "Pagination"; Stripe's documentation, "Webhooks": at least once, in no
 * order.
 * @module
 */
import { type JsonObject, writeJson } from "../../lib/json.ts";
import type { Log } from "../../lib/log.ts";
import { type BackgroundLoop, openBackgroundLoop } from "../../lib/loop.ts";
import { withDeadline } from "../../lib/stop.ts";
import { noSuch, type StripeContext, save, secondsNow, stripeFailure, textOf } from "./stripe-context.ts";
import type { Delivery, StripeDatabase } from "./stripe-database.ts";

/** Filter of a list of events. Times are Unix seconds. */
export type EventQuery = Readonly<{
  from: number; // inclusive
  to: number | undefined; // exclusive
  types: readonly string[]; // empty: all
  limit: number;
  /** Id of an event; only older events are listed. */
  after: string | undefined;
}>;

/** A page of a list, newest first. */
export type EventPage = Readonly<{ events: readonly JsonObject[]; hasMore: boolean }>;

/** Maximum number of waiting deliveries; beyond it, events are rejected. */
const deliveriesMax = 10_000;

/** Events that one query reads. */
const eventsPerQuery = 500;

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
      message: "Too many webhooks are waiting for delivery.",
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
    const events = db.list("event", { from, to, after, limit: eventsPerQuery });
    found.push(...events.filter((event) => types.length === 0 || types.includes(textOf(event["type"]))));
    if (found.length > limit || events.length < eventsPerQuery) break;
    after = textOf(events.at(-1)?.["id"]);
  }
  return { events: found.slice(0, limit), hasMore: found.length > limit };
}

export type DeliveryTarget = Readonly<{ url: string; secret: string }>;

/** Random faults of the delivery. Shares are of 1. */
export type DeliveryFaults = Readonly<{
  /** Maximum random delay of a delivery, which changes their order. Milliseconds. */
  delayMsMax: number;
  doubledShare: number;
  lostShare: number;
}>;

export const noFaults: DeliveryFaults = { delayMsMax: 0, doubledShare: 0, lostShare: 0 };

export type DeliveryParts = Readonly<{
  db: StripeDatabase;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  random: () => number;
  faults: DeliveryFaults;
  log: Log;
}>;

export type StripeDeliveries = Readonly<{
  /** Adds the deliveries of an event, within the transaction of the event. */
  write: (eventId: string) => void;
  /** Sets the target, also of waiting deliveries. */
  deliverTo: (target: DeliveryTarget) => void;
  /** Sends the due deliveries. @returns The number of accepted deliveries. */
  deliver: (signal: AbortSignal) => Promise<number>;
  close: () => Promise<void>;
}>;

/** Maximum number of concurrent deliveries. */
const atOnce = 8;

/** Timeout of a delivery. Milliseconds. */
const responseMsMax = 10_000;

/** First and longest wait before a retry, milliseconds, and attempts before a delivery is dropped. */
const firstWaitMs = 250;
const longestWaitMs = 30_000;
const attemptsMax = 20;

/** Wait after a round in which no webhook was accepted. Milliseconds. */
const idleMs = 250;

/** Opens the delivery; it starts when it has a target. */
export function openStripeDeliveries(parts: DeliveryParts): StripeDeliveries {
  const { db, now, random, faults, log } = parts;
  let target: DeliveryTarget | undefined;

  const sendDue = async (signal: AbortSignal): Promise<number> => {
    const to = target;
    if (to === undefined) return 0;
    const due = db.dueDeliveries(now(), atOnce);
    const taken = await Promise.all(due.map((delivery) => send(parts, delivery, to, signal)));
    return taken.filter((isTaken) => isTaken).length;
  };
  // Concurrent calls share one round, so that a delivery is not sent twice.
  let underWay: Promise<number> | undefined;
  const deliver = (signal: AbortSignal): Promise<number> => {
    underWay ??= sendDue(signal).finally(() => {
      underWay = undefined;
    });
    return underWay;
  };

  const round = async (signal: AbortSignal): Promise<number> => ((await deliver(signal)) === 0 ? idleMs : 0);
  let loop: BackgroundLoop | undefined;

  return {
    write: (eventId) => {
      if (random() < faults.lostShare) return;
      const copies = random() < faults.doubledShare ? 2 : 1;
      for (let copy = 0; copy < copies; copy += 1)
        db.addDelivery(eventId, now() + Math.floor(random() * faults.delayMsMax));
    },
    deliverTo: (to) => {
      target = to;
      loop ??= openBackgroundLoop("sandbox webhooks", round, (error) => {
        log.error("sandbox webhooks: delivery interrupted", { error });
        return idleMs;
      });
    },
    deliver,
    close: async () => {
      await loop?.close();
    },
  };
}

/** Signs a body as Stripe does. @param at - Unix seconds. */
export function signDelivery(body: string, secret: string, at: number): string {
  const digest = new Bun.CryptoHasher("sha256", secret).update(`${at}.${body}`).digest("hex");
  return `t=${at},v1=${digest}`;
}

async function send(
  { db, now, log }: DeliveryParts,
  delivery: Delivery,
  target: DeliveryTarget,
  signal: AbortSignal,
): Promise<boolean> {
  const event = db.find("event", delivery.eventId);
  if (event === undefined) {
    db.removeDelivery(delivery.id);
    return false;
  }
  const body = writeJson(event);
  const status = await post(target, body, Math.floor(now() / 1_000), signal);
  if (status >= 200 && status < 300) {
    db.removeDelivery(delivery.id);
    return true;
  }
  if (delivery.attempts + 1 >= attemptsMax) {
    log.warn("sandbox webhooks: delivery dropped", { event: delivery.eventId, status });
    db.removeDelivery(delivery.id);
    return false;
  }
  const wait = Math.min(longestWaitMs, firstWaitMs * 2 ** delivery.attempts);
  db.postponeDelivery(delivery.id, now() + wait);
  return false;
}

/** @returns The status of the response; 0 when there was none. */
async function post(target: DeliveryTarget, body: string, at: number, signal: AbortSignal): Promise<number> {
  const request = {
    method: "POST",
    headers: {
      "Content-Type": "application/json; charset=utf-8",
      "Stripe-Signature": signDelivery(body, target.secret, at),
      "User-Agent": "Stripe/1.0 (sandbox)",
    },
    body,
    redirect: "manual",
  } as const;
  try {
    return await withDeadline(signal, responseMsMax, async (own) => {
      const response = await fetch(target.url, { ...request, signal: own });
      await response.body?.cancel();
      return response.status;
    });
  } catch {
    // The target is not reachable: the delivery is retried.
    return 0;
  }
}
