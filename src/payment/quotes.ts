/**
 * Quotes of top-ups: what was promised for how much money, to whom, until when, and what became of it.
 * @module
 */
import type { UserAddress } from "./addresses.ts";

/** How the payer meets the provider. */
export type TopUpMethod = "payment-intent" | "checkout-session";

/**
 * Where a quote stands. open → paid | expired | failed; an expired one whose payment was made in time is paid after
 * all. What is taken back later is `Quote.takenBackWinc`; the quote stays paid.
 */
export type QuoteState = "open" | "paid" | "expired" | "failed";

/** Who is credited: an account, or a gift that somebody will redeem. */
export type Destination =
  | Readonly<{ kind: "account"; address: UserAddress; type: string /* the request's word */ }>
  | Readonly<{ kind: "gift"; giftId: string /* secret of its link */; message: string | undefined }>;

/** What a quote promises. */
export type QuoteTerms = Readonly<{
  id: string;
  method: TopUpMethod;
  destination: Destination;
  currency: string; // lower case
  /** What is charged, in the currency's smallest unit. */
  paymentAmount: bigint;
  /** What it would cost without promotions. */
  quotedPaymentAmount: bigint;
  winc: bigint;
  promoCodes: readonly string[];
  createdAt: number; // Unix ms
  /** A payment made later than this is given back. Unix ms, whole seconds. */
  expiresAt: number;
}>;

/** A quote and what became of it. */
export type Quote = QuoteTerms &
  Readonly<{
    state: QuoteState;
    /** The provider's session: of a checkout, or the payment intent itself; undefined until it exists. */
    sessionId: string | undefined;
    paymentId: string | undefined;
    paidAt: number | undefined;
    takenBackWinc: bigint;
  }>;
