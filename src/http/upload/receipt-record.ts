/**
 * Receipts in their wire format, and their schema.
 * Source: docs/reference/formats.md#receipts.
 * @module
 */
import { type ReceiptTerms, receiptVersion } from "../../arweave/receipt.ts";
import type { Taken } from "../../upload/intake/charge.ts";
import { approvalRecord } from "../payment/credit-records.ts";
import { idSchema, ref, type Schema, textSchema } from "../reference/words.ts";
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

export type ReceiptWriterOptions = Readonly<{
  /** Signs in a thread; the same terms give the same bytes. */
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
