/**
 * Payment intents, and the charges that pay them.
 * Source: Stripe's API reference, "PaymentIntents", "Charges".
 * @module
 */
import type { JsonObject } from "../../lib/json.ts";
import { type FormTree, textAt, textsAt } from "./form.ts";
import { type CardOutcome, numberOfMethod, outcomeOf } from "./stripe-cards.ts";
import {
  fetchObject,
  numberOf,
  readAmount,
  readCurrency,
  readMetadata,
  rejectUnknown,
  type StripeContext,
  save,
  secondsNow,
  textOf,
} from "./stripe-context.ts";
import { openDispute } from "./stripe-disputes.ts";
import { badParameter, stripeFailure, wrongState } from "./stripe-error.ts";

const createFields = [
  "amount",
  "currency",
  "description",
  "metadata",
  "payment_method_types",
  "automatic_payment_methods",
  "confirm",
  "expand",
];

/** What a payment is for. */
export type IntentTerms = Readonly<{
  amount: number;
  currency: string;
  description: string | null;
  metadata: JsonObject;
}>;

/** `POST /v1/payment_intents`. */
export function createIntent(context: StripeContext, form: FormTree): JsonObject {
  rejectUnknown(form, createFields);
  if (textAt(form, "confirm") === "true") throw badParameter("confirm", "The sandbox confirms in a second call.");
  const types = textsAt(form, "payment_method_types");
  const other = types.find((type) => type !== "card");
  if (other !== undefined) throw badParameter("payment_method_types", `The payment method type ${other} is invalid.`);
  return newIntent(context, {
    amount: readAmount(textAt(form, "amount"), "amount"),
    currency: readCurrency(textAt(form, "currency"), "currency"),
    description: textAt(form, "description") ?? null,
    metadata: readMetadata(form, "metadata"),
  });
}

/** Makes a payment that waits for its card. */
export function newIntent(context: StripeContext, terms: IntentTerms): JsonObject {
  const id = context.makeId("pi");
  const intent = save(context, "payment_intent", {
    id,
    object: "payment_intent",
    amount: terms.amount,
    amount_capturable: 0,
    amount_received: 0,
    canceled_at: null,
    cancellation_reason: null,
    capture_method: "automatic",
    client_secret: `${id}_secret_${context.makeId("s").slice(2)}`,
    confirmation_method: "automatic",
    created: secondsNow(context),
    currency: terms.currency,
    customer: null,
    description: terms.description,
    last_payment_error: null,
    latest_charge: null,
    livemode: false,
    metadata: terms.metadata,
    next_action: null,
    payment_method: null,
    payment_method_types: ["card"],
    status: "requires_payment_method",
  });
  context.emit("payment_intent.created", intent);
  return intent;
}

/** `POST /v1/payment_intents/{id}/confirm`, with one of Stripe's test payment methods. */
export function confirmIntent(context: StripeContext, id: string, form: FormTree): CardOutcome {
  const method = textAt(form, "payment_method") ?? "";
  const number = numberOfMethod(method);
  if (number === undefined)
    throw badParameter("payment_method", `No such PaymentMethod: '${method}'`, "resource_missing");
  return payIntent(context, id, number);
}

/** Pays an intent with a card. @throws Failure with Stripe's words when it cannot be paid any more. */
export function payIntent(context: StripeContext, id: string, number: string): CardOutcome {
  const intent = fetchObject(context, "payment_intent", id);
  const status = textOf(intent["status"]);
  if (status !== "requires_payment_method") throw unexpected(id, status);
  const outcome = outcomeOf(number);
  if (outcome.kind === "wrong") return outcome;
  const charge = newCharge(context, intent, number, outcome);
  if (outcome.kind === "declined") {
    const { code, declineCode, message } = outcome;
    const failure = { type: "card_error", code, decline_code: declineCode, message };
    const failed = save(context, "payment_intent", {
      ...intent,
      latest_charge: textOf(charge["id"]),
      last_payment_error: failure,
    });
    context.emit("charge.failed", charge);
    context.emit("payment_intent.payment_failed", failed);
    return outcome;
  }
  const paid = save(context, "payment_intent", {
    ...intent,
    amount_received: numberOf(intent["amount"]),
    latest_charge: textOf(charge["id"]),
    last_payment_error: null,
    status: "succeeded",
  });
  context.emit("charge.succeeded", charge);
  context.emit("payment_intent.succeeded", paid);
  if (outcome.isDisputed) openDispute(context, textOf(charge["id"]), "fraudulent");
  return outcome;
}

/** `POST /v1/payment_intents/{id}/cancel`. */
export function cancelIntent(context: StripeContext, id: string): JsonObject {
  const intent = fetchObject(context, "payment_intent", id);
  const status = textOf(intent["status"]);
  if (status !== "requires_payment_method") throw unexpected(id, status);
  const canceled = save(context, "payment_intent", {
    ...intent,
    status: "canceled",
    canceled_at: secondsNow(context),
  });
  context.emit("payment_intent.canceled", canceled);
  return canceled;
}

/** Stripe's error when a card does not pay. */
export function cardError(outcome: Exclude<CardOutcome, { kind: "paid" }>) {
  const { code, message } = outcome;
  return stripeFailure({
    status: 402,
    type: "card_error",
    message,
    code,
    ...(outcome.kind === "declined" ? { decline_code: outcome.declineCode } : { param: "number" }),
  });
}

function newCharge(
  context: StripeContext,
  intent: JsonObject,
  number: string,
  outcome: Exclude<CardOutcome, { kind: "wrong" }>,
): JsonObject {
  const isPaid = outcome.kind === "paid";
  return save(context, "charge", {
    id: context.makeId("ch"),
    object: "charge",
    amount: numberOf(intent["amount"]),
    amount_captured: isPaid ? numberOf(intent["amount"]) : 0,
    amount_refunded: 0,
    balance_transaction: null,
    captured: isPaid,
    created: secondsNow(context),
    currency: textOf(intent["currency"]),
    description: intent["description"] ?? null,
    disputed: false,
    failure_code: isPaid ? null : outcome.code,
    failure_message: isPaid ? null : outcome.message,
    livemode: false,
    metadata: intent["metadata"] ?? {},
    paid: isPaid,
    payment_intent: textOf(intent["id"]),
    payment_method_details: {
      type: "card",
      card: { brand: "visa", last4: number.replaceAll(/\D/g, "").slice(-4) },
    },
    refunded: false,
    status: isPaid ? "succeeded" : "failed",
  });
}

function unexpected(id: string, status: string) {
  return wrongState(
    "payment_intent_unexpected_state",
    `This PaymentIntent's status is ${status}: nothing can be done with '${id}'.`,
  );
}
