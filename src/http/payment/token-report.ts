/**
 * A report of a payment in tokens, as it is judged and as the API reference shows it.
 * Source: docs/reference/payment.md#reports.
 * @module
 */
import { recordKind, textKind } from "../../lib/kind.ts";
import { bodyOf, needed } from "../body-fields.ts";

/** The body. */
export const tokenReport = bodyOf({ tx_id: needed(textKind({ minLength: 1 }), "missing_tx_id") });

/** Reads which transaction paid; what is no object names none. @throws Failure `missing_tx_id`. */
export function readTokenReport(body: unknown): string {
  return tokenReport.read(recordKind.is(body) ? body : {}).tx_id;
}
