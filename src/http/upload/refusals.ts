/**
 * Rejections of uploads with more than a message: the credits that are needed and available.
 * Source: docs/reference/upload.md#posting-an-item.
 * @module
 */
import { Failure, failures } from "../../failures.ts";
import { invalidApproval } from "../../upload/intake/approval-tags.ts";
import { jsonResponse } from "../responses.ts";

/**
 * Runs a route; a rejection for missing credits becomes an object with the missing amount.
 *
 * @throws Failure `upload_rejected` {reason} where the approvals in an item's tags cannot be executed.
 */
export async function fromUpload(work: () => Promise<Response>): Promise<Response> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const { approval } = error.context;
    if (approval === "give" || approval === "revoke") throw approvalFailure(approval, error);
    if (error.code !== "insufficient_balance") throw error;
    const { status, message } = failures.insufficient_balance;
    const { needed, available } = error.context;
    const amounts = { needed: String(needed), available: String(available) };
    return jsonResponse({ error: message, message, ...amounts }, status, { "Cache-Control": "no-store" });
  }
}

function approvalFailure(approval: "give" | "revoke", failure: Failure): Failure {
  const { reason, payer } = failure.context;
  const why =
    failure.code === "insufficient_balance" ? `Insufficient balance for '${payer}'` : String(reason ?? failure.message);
  return invalidApproval(approval === "give" ? "create" : "revoke", why);
}
