/**
 * Money that goes back: refunds by the seller, disputes by the payer.
 * Source: Stripe's API reference, "Refunds", "Disputes"; "Testing", evidence that wins or loses.
 * @module
 */
import type { JsonObject } from "../../lib/json.ts";
import { type FormTree, textAt } from "./form.ts";
import {
  fetchObject,
  keep,
  numberOf,
  readAmount,
  readMetadata,
  refuseUnknown,
  type StripeDesk,
  secondsNow,
  textOf,
} from "./stripe-dispatcher.ts";
import { badParameter, wrongState } from "./stripe-refusal.ts";

/** `POST /v1/refunds`. */
export function createRefund(desk: StripeDesk, form: FormTree): JsonObject {
  refuseUnknown(form, ["payment_intent", "charge", "amount", "reason", "metadata", "expand"]);
  const charge = chargeToRefund(desk, form);
  const total = numberOf(charge["amount"]);
  const before = numberOf(charge["amount_refunded"]);
  if (before >= total)
    throw wrongState("charge_already_refunded", `Charge ${textOf(charge["id"])} has already been refunded.`);
  const asked = textAt(form, "amount");
  const amount = asked === undefined ? total - before : readAmount(asked, "amount");
  if (amount > total - before)
    throw badParameter("amount", `Refund amount (${amount}) is greater than unrefunded amount on charge.`);
  const refund = keep(desk, "refund", {
    id: desk.makeId("re"),
    object: "refund",
    amount,
    charge: textOf(charge["id"]),
    created: secondsNow(desk),
    currency: textOf(charge["currency"]),
    metadata: readMetadata(form, "metadata"),
    payment_intent: textOf(charge["payment_intent"]),
    reason: textAt(form, "reason") ?? null,
    status: "succeeded",
  });
  const refunded = before + amount;
  const after = keep(desk, "charge", { ...charge, amount_refunded: refunded, refunded: refunded === total });
  desk.tell("refund.created", refund);
  desk.tell("charge.refunded", after);
  return refund;
}

/** A refund that the payer's bank sends back; Stripe has no call for it, its test cards do it. */
export function failRefund(desk: StripeDesk, id: string): JsonObject {
  const refund = fetchObject(desk, "refund", id);
  if (refund["status"] !== "succeeded") throw wrongState("refund_failed", "The refund has failed already.");
  const charge = fetchObject(desk, "charge", textOf(refund["charge"]));
  const refunded = numberOf(charge["amount_refunded"]) - numberOf(refund["amount"]);
  keep(desk, "charge", { ...charge, amount_refunded: refunded, refunded: false });
  const failed = keep(desk, "refund", {
    ...refund,
    status: "failed",
    failure_reason: "expired_or_canceled_card",
  });
  desk.tell("refund.failed", failed);
  return failed;
}

/**
 * Opens a dispute about a charge, as the card of that kind does.
 * @param amount - All of the charge when undefined; smallest unit.
 */
export function openDispute(desk: StripeDesk, chargeId: string, reason: string, amount?: number): JsonObject {
  const charge = fetchObject(desk, "charge", chargeId);
  if (charge["paid"] !== true) throw wrongState("charge_not_paid", "The charge was not paid.");
  if (charge["disputed"] === true) throw wrongState("charge_disputed", "The charge is disputed already.");
  keep(desk, "charge", { ...charge, disputed: true });
  const dispute = keep(desk, "dispute", {
    id: desk.makeId("dp"),
    object: "dispute",
    amount: amount ?? numberOf(charge["amount"]),
    balance_transactions: [],
    charge: chargeId,
    created: secondsNow(desk),
    currency: textOf(charge["currency"]),
    evidence: {},
    is_charge_refundable: false,
    livemode: false,
    metadata: {},
    payment_intent: textOf(charge["payment_intent"]),
    reason,
    status: "needs_response",
  });
  desk.tell("charge.dispute.created", dispute);
  desk.tell("charge.dispute.funds_withdrawn", dispute);
  return dispute;
}

/** `POST /v1/disputes/{id}`: the evidence `winning_evidence` wins, `losing_evidence` loses, other is under review. */
export function respondToDispute(desk: StripeDesk, id: string, form: FormTree): JsonObject {
  refuseUnknown(form, ["evidence", "metadata", "submit", "expand"]);
  const evidence = textAt(form, "evidence", "uncategorized_text");
  if (evidence === "winning_evidence") return endDispute(desk, id, "won");
  if (evidence === "losing_evidence") return endDispute(desk, id, "lost");
  const dispute = keep(desk, "dispute", { ...openOne(desk, id), status: "under_review" });
  desk.tell("charge.dispute.updated", dispute);
  return dispute;
}

/** `POST /v1/disputes/{id}/close`: the seller gives in. */
export function closeDispute(desk: StripeDesk, id: string): JsonObject {
  return endDispute(desk, id, "lost");
}

function endDispute(desk: StripeDesk, id: string, status: "won" | "lost"): JsonObject {
  const dispute = keep(desk, "dispute", { ...openOne(desk, id), status });
  desk.tell("charge.dispute.closed", dispute);
  if (status === "won") desk.tell("charge.dispute.funds_reinstated", dispute);
  return dispute;
}

function openOne(desk: StripeDesk, id: string): JsonObject {
  const dispute = fetchObject(desk, "dispute", id);
  if (dispute["status"] === "won" || dispute["status"] === "lost")
    throw wrongState("dispute_closed", "This dispute is already closed");
  return dispute;
}

function chargeToRefund(desk: StripeDesk, form: FormTree): JsonObject {
  const intentId = textAt(form, "payment_intent");
  const intent = intentId === undefined ? undefined : fetchObject(desk, "payment_intent", intentId);
  const chargeId = intent === undefined ? textAt(form, "charge") : textOf(intent["latest_charge"]);
  if (chargeId === undefined)
    throw badParameter("charge", "Must provide payment_intent or charge.", "parameter_missing");
  const charge = desk.db.find("charge", chargeId);
  if (charge?.["paid"] !== true)
    throw wrongState(
      "payment_intent_unexpected_state",
      "This PaymentIntent does not have a successful charge to refund.",
    );
  return charge;
}
