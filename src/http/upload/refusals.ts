/**
 * Refusals of uploads that say more than a message: what is needed, and what there is.
 * Source: contract.md §1, §6.
 * @module
 */
import { Failure, failures } from "../../failures.ts";
import { jsonAnswer } from "../answers.ts";

/** Does the work of a route; a refusal for want of credits becomes an object that says how much is missing. */
export async function fromUpload(work: () => Promise<Response>): Promise<Response> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "insufficient_balance") throw error;
    const { status, message } = failures.insufficient_balance;
    const { needed, available } = error.facts;
    const amounts = { needed: String(needed), available: String(available) };
    return jsonAnswer({ error: message, message, ...amounts }, status, { "Cache-Control": "no-store" });
  }
}
