/**
 * Fees of the devnet: the chain's own formula at a price that never moves, so that a test knows what it pays.
 *
 * A byte costs about 820 winston, near the main net's; the smallest transaction with data about 0.00022 AR.
 * Source: ArweaveTeam/arweave, ar_pricing (distribution of fees).
 * @module
 */
import { type StoragePrice, transactionFee } from "../../arweave/pricing.ts";
import type { Winston } from "../../arweave/winston.ts";

/** What every block of the devnet states. */
export const devnetPrice: StoragePrice = { pricePerGibMinute: 400n, kryderPlusRateMultiplier: 1n };

/**
 * The least that a transaction has to pay.
 *
 * @param dataSize - Bytes, 0 or more.
 * @param recipient - Whether the target has an account; "none" when there is no target.
 */
export function devnetFee(dataSize: bigint, recipient: "none" | "known" | "new"): Winston {
  return transactionFee(devnetPrice, dataSize, recipient);
}

/** The miner's part of a fee, which is a twentieth of the rest; the rest goes to the endowment. */
export function minerShare(fee: bigint): bigint {
  return fee / 21n;
}
