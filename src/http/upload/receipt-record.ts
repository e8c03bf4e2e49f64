/**
 * Receipts on the wire.
 * Source: docs/reference/formats.md#receipts.
 * @module
 */
import { type ReceiptTerms, receiptVersion } from "../../arweave/receipt.ts";
import type { Taken } from "../../upload/intake/charge.ts";
import { approvalRecord } from "../payment/credit-records.ts";

/** What makes receipts of items that were taken. */
export type ReceiptWriter = (taken: Taken, request: Request) => Promise<Readonly<Record<string, unknown>>>;

/** What a writer needs. */
export type ReceiptWriterOptions = Readonly<{
  /** Signs in a thread, the same to the byte whenever it is asked. */
  sign: (terms: ReceiptTerms, signal: AbortSignal) => Promise<string>;
  /** The modulus of the key, base64url. */
  publicKey: string;
  /** Hosts that serve the item at once, as this caller reaches them. */
  hosts: (request: Request) => readonly string[];
}>;

/** Creates a writer. Nothing but the signature takes time. */
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
