/**
 * The ledger out of reach, in each endpoint's own words.
 * Source: docs/reference/gateway.md#errors.
 * @module
 */
import { Failure, type FailureCode } from "../../failures.ts";

/**
 * Waits for the ledger, and reports its faults in the endpoint's words.
 *
 * @throws Failure `code` in place of `database_unavailable` and `busy`.
 */
export async function fromLedger<Result>(code: FailureCode, response: Promise<Result>): Promise<Result> {
  try {
    return await response;
  } catch (error) {
    const isFault = error instanceof Failure && (error.code === "database_unavailable" || error.code === "busy");
    throw isFault ? new Failure(code, error.context, error) : error;
  }
}
