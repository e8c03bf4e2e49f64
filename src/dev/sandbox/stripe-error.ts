/**
 * Errors in Stripe's form.
 * Source: Stripe's API reference, "Errors".
 * @module
 */
import { Failure } from "../../failures.ts";

/** An error in Stripe's form. */
export type StripeError = Readonly<{
  status: number;
  type: "invalid_request_error" | "card_error" | "idempotency_error" | "api_error";
  message: string;
  code?: string;
  param?: string;
  decline_code?: string;
}>;

/** A Failure that carries a Stripe error to the response. */
export function stripeFailure(stripeError: StripeError): Failure {
  return new Failure("malformed_input", { stripe: stripeError });
}

/** The Stripe error that a Failure carries, if any. */
export function stripeErrorOf(error: unknown): StripeError | undefined {
  if (!(error instanceof Failure)) return undefined;
  // Only `stripeFailure` sets it.
  return error.context["stripe"] as StripeError | undefined;
}

/** A parameter that is missing or wrong. */
export function badParameter(param: string, message: string, code = "parameter_invalid"): Failure {
  return stripeFailure({ status: 400, type: "invalid_request_error", message, code, param });
}

/** An unknown id. */
export function noSuch(kind: string, id: string): Failure {
  const message = `No such ${kind}: '${id}'`;
  return stripeFailure({
    status: 404,
    type: "invalid_request_error",
    message,
    code: "resource_missing",
    param: "id",
  });
}

/** An operation that the object's state does not allow. */
export function wrongState(code: string, message: string): Failure {
  return stripeFailure({ status: 400, type: "invalid_request_error", message, code });
}
