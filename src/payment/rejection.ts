/**
 * The failure of a payment that is rejected for a stated reason.
 * @module
 */
import { Failure } from "../failures.ts";

/** @param reason - Sent to the client as it is. */
export function rejected(reason: string): Failure {
  return new Failure("payment_rejected", { reason });
}
