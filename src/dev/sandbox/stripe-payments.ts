/**
 * Payment intents, charges, refunds and disputes, and the outcomes of Stripe's test cards.
 * Source: Stripe's API reference, "PaymentIntents", "Charges"; Stripe's documentation, "Testing"; Stripe's API
 * reference, "Refunds", "Disputes"; "Testing", evidence that wins or loses.
 * @module
 */
import type { JsonObject } from "../../lib/json.ts";
import {
  badParameter,
  type FormTree,
  fetchObject,
  numberOf,
  readAmount,
  readCurrency,
  readMetadata,
  rejectUnknown,
  type StripeContext,
  save,
  secondsNow,
  stripeFailure,
  textAt,
  textOf,
  textsAt,
  wrongState,
} from "./stripe-context.ts";

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

export type IntentTerms = Readonly<{
  amount: number;
  currency: string;
  description: string | null;
  metadata: JsonObject;
}>;

/** `POST /v1/payment_intents`. */
export function createIntent(context: StripeContext, form: FormTree): JsonObject {
  rejectUnknown(form, createFields);
  if (textAt(form, "confirm") === "true")
    throw badParameter("confirm", "The sandbox supports confirmation only by a second call.");
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

/** Creates a payment intent without a card. */
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

/** Pays an intent with a card. @throws Failure with Stripe's message when the intent is not payable. */
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

/** Stripe's error for a declined or invalid card. */
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

export type CardOutcome =
  | Readonly<{ kind: "paid"; isDisputed: boolean }>
  | Readonly<{ kind: "declined"; code: string; declineCode: string; message: string }>
  | Readonly<{ kind: "wrong"; code: string; message: string }>;

const declined = (declineCode: string, message: string, code = "card_declined"): CardOutcome => ({
  kind: "declined",
  code,
  declineCode,
  message,
});

const cards: Readonly<Record<string, CardOutcome>> = {
  "4242424242424242": { kind: "paid", isDisputed: false },
  "5555555555554444": { kind: "paid", isDisputed: false },
  "378282246310005": { kind: "paid", isDisputed: false },
  "4000000000000259": { kind: "paid", isDisputed: true },
  "4000000000000002": declined("generic_decline", "Your card was declined."),
  "4000000000009995": declined("insufficient_funds", "Your card has insufficient funds."),
  "4000000000000069": declined("expired_card", "Your card has expired.", "expired_card"),
};

const methods: Readonly<Record<string, string>> = {
  pm_card_visa: "4242424242424242",
  pm_card_mastercard: "5555555555554444",
  pm_card_amex: "378282246310005",
  pm_card_createDispute: "4000000000000259",
  pm_card_chargeDeclined: "4000000000000002",
  pm_card_chargeDeclinedInsufficientFunds: "4000000000009995",
  pm_card_chargeDeclinedExpiredCard: "4000000000000069",
};

/** Card numbers and their outcomes, for the sandbox page. */
export const cardsToTry: readonly (readonly [number: string, outcome: string])[] = [
  ["4242 4242 4242 4242", "pays"],
  ["5555 5555 5555 4444", "pays"],
  ["4000 0000 0000 0259", "pays, and is disputed"],
  ["4000 0000 0000 0002", "is declined"],
  ["4000 0000 0000 9995", "has insufficient funds"],
  ["4000 0000 0000 0069", "has expired"],
];

/** The card number of one of Stripe's test payment methods, such as `pm_card_visa`. */
export function numberOfMethod(method: string): string | undefined {
  return Object.hasOwn(methods, method) ? methods[method] : undefined;
}

/** The outcome of a payment with a card. @param number - Digits; spaces and dashes are ignored. */
export function outcomeOf(number: string): CardOutcome {
  const digits = number.replaceAll(/[\s-]/g, "");
  const known = Object.hasOwn(cards, digits) ? cards[digits] : undefined;
  if (known !== undefined) return known;
  if (!isCardNumber(digits))
    return { kind: "wrong", code: "incorrect_number", message: "Your card number is incorrect." };
  return declined("test_mode_live_card", "Your card was declined. The sandbox accepts only test cards.");
}

/** Luhn's checksum: every second digit from the right is doubled. */
function isCardNumber(digits: string): boolean {
  if (!/^\d{12,19}$/.test(digits)) return false;
  const sum = [...digits].reverse().reduce((total, digit, index) => {
    const value = Number(digit) * (index % 2 === 0 ? 1 : 2);
    return total + (value > 9 ? value - 9 : value);
  }, 0);
  return sum % 10 === 0;
}

/** `POST /v1/refunds`. */
export function createRefund(context: StripeContext, form: FormTree): JsonObject {
  rejectUnknown(form, ["payment_intent", "charge", "amount", "reason", "metadata", "expand"]);
  const charge = chargeToRefund(context, form);
  const total = numberOf(charge["amount"]);
  const before = numberOf(charge["amount_refunded"]);
  if (before >= total)
    throw wrongState("charge_already_refunded", `Charge ${textOf(charge["id"])} has already been refunded.`);
  const asked = textAt(form, "amount");
  const amount = asked === undefined ? total - before : readAmount(asked, "amount");
  if (amount > total - before)
    throw badParameter("amount", `Refund amount (${amount}) is greater than unrefunded amount on charge.`);
  const refund = save(context, "refund", {
    id: context.makeId("re"),
    object: "refund",
    amount,
    charge: textOf(charge["id"]),
    created: secondsNow(context),
    currency: textOf(charge["currency"]),
    metadata: readMetadata(form, "metadata"),
    payment_intent: textOf(charge["payment_intent"]),
    reason: textAt(form, "reason") ?? null,
    status: "succeeded",
  });
  const refunded = before + amount;
  const after = save(context, "charge", { ...charge, amount_refunded: refunded, refunded: refunded === total });
  context.emit("refund.created", refund);
  context.emit("charge.refunded", after);
  return refund;
}

/** A refund that the payer's bank returns. At Stripe, a test card triggers it instead of a call. */
export function failRefund(context: StripeContext, id: string): JsonObject {
  const refund = fetchObject(context, "refund", id);
  if (refund["status"] !== "succeeded") throw wrongState("refund_failed", "The refund has failed already.");
  const charge = fetchObject(context, "charge", textOf(refund["charge"]));
  const refunded = numberOf(charge["amount_refunded"]) - numberOf(refund["amount"]);
  save(context, "charge", { ...charge, amount_refunded: refunded, refunded: false });
  const failed = save(context, "refund", {
    ...refund,
    status: "failed",
    failure_reason: "expired_or_canceled_card",
  });
  context.emit("refund.failed", failed);
  return failed;
}

/**
 * Opens a dispute about a charge.
 * @param amount - In the smallest unit; `undefined` disputes the whole charge.
 */
export function openDispute(context: StripeContext, chargeId: string, reason: string, amount?: number): JsonObject {
  const charge = fetchObject(context, "charge", chargeId);
  if (charge["paid"] !== true) throw wrongState("charge_not_paid", "The charge was not paid.");
  if (charge["disputed"] === true) throw wrongState("charge_disputed", "The charge is disputed already.");
  save(context, "charge", { ...charge, disputed: true });
  const dispute = save(context, "dispute", {
    id: context.makeId("dp"),
    object: "dispute",
    amount: amount ?? numberOf(charge["amount"]),
    balance_transactions: [],
    charge: chargeId,
    created: secondsNow(context),
    currency: textOf(charge["currency"]),
    evidence: {},
    is_charge_refundable: false,
    livemode: false,
    metadata: {},
    payment_intent: textOf(charge["payment_intent"]),
    reason,
    status: "needs_response",
  });
  context.emit("charge.dispute.created", dispute);
  context.emit("charge.dispute.funds_withdrawn", dispute);
  return dispute;
}

/** `POST /v1/disputes/{id}`: the evidence `winning_evidence` wins, `losing_evidence` loses, other is under review. */
export function respondToDispute(context: StripeContext, id: string, form: FormTree): JsonObject {
  rejectUnknown(form, ["evidence", "metadata", "submit", "expand"]);
  const evidence = textAt(form, "evidence", "uncategorized_text");
  if (evidence === "winning_evidence") return endDispute(context, id, "won");
  if (evidence === "losing_evidence") return endDispute(context, id, "lost");
  const dispute = save(context, "dispute", { ...openOne(context, id), status: "under_review" });
  context.emit("charge.dispute.updated", dispute);
  return dispute;
}

/** `POST /v1/disputes/{id}/close`: the seller accepts the dispute. */
export function closeDispute(context: StripeContext, id: string): JsonObject {
  return endDispute(context, id, "lost");
}

function endDispute(context: StripeContext, id: string, status: "won" | "lost"): JsonObject {
  const dispute = save(context, "dispute", { ...openOne(context, id), status });
  context.emit("charge.dispute.closed", dispute);
  if (status === "won") context.emit("charge.dispute.funds_reinstated", dispute);
  return dispute;
}

function openOne(context: StripeContext, id: string): JsonObject {
  const dispute = fetchObject(context, "dispute", id);
  if (dispute["status"] === "won" || dispute["status"] === "lost")
    throw wrongState("dispute_closed", "This dispute is already closed");
  return dispute;
}

function chargeToRefund(context: StripeContext, form: FormTree): JsonObject {
  const intentId = textAt(form, "payment_intent");
  const intent = intentId === undefined ? undefined : fetchObject(context, "payment_intent", intentId);
  const chargeId = intent === undefined ? textAt(form, "charge") : textOf(intent["latest_charge"]);
  if (chargeId === undefined)
    throw badParameter("charge", "Must provide payment_intent or charge.", "parameter_missing");
  const charge = context.db.find("charge", chargeId);
  if (charge?.["paid"] !== true)
    throw wrongState(
      "payment_intent_unexpected_state",
      "This PaymentIntent does not have a successful charge to refund.",
    );
  return charge;
}
