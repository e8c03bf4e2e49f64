/**
 * Balances: what an address holds and may spend, at a moment. Reading writes nothing.
 * Source: docs/reference/payment.md#approvals.
 * @module
 */

import type { Tx } from "../../store/ledger/ledger-database.ts";
import { findBalance, user } from "../../store/ledger/transfers.ts";
import type { UserAddress } from "../addresses.ts";
import { type Approval, approvalsNow } from "./approvals.ts";

/** The balances of an address, winc. */
export type Balance = Readonly<{
  /** Its spendable credits; below 0 after a payment was reversed. Expired approvals count as returned. */
  winc: bigint;
  /** `winc` and what is left of the approvals that it gave. */
  controlledWinc: bigint;
  /** `winc` and what is left of the approvals that it received. */
  effectiveBalance: bigint;
  /** Of which something is left, soonest expiry first; at most 1,000, while the sums are over all. */
  givenApprovals: readonly Approval[];
  /** As `givenApprovals`. */
  receivedApprovals: readonly Approval[];
}>;

/** @returns `undefined` for an address that never had credits and has received none. */
export async function readBalance(tx: Tx, address: UserAddress, now: number): Promise<Balance | undefined> {
  const account = await findBalance(tx, user(address));
  const given = await approvalsNow(tx, { payer: address }, now);
  const received = await approvalsNow(tx, { approved: address }, now);
  if (account === undefined && received.unusedWinc === 0n) return undefined;
  const winc = (account ?? 0n) + given.expiredWinc;
  return {
    winc,
    controlledWinc: winc + given.unusedWinc,
    effectiveBalance: winc + received.unusedWinc,
    givenApprovals: given.approvals,
    receivedApprovals: received.approvals,
  };
}
