/**
 * Responses to uploads: receipts in their wire format, and rejections that state the needed and the available credits.
 * Source: docs/reference/formats.md#receipts; docs/reference/upload.md#posting-an-item.
 * @module
 */
import { type ReceiptTerms, receiptVersion } from "../../arweave/receipt.ts";
import { Failure, failures } from "../../failures.ts";
import { invalidApproval } from "../../upload/intake/approval-tags.ts";
import type { Taken } from "../../upload/intake/charge-item.ts";
import { approvalRecord } from "../payment/payment-records.ts";
import { idSchema, ref, type Schema, textSchema } from "../reference/openapi-types.ts";
import { jsonResponse, noStore } from "../responses.ts";
import { byteSchema, texts, winc } from "./upload-schemas.ts";

export const receiptFields = {
  id: idSchema,
  timestamp: { type: "integer", description: "Time of the upload, Unix milliseconds." },
  winc,
  version: { type: "string", enum: ["0.2.0"] },
  deadlineHeight: byteSchema("Height by which the chain is promised to have the item."),
  dataCaches: { ...texts, description: "Hosts that serve it at once." },
  fastFinalityIndexes: { ...texts, description: "Hosts whose queries find it at once." },
  public: { ...textSchema, description: "Modulus of the key that signed, base64url." },
  signature: {
    ...textSchema,
    description:
      "RSA-PSS with SHA-256, no salt, over the deep hash of `Bundlr`, version, id, deadlineHeight and timestamp, " +
      "each as text; base64url.",
  },
  owner: { ...idSchema, description: "SHA-256 of the owner's key." },
  "createdApproval?": ref("Approval"),
  "revokedApprovals?": { type: "array", items: ref("Approval") },
} as const satisfies Readonly<Record<string, Schema>>;

export type ReceiptWriter = (taken: Taken, request: Request) => Promise<Readonly<Record<string, unknown>>>;

type ReceiptWriterOptions = Readonly<{
  /** Signs in a thread; the same terms result in the same bytes. */
  sign: (terms: ReceiptTerms, signal: AbortSignal) => Promise<string>;
  /** The modulus of the key, base64url. */
  publicKey: string;
  /** Hosts that serve the item at once, as the client reaches them. */
  hosts: (request: Request) => readonly string[];
}>;

export function createReceiptWriter({ sign, publicKey, hosts }: ReceiptWriterOptions): ReceiptWriter {
  return async ({ upload, createdApproval, revokedApprovals }, request) => {
    const { id, deadlineHeight, receivedAt: timestamp, winc, ownerAddress } = upload;
    const signature = await sign({ id, deadlineHeight, timestamp }, request.signal);
    const served = hosts(request);
    return {
      id,
      timestamp,
      winc: winc.toString(),
      version: receiptVersion,
      deadlineHeight,
      dataCaches: served,
      fastFinalityIndexes: served,
      public: publicKey,
      signature,
      owner: ownerAddress,
      ...(createdApproval === undefined ? {} : { createdApproval: approvalRecord(createdApproval) }),
      ...(revokedApprovals === undefined ? {} : { revokedApprovals: revokedApprovals.map(approvalRecord) }),
    };
  };
}

/**
 * Runs a route. A rejection for missing credits becomes a response with the needed and the available amount.
 *
 * @throws Failure `upload_rejected` {reason} when the approvals in an item's tags cannot be executed.
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
    return jsonResponse({ error: message, message, ...amounts }, status, noStore);
  }
}

function approvalFailure(approval: "give" | "revoke", failure: Failure): Failure {
  const { reason, payer } = failure.context;
  const why =
    failure.code === "insufficient_balance" ? `Insufficient balance for '${payer}'` : String(reason ?? failure.message);
  return invalidApproval(approval === "give" ? "create" : "revoke", why);
}
