/**
 * Balances and approvals in their wire format, and its schemas.
 * Source: docs/reference/payment.md#approvals.
 * @module
 */
import type { Approval } from "../../payment/credits/approvals.ts";
import type { Balance } from "../../payment/credits/balances.ts";
import { record, ref, type Schema, textSchema } from "../reference/words.ts";
import { dateTime, signedWinc } from "./payment-schemas.ts";

const approvals: Schema = { type: "array", items: ref("Approval") };

const balanceFields = {
  winc: signedWinc,
  controlledWinc: signedWinc,
  effectiveBalance: signedWinc,
  givenApprovals: approvals,
  receivedApprovals: approvals,
};

export const approvalSchema: Schema = record({
  approvalDataItemId: textSchema,
  approvedAddress: textSchema,
  payingAddress: textSchema,
  approvedWincAmount: signedWinc,
  usedWincAmount: signedWinc,
  creationDate: dateTime,
  "expirationDate?": dateTime,
});

/** The records of balances and approvals, as components of the API reference. */
export const creditSchemas: Readonly<Record<string, Schema>> = {
  Approval: approvalSchema,
  Approvals: record({
    approvals,
    amount: signedWinc,
    "expiresBy?": { type: "integer", description: "Earliest expiry, Unix milliseconds." },
  }),
  ApprovalsOfAddress: record({ givenApprovals: approvals, receivedApprovals: approvals }),
  Balance: record(
    balanceFields,
    "`winc` is what the account can spend or share; `controlledWinc` adds the unused part of approvals that it gave, " +
      "`effectiveBalance` the unused part of approvals that it received. At most 1,000 approvals are listed.",
  ),
  BalanceOfAddress: record({ ...balanceFields, balance: signedWinc }),
  FreeAllowance: record({
    bytesRemaining: { type: "integer", nullable: true, description: "`null` means without limit." },
    freeUploadLimitBytes: { type: "integer", description: "The largest item that is uploaded free of charge." },
  }),
};

/** `expirationDate` is absent of an approval that never expires. */
export function approvalRecord(approval: Approval) {
  const { expiresAt } = approval;
  return {
    approvalDataItemId: approval.id,
    approvedAddress: approval.approvedAddress,
    payingAddress: approval.payingAddress,
    approvedWincAmount: String(approval.approvedWinc),
    usedWincAmount: String(approval.usedWinc),
    creationDate: isoDate(approval.createdAt),
    ...(expiresAt === undefined ? {} : { expirationDate: isoDate(expiresAt) }),
  };
}

export function balanceRecord(balance: Balance) {
  return {
    controlledWinc: String(balance.controlledWinc),
    winc: String(balance.winc),
    effectiveBalance: String(balance.effectiveBalance),
    givenApprovals: balance.givenApprovals.map(approvalRecord),
    receivedApprovals: balance.receivedApprovals.map(approvalRecord),
  };
}

/** @param at - Unix milliseconds. */
export function isoDate(at: number): string {
  return new Date(at).toISOString();
}
