/**
 * Payments by the x402 protocol: terms, quotes, and the requests that a payment settles.
 *
 * A payment is an authorization to move dollars, signed by the payer (EIP-3009). Settling moves the dollars once and
 * credits the payer's account once, however often the payment is sent. A service then reserves its price from that
 * account, so that the payer keeps the credits when the service rejects the request.
 * Source: docs/reference/payment.md#x402.
 * @module
 */
import type { UserAddress } from "../addresses.ts";
import type { X402Network } from "./x402-networks.ts";
import type { X402Payment } from "./x402-payment-reader.ts";

/** The subject of a payment. */
export type X402Want =
  /** Storage of this number of bytes, 1 or more. */
  | Readonly<{ kind: "bytes"; size: bigint }>
  /** Credits, winc, 1 or more. */
  | Readonly<{ kind: "credits"; winc: bigint }>
  /** The credits that an amount of the asset buys; the amount is `x402AmountMin` or more of its smallest unit. */
  | Readonly<{ kind: "dollars"; amount: bigint }>;

/** A price. It is held as long as a payment may take, so that a later price does not invalidate the signed amount. */
export type X402Quote = Readonly<{
  want: X402Want;
  /** The price, smallest unit of the asset; at least `x402AmountMin`. */
  amount: bigint;
  /** Credits for the payment, 1 or more. A payment of `amount` credits at least this. */
  winc: bigint;
}>;

/** The terms of all payments. */
export type X402Terms = Readonly<{
  network: X402Network;
  payTo: UserAddress;
  /** Longest time from quote to settlement. Seconds. */
  timeoutSeconds: number;
}>;

/** The purpose of a payment: `topUpPurpose`, or an `uploadPurpose`. The first purpose binds it. */
export type X402Purpose = string & { readonly __brand: "X402Purpose" };

/** A payment with its purchase. */
export type X402Request = Readonly<{
  payment: X402Payment;
  /** The purchase. Payments for held quotes are accepted at their price. */
  want: X402Want;
  purpose: X402Purpose;
  /** Absolute URL of the purchase, for the facilitator. */
  resource: string;
}>;

/** A settled payment: the dollars moved, and the payer was credited. */
export type X402Settled = Readonly<{
  /** The credited account. */
  payer: UserAddress;
  /** The credits for the full payment, at the quote's price. */
  creditedWinc: bigint;
  /** The credits that the quote promised; `creditedWinc` or less. An upload reserves this. */
  quotedWinc: bigint;
  /** The payer's own balance right after. */
  balance: bigint;
  /** Hash of the chain's transaction. */
  transaction: string;
  /** Smallest unit of the asset. */
  paid: bigint;
  /** Settled by an earlier request with the same payment. */
  isReplay: boolean;
}>;

/** Payments by x402. */
export type X402 = Readonly<{
  terms: X402Terms;
  /**
   * Returns the price of a purchase. Writes nothing.
   * @throws Failure `pricing_oracle_unavailable`, `fiat_oracle_unavailable`; `invalid_quantity` when it costs more than
   *   can be paid.
   */
  quote: (want: X402Want, signal: AbortSignal) => Promise<X402Quote>;
  /**
   * Settles a payment and credits its payer, once ever. The same payment for the same purpose gets the same response.
   *
   * Once money may move, the signal only ends the caller's wait: the payment is followed until the chain has decided.
   * @throws Failure `invalid_signature` for a signature that is not the payer's; `settlement_failed` {reason} when the
   *   payment does not match the requirement or cannot settle; `settlement_unknown` while the outcome is unknown, also
   *   while another request settles it; those of `quote`; `database_unavailable`, `busy`.
   */
  settle: (request: X402Request, signal: AbortSignal) => Promise<X402Settled>;
}>;

/** The lowest price, smallest unit of the asset: a tenth of a cent. */
export const x402AmountMin = 1_000n;

/** A payment for credits alone. */
export const topUpPurpose = "top-up" as X402Purpose;

/**
 * A payment for an upload, whose price the upload service reserves from the payer's account after `settle`.
 * @param id - The upload's id: equal for a repeated upload, different for all others. At most 200 characters.
 */
export function uploadPurpose(id: string): X402Purpose {
  return `upload:${id}` as X402Purpose;
}

/**
 * A payment for reading beyond the limits.
 * @param client - The id of the reader: 64 hexadecimal digits.
 */
export function readingPurpose(client: string): X402Purpose {
  return `reading:${client}` as X402Purpose;
}
