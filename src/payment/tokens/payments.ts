/**
 * Payments in tokens: first sight → pending → credited → reversed, or failed. Types only.
 * @module
 */
import type { AddressType, Token, UserAddress } from "../addresses.ts";
import type { Adjustment } from "../prices.ts";
import type { BlockRef } from "./sight.ts";

/** Where a payment stands. `reversed`: it was credited, and the chain took it back. */
export type PaymentState = "pending" | "credited" | "reversed" | "failed";

/** A payment as it is kept: what one sender paid in one transaction. */
export type TokenPayment = Readonly<{
  token: Token;
  /** Canonical; with the token and the part it names the payment. */
  transactionId: string;
  /** 0 for the first sender of the transaction, in the chain's order. */
  part: number;
  state: PaymentState;
  sender: UserAddress;
  /** The account that is credited. */
  destination: UserAddress;
  destinationType: AddressType;
  /** Smallest unit. */
  quantity: bigint;
  /** Fixed when the payment was first seen. */
  winc: bigint;
  fees: readonly Adjustment[];
  block: BlockRef | undefined;
  /** Times are Unix milliseconds. */
  seenAt: number;
  creditedAt: number | undefined;
  failedAt: number | undefined;
  failureReason: string | undefined;
}>;

/** What a report of a payment came to. */
export type Submitted = Readonly<{
  payment: TokenPayment;
  /** Whether the payment was known before. */
  isKnown: boolean;
}>;

/** Payments in tokens. */
export type TokenPayments = Readonly<{
  /**
   * Takes a report of a payment: looks at the chain, records it, credits it when it is confirmed.
   *
   * @param token - One of `takes`. @param text - The transaction's id as somebody wrote it.
   * @throws Failure `transaction_not_found`, `transaction_trouble`, `payment_refused` with the reason,
   *   `sender_excluded`, `token_not_supported`.
   */
  submit: (token: Token, text: string, signal: AbortSignal) => Promise<Submitted>;
  /** Tokens that have an address and a way to their chain. */
  takes: readonly Token[];
}>;
