/**
 * Paying back what an upload was charged when it failed after all: each payer gets what came of them, once.
 *
 * What came of an approval goes to the one who gave it: the approval was spent, and may have ended since.
 * Source: docs/reference/payment.md#reservations-and-refunds.
 * @module
 */

import type { Tx } from "../../store/ledger/ledger-database.ts";
import { revenue, transfer, user } from "../../store/ledger/transfers.ts";
import type { UserAddress } from "../addresses.ts";
import type { Step } from "./approvals.ts";
import { partsOf } from "./reservation-rows.ts";

/**
 * Pays back a reservation that was posted; a second call changes nothing. The item may be reserved for anew: it is not
 * paid for any more.
 */
export async function refundReservation(tx: Tx, reservationId: string, step: Step): Promise<void> {
  const [row] = await tx.all<{ id: string; item_id: string; payer: UserAddress; winc: bigint }>(
    "UPDATE reservations SET state = 'refunded' WHERE id = ? AND state = 'posted' " +
      "RETURNING id, item_id, payer, winc",
    reservationId,
  );
  if (row === undefined || row.winc === 0n) return;
  const parts = await partsOf(tx, row);
  await transfer(tx, {
    id: step.makeId(),
    kind: "refund",
    at: step.now,
    changeId: row.item_id,
    legs: [
      { account: revenue, amount: -row.winc },
      ...parts.map(({ payer, winc }) => ({ account: user(payer), amount: winc })),
    ],
  });
}
