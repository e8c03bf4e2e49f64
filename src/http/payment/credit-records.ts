/**
 * Balances and approvals as they stand on the wire.
 * Source: docs/reference/payment.md#approvals.
 * @module
 */
import type { Approval } from "../../payment/credits/approvals.ts";
import type { Balance } from "../../payment/credits/balances.ts";

/** The approval record; without an expiry its date is absent. */
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

/** The balance record. */
export function balanceRecord(balance: Balance) {
  return {
    controlledWinc: String(balance.controlledWinc),
    winc: String(balance.winc),
    effectiveBalance: String(balance.effectiveBalance),
    givenApprovals: balance.givenApprovals.map(approvalRecord),
    receivedApprovals: balance.receivedApprovals.map(approvalRecord),
  };
}

/** A moment as the wire has it. @param at - Unix milliseconds. */
export function isoDate(at: number): string {
  return new Date(at).toISOString();
}
