/**
 * What a payer is rejected, in words that say why.
 * @module
 */
import { Failure } from "../failures.ts";

/** The failure whose message is a reason. @param reason - Said to the caller as it is. */
export function rejected(reason: string): Failure {
  return new Failure("payment_rejected", { reason });
}
