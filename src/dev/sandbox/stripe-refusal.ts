/**
 * How Stripe says no.
 * Source: Stripe's API reference, "Errors".
 * @module
 */
import { Failure } from "../../failures.ts";

/** What is wrong with a call, in Stripe's words. */
export type StripeRefusal = Readonly<{
  status: number;
  type: "invalid_request_error" | "card_error" | "idempotency_error" | "api_error";
  message: string;
  code?: string;
  param?: string;
  decline_code?: string;
}>;

/** The failure that carries it to the answer. */
export function refused(refusal: StripeRefusal): Failure {
  return new Failure("malformed_input", { stripe: refusal });
}

/** What a failure says in Stripe's words; undefined when it is no refusal. */
export function refusalOf(error: unknown): StripeRefusal | undefined {
  if (!(error instanceof Failure)) return undefined;
  // Only `refused` puts it there.
  return error.context["stripe"] as StripeRefusal | undefined;
}

/** A parameter that is missing or wrong. */
export function badParameter(param: string, message: string, code = "parameter_invalid"): Failure {
  return refused({ status: 400, type: "invalid_request_error", message, code, param });
}

/** An id that nothing has. */
export function noSuch(kind: string, id: string): Failure {
  const message = `No such ${kind}: '${id}'`;
  return refused({
    status: 404,
    type: "invalid_request_error",
    message,
    code: "resource_missing",
    param: "id",
  });
}

/** Something that cannot be done as things stand. */
export function wrongState(code: string, message: string): Failure {
  return refused({ status: 400, type: "invalid_request_error", message, code });
}
