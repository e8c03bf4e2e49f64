/**
 * The ledger out of reach, in each endpoint's own words.
 * Source: docs/reference/gateway.md#errors.
 * @module
 */
import { Failure, type FailureCode } from "../../failures.ts";

/**
 * Waits for what the ledger is asked, and says its trouble in the endpoint's words.
 *
 * @throws Failure `code` in place of `database_unavailable` and `busy`.
 */
export async function fromLedger<Answer>(code: FailureCode, answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer;
  } catch (error) {
    const isTrouble =
      error instanceof Failure && (error.code === "database_unavailable" || error.code === "busy");
    throw isTrouble ? new Failure(code, error.facts, error) : error;
  }
}
