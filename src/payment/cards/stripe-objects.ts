/**
 * Parsers of Stripe's objects: payments, checkouts, charges, disputes, events; only the used fields.
 *
 * A missing or invalid field becomes undefined: shapes change between versions of the API, and an unreadable event
 * must not stop the events after it.
 * Source: Stripe's API reference, version 2023-10-16.
 * @module
 */
import { isJsonObject, type JsonObject, type JsonValue } from "../../lib/json.ts";
import type { CardReport, DisputeStatus } from "./card-event-store.ts";
import type { CheckoutStatus, PaymentSession, PaymentStatus, StripeEvent } from "./card-provider.ts";

/** The metadata key of a payment's quote id. */
export const quoteKey = "topUpQuoteId";

/** The id of an event, which may otherwise be invalid. */
export function readEventId(value: JsonValue | undefined): string | undefined {
  return readReference(value);
}

/** Parses an event; undefined for an invalid event. */
export function readEvent(value: JsonValue | undefined): StripeEvent | undefined {
  if (!isJsonObject(value)) return undefined;
  const id = readId(value["id"]);
  const type = readText(value["type"]);
  const createdAt = readSeconds(value["created"]);
  const object = objectOf(value["data"])?.["object"];
  if (id === undefined || type === undefined || createdAt === undefined || !isJsonObject(object)) return undefined;
  return { id, type, createdAt, object };
}

type ReadReport = (object: JsonObject, createdAt: number) => CardReport | undefined;

/** Parsers by type of event. */
const reportReaders: Readonly<Record<string, ReadReport>> = {
  "payment_intent.succeeded": (payment, at) => paidReport(payment, payment["id"], payment["amount_received"], at),
  "payment_intent.canceled": (payment) => endedReport(payment, "expired"),
  "checkout.session.completed": checkoutPaidReport,
  "checkout.session.async_payment_succeeded": checkoutPaidReport,
  "checkout.session.async_payment_failed": (checkout) => endedReport(checkout, "failed"),
  "checkout.session.expired": (checkout) => endedReport(checkout, "expired"),
  "charge.refunded": refundedReport,
  "charge.refund.updated": refundFailedReport,
  "refund.failed": refundFailedReport,
  "charge.dispute.created": disputeReport,
  "charge.dispute.updated": disputeReport,
  "charge.dispute.closed": disputeReport,
  "charge.dispute.funds_withdrawn": disputeReport,
  "charge.dispute.funds_reinstated": disputeReport,
};

/** The types of events that are processed, for requests of the event list. */
export const eventTypes: readonly string[] = Object.keys(reportReaders);

/** The report of an event; undefined when it is not relevant. */
export function reportOf({ type, object, createdAt }: StripeEvent): CardReport | undefined {
  return Object.hasOwn(reportReaders, type) ? reportReaders[type]?.(object, createdAt) : undefined;
}

/** The session that a payer continues with; undefined for another response. */
export function readSession(value: JsonObject): PaymentSession | undefined {
  const id = readId(value["id"]);
  if (id === undefined) return undefined;
  return { id, clientSecret: readText(value["client_secret"]) ?? "", url: readText(value["url"]) ?? "" };
}

/** The status of a payment intent; refunds need an expanded `latest_charge`. */
export function readPayment(value: JsonObject): PaymentStatus | undefined {
  const paymentId = readId(value["id"]);
  const currency = readCurrency(value["currency"]);
  const amountReceived = readAmount(value["amount_received"]);
  if (paymentId === undefined || currency === undefined || amountReceived === undefined) return undefined;
  const charge = objectOf(value["latest_charge"]);
  const state = paymentState(readText(value["status"]));
  const paidAt = readSeconds(charge?.["created"]) ?? readSeconds(value["created"]);
  return {
    paymentId,
    quoteId: quoteIdOf(value),
    state,
    currency,
    amountReceived,
    amountRefunded: readAmount(charge?.["amount_refunded"]) ?? 0n,
    paidAt: state === "succeeded" ? paidAt : undefined,
  };
}

/** The status of a checkout session. */
export function readCheckout(value: JsonObject): CheckoutStatus | undefined {
  const sessionId = readId(value["id"]);
  const state = (["open", "complete", "expired"] as const).find((known) => known === value["status"]);
  if (sessionId === undefined || state === undefined) return undefined;
  return { sessionId, state, paymentId: readReference(value["payment_intent"]) };
}

function paidReport(
  object: JsonObject,
  payment: JsonValue | undefined,
  received: JsonValue | undefined,
  paidAt: number,
): CardReport | undefined {
  const paymentId = readReference(payment);
  const quoteId = quoteIdOf(object);
  const amount = readAmount(received);
  const currency = readCurrency(object["currency"]);
  if (paymentId === undefined || quoteId === undefined || amount === undefined || currency === undefined)
    return undefined;
  return { kind: "paid", paymentId, quoteId, amount, currency, paidAt };
}

/** A checkout can be complete before its payment is. */
function checkoutPaidReport(checkout: JsonObject, paidAt: number): CardReport | undefined {
  if (checkout["payment_status"] !== "paid") return undefined;
  return paidReport(checkout, checkout["payment_intent"], checkout["amount_total"], paidAt);
}

function endedReport(object: JsonObject, state: "expired" | "failed"): CardReport | undefined {
  const quoteId = quoteIdOf(object);
  return quoteId === undefined ? undefined : { kind: "ended", quoteId, state };
}

