/**
 * x402 on the wire, for every service that accepts payments by it: the 402 response, the payment that a
 * request carries, and the headers about its settlement.
 *
 * One 402 response serves the specification's flat fields, version 1 (the body) and version 2 (a header).
 * Source: docs/reference/payment.md#x402.
 * @module
 */
import { Failure } from "../failures.ts";
import type { X402Quote, X402Settled, X402Terms } from "../payment/x402/x402.ts";
import { readX402Payment, type X402Payment } from "../payment/x402/x402-payment-reader.ts";
import { requirementV1, requirementV2, type X402Resource } from "../payment/x402/x402-requirement.ts";
import { jsonResponse, noStore } from "./responses.ts";

export type X402Required = Readonly<{
  terms: X402Terms;
  quote: X402Quote;
  resource: X402Resource;
  /** The specification's message. */
  error: string;
  /** A payment that did not settle. */
  rejected?: RejectedPayment;
}>;

export type RejectedPayment = Readonly<{ version: 1 | 2; payer: string; reason: string }>;

/** The message of the response to a request without a payment. */
export const noPaymentMessage = "X-PAYMENT header is required";

/** @param failure - `settlement_failed`, with the reason in its context. */
export function rejectedPayment({ version, authorization }: X402Payment, failure: Failure): RejectedPayment {
  return { version, payer: authorization.from, reason: String(failure.context["reason"]) };
}

/**
 * Reads the payment of a request. Version 2 takes precedence if both headers are set.
 *
 * @returns `undefined` when the request has no payment.
 * @throws Failure `invalid_signature` when the header is not a valid payment.
 */
export function x402PaymentOf(request: Request): X402Payment | undefined {
  const second = request.headers.get("payment-signature");
  const first = request.headers.get("x-payment");
  const text = second ?? first;
  if (text === null) return undefined;
  const payment = readX402Payment(text, second === null ? 1 : 2);
  if (payment === undefined) throw new Failure("invalid_signature", { reason: "the header is not a valid payment" });
  return payment;
}

/** The 402 response. */
export function x402RequiredResponse({ terms, quote, resource, error, rejected }: X402Required): Response {
  const first = requirementV1(terms, quote.amount, resource);
  const second = { x402Version: 2, error, resource, accepts: [requirementV2(terms, quote.amount)] };
  const settlement =
    rejected === undefined
      ? {}
      : settlementHeaders(rejected.version, terms, {
          success: false,
          errorReason: rejected.reason,
          transaction: "",
          payer: rejected.payer,
        });
  return jsonResponse({ ...first, x402Version: 1, error, accepts: [first] }, 402, {
    ...noStore,
    "PAYMENT-REQUIRED": base64Json(second),
    ...settlement,
  });
}

/** Headers of the response to a settled payment. */
export function x402SettledHeaders(
  payment: Pick<X402Payment, "version">,
  terms: X402Terms,
  { transaction, payer }: Pick<X402Settled, "transaction" | "payer">,
): Readonly<Record<string, string>> {
  return {
    ...noStore,
    ...settlementHeaders(payment.version, terms, { success: true, transaction, payer }),
  };
}

type Settlement = Readonly<{ success: boolean; transaction: string; payer: string; errorReason?: string }>;

function settlementHeaders(
  version: 1 | 2,
  { network }: X402Terms,
  settlement: Settlement,
): Readonly<Record<string, string>> {
  return version === 1
    ? { "X-PAYMENT-RESPONSE": base64Json({ ...settlement, network: network.nameV1 }) }
    : { "PAYMENT-RESPONSE": base64Json({ ...settlement, network: network.name }) };
}

function base64Json(value: unknown): string {
  return new TextEncoder().encode(JSON.stringify(value)).toBase64();
}
