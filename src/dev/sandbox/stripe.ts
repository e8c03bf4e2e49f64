/**
 * The sandbox that stands for Stripe: the part of its protocol that we use, without a network and without money.
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
import type { CardOutcome } from "./stripe-cards.ts";
import {
  createCheckout,
  describeCheckout,
  expireCheckout,
  expireDueCheckouts,
  fetchCheckout,
  payCheckout,
} from "./stripe-checkouts.ts";
import { type ObjectKind, openStripeDatabase } from "./stripe-database.ts";
import { type DeliveryFaults, type DeliveryTarget, noFaults, openStripeDeliveries } from "./stripe-deliveries.ts";
import { fetchObject, type StripeDesk } from "./stripe-dispatcher.ts";
import { closeDispute, createRefund, failRefund, openDispute, respondToDispute } from "./stripe-disputes.ts";
import { type EventPage, type EventQuestion, listEvents, tellEvent } from "./stripe-events.ts";
import { cancelIntent, cardError, confirmIntent, createIntent } from "./stripe-payments.ts";
import { refused } from "./stripe-refusal.ts";

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

/** Stripe, as far as we use it. All calls throw Failures that carry Stripe's words (stripe-refusal.ts). */
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
  events: (question: EventQuestion) => EventPage;
  /** Answers as it did before to the same key; refuses the key with another request. */
  oncePerKey: (key: string | null, request: string, response: () => SandboxResponse) => SandboxResponse;
  deliverTo: (target: DeliveryTarget) => void;
  /** Sends what is due now, and tells how many letters were taken; for those who move the clock. */
  deliver: (signal: AbortSignal) => Promise<number>;
  /** Letters that wait. */
  deliveriesWaiting: () => number;
  close: () => Promise<void>;
}>;

/** An answer, as text. */
export type SandboxResponse = Readonly<{ status: number; body: string }>;

/** The version whose shapes are answered. */
export const apiVersion = "2023-10-16";

/** How long answers are kept for their keys, and how often sessions are looked over. Milliseconds. */
const responsesStoredMs = 24 * 60 * 60_000;
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
  const desk: StripeDesk = {
    db,
    now: clock,
    makeId,
    tell: (type, object) => tellEvent(desk, deliveries.write, type, object, apiVersion),
  };
  const whole = <Result>(work: () => Result): Result => db.transaction(work);
  const sweep = setInterval(() => {
    whole(() => expireDueCheckouts(desk));
    db.forgetResponsesBefore(clock() - responsesStoredMs);
  }, sweepMs);

  return {
    createIntent: (form) => whole(() => createIntent(desk, form)),
    confirmIntent: (id, form) => {
      // What a declined card leaves behind stays.
      const outcome = whole(() => confirmIntent(desk, id, form));
      if (outcome.kind !== "paid") throw cardError(outcome);
      return fetchObject(desk, "payment_intent", id);
    },
    cancelIntent: (id) => whole(() => cancelIntent(desk, id)),
    createCheckout: (form, pageUrl) => whole(() => createCheckout(desk, form, pageUrl)),
    fetchCheckout: (id) => whole(() => fetchCheckout(desk, id)),
    describeCheckout: (id) => describeCheckout(desk, id),
    payCheckout: (id, cardNumber) => whole(() => payCheckout(desk, id, cardNumber)),
    expireCheckout: (id) => whole(() => expireCheckout(desk, id)),
    createRefund: (form) => whole(() => createRefund(desk, form)),
    failRefund: (id) => whole(() => failRefund(desk, id)),
    openDispute: (chargeId, reason, amount) => whole(() => openDispute(desk, chargeId, reason, amount)),
    respondToDispute: (id, form) => whole(() => respondToDispute(desk, id, form)),
    closeDispute: (id) => whole(() => closeDispute(desk, id)),
    fetch: (kind, id) => fetchObject(desk, kind, id),
    events: (question) => listEvents(desk, question),
    oncePerKey: (key, request, response) => whole(() => oncePerKey(desk, key, request, response)),
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
  { db, now }: StripeDesk,
  key: string | null,
  request: string,
  response: () => SandboxResponse,
): SandboxResponse {
  if (key === null) return response();
  const known = db.storedResponse(key);
  if (known !== undefined && known.request !== request) {
    const message = "Keys for idempotent requests can only be used with the same parameters.";
    throw refused({ status: 400, type: "idempotency_error", message, code: "idempotency_key_in_use" });
  }
  if (known !== undefined) return known;
  const given = response();
  // A refusal that changed nothing may be asked again.
  if (given.status === 200 || given.status === 402) db.keepResponse(key, { request, ...given }, now());
  return given;
}
