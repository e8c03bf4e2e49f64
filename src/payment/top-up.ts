/**
 * Top-ups: from a wish to a quote that is kept and a payment session at the card provider.
 * @module
 */
import type { PaymentSession } from "./providers/stripe-session.ts";
import type { Destination, Quote, TopUpMethod } from "./quotes.ts";

/** A top-up that somebody asks for; addresses and URLs are checked already. */
export type TopUpWish = Readonly<{
  method: TopUpMethod;
  destination: Destination;
  currency: string;
  amount: bigint;
  promoCodes: readonly string[];
}>;

/** What was made of it. */
export type TopUp = Readonly<{ quote: Quote; session: PaymentSession }>;
