/**
 * A simulation of the part of Stripe that the payment service uses, without network and money.
 *
 * It is tested with Stripe's published client library (test/clients), and shares no code with the payment service's
 * Stripe client.
 * Source: docs/reference/payment.md#card-payments; Stripe's API reference, version 2023-10-16.
 * @module
 */
import type { Clock } from "../../lib/clock.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { Log } from "../../lib/log.ts";
import {
  createCheckout,
  describeCheckout,
  expireCheckout,
  expireDueCheckouts,
  fetchCheckout,
  payCheckout,
} from "./stripe-checkouts.ts";
import type { FormTree } from "./stripe-context.ts";
import { fetchObject, type StripeContext, stripeFailure } from "./stripe-context.ts";
import { type ObjectKind, openStripeDatabase } from "./stripe-database.ts";
import {
  type DeliveryFaults,
  type DeliveryTarget,
  type EventPage,
  type EventQuery,
  emitEvent,
  listEvents,
  noFaults,
  openStripeDeliveries,
} from "./stripe-events.ts";
import {
  type CardOutcome,
  cancelIntent,
  cardError,
  closeDispute,
  confirmIntent,
  createIntent,
  createRefund,
  failRefund,
  openDispute,
  respondToDispute,
} from "./stripe-payments.ts";

export type StripeSandboxOptions = Readonly<{
  /** Database file; `undefined` uses memory only. */
  path?: string | undefined;
  clock: Clock;
  /** Returns numbers in [0, 1), for ids and faults. */
  random: () => number;
  faults?: DeliveryFaults;
  log: Log;
}>;

/** The simulated operations. All throw Failures with Stripe's errors. */
export type StripeSandbox = Readonly<{
  createIntent: (form: FormTree) => JsonObject;
  confirmIntent: (id: string, form: FormTree) => JsonObject;
  cancelIntent: (id: string) => JsonObject;
  /** @param pageUrl - Origin of the payment page. */
  createCheckout: (form: FormTree, pageUrl: string) => JsonObject;
  fetchCheckout: (id: string) => JsonObject;
  describeCheckout: (id: string) => string;
  payCheckout: (id: string, cardNumber: string) => CardOutcome;
  expireCheckout: (id: string) => JsonObject;
  createRefund: (form: FormTree) => JsonObject;
  failRefund: (id: string) => JsonObject;
  /** @param amount - In the smallest unit; `undefined` disputes the whole charge. */
  openDispute: (chargeId: string, reason: string, amount?: number) => JsonObject;
  respondToDispute: (id: string, form: FormTree) => JsonObject;
  closeDispute: (id: string) => JsonObject;
  fetch: (kind: ObjectKind, id: string) => JsonObject;
  events: (question: EventQuery) => EventPage;
  /** Returns the stored response of an idempotency key; rejects a key that was used with another request. */
  oncePerKey: (key: string | null, request: string, response: () => SandboxResponse) => SandboxResponse;
  deliverTo: (target: DeliveryTarget) => void;
  /** Sends the due deliveries, for tests that set the clock. @returns The number of accepted deliveries. */
  deliver: (signal: AbortSignal) => Promise<number>;
  /** Number of waiting deliveries. */
  deliveriesWaiting: () => number;
  close: () => Promise<void>;
}>;

export type SandboxResponse = Readonly<{ status: number; body: string }>;

/** The simulated version of Stripe's API. */
export const apiVersion = "2023-10-16";

/** Time to live of stored responses, and interval of the expiry of sessions. Milliseconds. */
const responseTtlMs = 24 * 60 * 60_000;
const sweepMs = 1_000;

const idLength = 24;
const idDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

export function openStripeSandbox(options: StripeSandboxOptions): StripeSandbox {
  const { clock, random, log } = options;
  const db = openStripeDatabase(options.path);
  const deliveries = openStripeDeliveries({
    db,
    now: clock,
    random,
    faults: options.faults ?? noFaults,
    log,
  });
  const makeId = (prefix: string) =>
    `${prefix}_${Array.from({ length: idLength }, () => idDigits[Math.floor(random() * idDigits.length)]).join("")}`;
  const context: StripeContext = {
    db,
    now: clock,
    makeId,
    emit: (type, object) => emitEvent(context, deliveries.write, type, object, apiVersion),
  };
  const whole = <Result>(work: () => Result): Result => db.transaction(work);
  const sweep = setInterval(() => {
    try {
      whole(() => expireDueCheckouts(context));
      db.removeResponsesBefore(clock() - responseTtlMs);
    } catch (error) {
      // Nothing handles an error that leaves a timer. The next round tries again.
      log.error("sandbox: checkouts could not be expired", { error });
    }
  }, sweepMs);

  return {
    createIntent: (form) => whole(() => createIntent(context, form)),
    confirmIntent: (id, form) => {
      // The records of a declined card are committed.
      const outcome = whole(() => confirmIntent(context, id, form));
      if (outcome.kind !== "paid") throw cardError(outcome);
      return fetchObject(context, "payment_intent", id);
    },
    cancelIntent: (id) => whole(() => cancelIntent(context, id)),
    createCheckout: (form, pageUrl) => whole(() => createCheckout(context, form, pageUrl)),
    fetchCheckout: (id) => whole(() => fetchCheckout(context, id)),
    describeCheckout: (id) => describeCheckout(context, id),
    payCheckout: (id, cardNumber) => whole(() => payCheckout(context, id, cardNumber)),
    expireCheckout: (id) => whole(() => expireCheckout(context, id)),
    createRefund: (form) => whole(() => createRefund(context, form)),
    failRefund: (id) => whole(() => failRefund(context, id)),
    openDispute: (chargeId, reason, amount) => whole(() => openDispute(context, chargeId, reason, amount)),
    respondToDispute: (id, form) => whole(() => respondToDispute(context, id, form)),
    closeDispute: (id) => whole(() => closeDispute(context, id)),
    fetch: (kind, id) => fetchObject(context, kind, id),
    events: (question) => listEvents(context, question),
    oncePerKey: (key, request, response) => whole(() => oncePerKey(context, key, request, response)),
    deliverTo: deliveries.deliverTo,
    deliver: deliveries.deliver,
    deliveriesWaiting: db.deliveryCount,
    close: async () => {
      clearInterval(sweep);
      await deliveries.close();
      db.close();
    },
  };
}

function oncePerKey(
  { db, now }: StripeContext,
  key: string | null,
  request: string,
  response: () => SandboxResponse,
): SandboxResponse {
  if (key === null) return response();
  const known = db.storedResponse(key);
  if (known !== undefined && known.request !== request) {
    const message = "Keys for idempotent requests can only be used with the same parameters.";
    throw stripeFailure({ status: 400, type: "idempotency_error", message, code: "idempotency_key_in_use" });
  }
  if (known !== undefined) return known;
  const given = response();
  // A rejected call changed nothing, so it may be repeated.
  if (given.status === 200 || given.status === 402) db.storeResponse(key, { request, ...given }, now());
  return given;
}
