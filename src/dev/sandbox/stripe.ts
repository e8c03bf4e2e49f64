/**
 * The sandbox's Stripe: the part of its protocol that we use, without a network and without money.
 *
 * It is not a model of our own program: it is held to Stripe's published client library (test/clients), and shares
 * no code with the part that talks to it.
 * Source: docs/reference/payment.md#card-payments; Stripe's API reference, version 2023-10-16.
 * @module
 */
import type { Clock } from "../../lib/clock.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { Log } from "../../lib/log.ts";
import type { FormTree } from "./form.ts";
import {
  createCheckout,
  describeCheckout,
  expireCheckout,
  expireDueCheckouts,
  fetchCheckout,
  payCheckout,
} from "./stripe-checkouts.ts";
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

/** How the sandbox is opened. */
export type StripeSandboxOptions = Readonly<{
  /** What it remembers, a file; undefined remembers nothing beyond the process. */
  path?: string | undefined;
  clock: Clock;
  /** In [0, 1): ids, and faults. */
  random: () => number;
  faults?: DeliveryFaults;
  log: Log;
}>;

/** Stripe, as far as we use it. All calls throw Failures that carry Stripe's errors (stripe-error.ts). */
export type StripeSandbox = Readonly<{
  createIntent: (form: FormTree) => JsonObject;
  confirmIntent: (id: string, form: FormTree) => JsonObject;
  cancelIntent: (id: string) => JsonObject;
  /** @param pageUrl - Origin under which payers find the page. */
  createCheckout: (form: FormTree, pageUrl: string) => JsonObject;
  fetchCheckout: (id: string) => JsonObject;
  describeCheckout: (id: string) => string;
  payCheckout: (id: string, cardNumber: string) => CardOutcome;
  expireCheckout: (id: string) => JsonObject;
  createRefund: (form: FormTree) => JsonObject;
  failRefund: (id: string) => JsonObject;
  /** @param amount - Smallest unit; all of the charge when undefined. */
  openDispute: (chargeId: string, reason: string, amount?: number) => JsonObject;
  respondToDispute: (id: string, form: FormTree) => JsonObject;
  closeDispute: (id: string) => JsonObject;
  fetch: (kind: ObjectKind, id: string) => JsonObject;
  events: (question: EventQuery) => EventPage;
  /** Sends the stored response of the same key; rejects the key with another request. */
  oncePerKey: (key: string | null, request: string, response: () => SandboxResponse) => SandboxResponse;
  deliverTo: (target: DeliveryTarget) => void;
  /** Sends what is due now, for tests that set the clock. @returns How many were accepted. */
  deliver: (signal: AbortSignal) => Promise<number>;
  /** Number of waiting deliveries. */
  deliveriesWaiting: () => number;
  close: () => Promise<void>;
}>;

export type SandboxResponse = Readonly<{ status: number; body: string }>;

/** Version of Stripe's API whose shapes are sent. */
export const apiVersion = "2023-10-16";

/** How long responses are stored for their keys, and how often sessions are swept. Milliseconds. */
const responseTtlMs = 24 * 60 * 60_000;
const sweepMs = 1_000;

const idLength = 24;
const idDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Opens the sandbox. */
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
    whole(() => expireDueCheckouts(context));
    db.forgetResponsesBefore(clock() - responseTtlMs);
  }, sweepMs);

  return {
    createIntent: (form) => whole(() => createIntent(context, form)),
    confirmIntent: (id, form) => {
      // What a declined card leaves behind stays.
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
  // A rejected call changed nothing, so it may be sent again.
  if (given.status === 200 || given.status === 402) db.keepResponse(key, { request, ...given }, now());
  return given;
}
