/**
 * Promo codes: who may use them, and the count of those that were paid with.
 *
 * A code is looked up when a price is asked for and counted when the payment is credited, in the same transaction:
 * a quote that is never paid uses nothing up.
 * @module
 */
import type { Tx } from "../store/ledger/database.ts";
import type { UserAddress } from "./addresses.ts";

/** A payment that used codes. */
export type PromoUse = Readonly<{
  address: UserAddress;
  /** The adjustments' `promoCode`s. */
  codes: readonly string[];
  /** Id of the payment's record. */
  paymentId: string;
  /** Unix milliseconds. */
  at: bigint;
}>;

/**
 * Counts the codes of a payment that is being credited, all of them or none. To be called before the payment's own
 * receipt is written.
 *
 * @returns Whether they counted. They do not where another payment of the user, or the last of the code's uses, came
 *   first: then the payment buys only what was charged, winc × charged / quoted, rounded down.
 */
export type CountPromo = (tx: Tx, use: PromoUse) => Promise<boolean>;
