/**
 * Money that goes back: refunds by the seller, disputes by the payer.
 * Source: Stripe's API reference, "Refunds", "Disputes"; "Testing", evidence that wins or loses.
 * @module
 */
import type { JsonObject } from "../../lib/json.ts";
import { type FormTree, textAt } from "./form.ts";
import {
  fetchObject,
  numberOf,
  readAmount,
  readMetadata,
  rejectUnknown,
  type StripeContext,
  save,
  secondsNow,
  textOf,
} from "./stripe-context.ts";
import { badParameter, wrongState } from "./stripe-error.ts";

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

/** A refund that the payer's bank sends back; Stripe has no call for it, its test cards do it. */
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
 * Opens a dispute about a charge, as the card of that kind does.
 * @param amount - All of the charge when undefined; smallest unit.
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

/** `POST /v1/disputes/{id}/close`: the seller gives in. */
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
