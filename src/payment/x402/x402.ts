/**
 * Payments by the x402 protocol: what is asked for, what came, and the one step that settles it. Types only.
 *
 * A payment is an authorization to move dollars, signed by the payer (EIP-3009). Settling moves them once and credits
 * the payer's account once, whoever asks how often; a service that sells something for the payment reserves its price
 * from that account afterwards, so that a refusal leaves the payer the credits.
 * Source: docs/reference/payment.md#x402.
 * @module
 */
import type { UserAddress } from "../addresses.ts";
import type { X402Network } from "./networks.ts";
import type { X402Payment } from "./payload.ts";

/** What somebody wants to pay for. */
export type X402Want =
  /** Storing so many bytes, 1 or more. */
  | Readonly<{ kind: "bytes"; size: bigint }>
  /** Credits, winc, 1 or more. */
  | Readonly<{ kind: "credits"; winc: bigint }>
  /** Whatever an amount of the asset buys, `x402AmountMin` or more of its smallest unit. */
  | Readonly<{ kind: "dollars"; amount: bigint }>;

/** A price. It is held for as long as a payment may take, so that the one who signs it is not refused for a new one. */
export type X402Quote = Readonly<{
  want: X402Want;
  /** What is asked for, smallest unit of the asset; at least `x402AmountMin`. */
  amount: bigint;
  /** What the payment is meant to buy: 1 or more. A payment of `amount` credits at least this. */
  winc: bigint;
}>;

/** Under which terms everything is paid here. */
export type X402Terms = Readonly<{
  network: X402Network;
  payTo: UserAddress;
  /** How long a payment may take from quote to settlement. Seconds. */
  timeoutSeconds: number;
}>;

/** What a payment is for: `topUpPurpose`, or what `uploadPurpose` says. The first that it is sent for binds it. */
export type X402Purpose = string & { readonly __brand: "X402Purpose" };

/** A payment and what it is for. */
export type X402Request = Readonly<{
  payment: X402Payment;
  /** What is bought. Payments for quotes that are still held are taken, whatever it costs by now. */
  want: X402Want;
  purpose: X402Purpose;
  /** Address of what is paid for, absolute; for the facilitator's eyes. */
  resource: string;
}>;

/** A payment that has moved the dollars, and credited the payer. */
export type X402Settled = Readonly<{
  /** Whose account was credited. */
  payer: UserAddress;
  /** What it was credited with: what was paid, at the quote's price. */
  creditedWinc: bigint;
  /** What the quote was for; `creditedWinc` or less. An upload reserves this. */
  quotedWinc: bigint;
  /** What the payer's own balance was right after. */
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
   * Says what something costs. Writes nothing.
   * @throws Failure `pricing_oracle_unavailable`, `fiat_oracle_unavailable`; `invalid_quantity` when it costs more than
   *   can be paid.
   */
  quote: (want: X402Want, signal: AbortSignal) => Promise<X402Quote>;
  /**
   * Settles a payment and credits its payer, once ever; the same payment for the same purpose is answered the same
   * again.
   *
   * Once money may move, the signal only ends the caller's wait: the payment is followed until the chain has decided.
   * @throws Failure `invalid_signature` for a signature that is not the payer's; `settlement_failed` {reason} when the
   *   payment is not what was asked for, or did not and will not settle; `settlement_unknown` when that is not known
   *   yet, also while another request settles it; those of `quote`; `database_unavailable`, `busy`.
   */
  settle: (request: X402Request, signal: AbortSignal) => Promise<X402Settled>;
}>;

/** The least that anything costs, smallest unit of the asset: a tenth of a cent. */
export const x402AmountMin = 1_000n;

/** A payment for credits alone. */
export const topUpPurpose = "top-up" as X402Purpose;

/**
 * A payment for an upload, whose price the upload service reserves from the payer's account after `settle`.
 * @param id - Names the upload: equal for a repeat of it, different for all others. At most 200 characters.
 */
export function uploadPurpose(id: string): X402Purpose {
  return `upload:${id}` as X402Purpose;
}

/**
 * A payment for reading beyond the limits.
 * @param client - Names the reader: 64 hexadecimal digits.
 */
export function readingPurpose(client: string): X402Purpose {
  return `reading:${client}` as X402Purpose;
}