function refundedReport(charge: JsonObject, asOf: number): CardReport | undefined {
  const paymentId = readReference(charge["payment_intent"]);
  const amount = readAmount(charge["amount_refunded"]);
  if (paymentId === undefined || amount === undefined) return undefined;
  return { kind: "refunded", paymentId, amount, asOf };
}

/** A failed refund lowers the sum of refunds, so a message of the same second with the larger sum is older. */
function refundFailedReport(refund: JsonObject, createdAt: number): CardReport | undefined {
  const paymentId = readReference(refund["payment_intent"]);
  const status = refund["status"];
  if (paymentId === undefined || (status !== "failed" && status !== "canceled")) return undefined;
  return { kind: "refund_failed", paymentId, asOf: createdAt + 1 };
}

function disputeReport(dispute: JsonObject, asOf: number): CardReport | undefined {
  const disputeId = readId(dispute["id"]);
  const paymentId = readReference(dispute["payment_intent"]);
  const amount = readAmount(dispute["amount"]);
  const currency = readCurrency(dispute["currency"]);
  const status = disputeStatus(readText(dispute["status"]));
  if (disputeId === undefined || paymentId === undefined || amount === undefined) return undefined;
  if (currency === undefined || status === undefined) return undefined;
  return { kind: "dispute", paymentId, disputeId, amount, currency, status, asOf };
}

function disputeStatus(text: string | undefined): DisputeStatus | undefined {
  switch (text) {
    case "warning_needs_response":
    case "warning_under_review":
      return "inquiry";
    case "warning_closed":
    case "prevented":
      return "inquiry_closed";
    case "needs_response":
    case "under_review":
      return "open";
    case "won":
    // The payer received a refund, which has its own event and is counted there.
    case "charge_refunded":
      return "won";
    case "lost":
      return "lost";
    default:
      return undefined;
  }
}

function paymentState(status: string | undefined): PaymentStatus["state"] {
  if (status === "succeeded" || status === "canceled" || status === "processing") return status;
  return "open";
}

function quoteIdOf(object: JsonObject): string | undefined {
  return readId(objectOf(object["metadata"])?.[quoteKey]);
}

/** An id, or the expanded object that has it. */
function readReference(value: JsonValue | undefined): string | undefined {
  return readId(isJsonObject(value) ? value["id"] : value);
}

/** Ids are stored and used in URL paths. */
function readId(value: JsonValue | undefined): string | undefined {
  return typeof value === "string" && /^[A-Za-z0-9_-]{1,255}$/.test(value) ? value : undefined;
}

function readText(value: JsonValue | undefined): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** A currency code; it is stored, so arbitrary text is rejected. Source: ISO 4217. */
function readCurrency(value: JsonValue | undefined): string | undefined {
  return typeof value === "string" && /^[A-Za-z]{3}$/.test(value) ? value : undefined;
}

function readAmount(value: JsonValue | undefined): bigint | undefined {
  if (typeof value === "bigint") return undefined;
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? BigInt(value) : undefined;
}

function readSeconds(value: JsonValue | undefined): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value * 1_000) && value >= 0 ? value * 1_000 : undefined;
}

function objectOf(value: JsonValue | undefined): JsonObject | undefined {
  return isJsonObject(value) ? value : undefined;
}

// Webhook signatures. The signature covers the received bytes of the body, so it is checked before the body is parsed.
// Source: Stripe's "Verify webhook signatures manually": HMAC-SHA-256 of `{t}.{body}`, hex, in `t=…,v1=…`.

/** Largest difference between a signature's time and the local time, in either direction. Seconds. */
const toleranceSeconds = 300;

/** Signatures in one header: one for each secret in use during a change of secrets. */
const signaturesMax = 16;

const signatureSize = 32;

/** Longer headers are invalid. Characters. */
const headerLengthMax = 2_048;

/**
 * Whether a webhook has a valid and recent signature.
 *
 * @param body - The bytes as received.
 * @param header - The `Stripe-Signature` header.
 * @param now - Unix ms.
 */
export function isSignedByStripe(body: Uint8Array, header: string | null, secret: string, now: number): boolean {
  const signed = header === null ? undefined : readHeader(header);
  if (signed === undefined || secret === "") return false;
  const age = BigInt(now) / 1_000n - signed.time;
  if (age > BigInt(toleranceSeconds) || age < -BigInt(toleranceSeconds)) return false;
  const expected = new Bun.CryptoHasher("sha256", secret).update(`${signed.time}.`).update(body).digest();
  return signed.signatures.some((signature) => crypto.timingSafeEqual(signature, expected));
}

function readHeader(header: string): Readonly<{ time: bigint; signatures: Uint8Array[] }> | undefined {
  if (header.length > headerLengthMax) return undefined;
  const parts = header.split(",").map((part) => part.trim().split("=", 2));
  const time = parts.find(([name]) => name === "t")?.[1] ?? "";
  const signatures = parts
    .filter(([name, value]) => name === "v1" && /^[0-9a-f]{64}$/.test(value ?? ""))
    .slice(0, signaturesMax)
    .map(([, value]) => Uint8Array.fromHex(value ?? ""))
    .filter(({ length }) => length === signatureSize);
  return /^\d{1,15}$/.test(time) && signatures.length > 0 ? { time: BigInt(time), signatures } : undefined;
}
