/**
 * The interface of a card provider: requests, responses and events in our own types.
 * @module
 */
import type { JsonObject } from "../../lib/json.ts";

/** The description and amount of a payment session. */
export type SessionRequest = Readonly<{
  quoteId: string; // also the key that makes client twice harmless
  currency: string;
  amount: bigint; // the currency's smallest unit
  description: string;
  metadata: Readonly<Record<string, string>>;
}>;

/** The return URLs of a checkout page, absolute. */
export type CheckoutReturn =
  | Readonly<{ uiMode: "hosted"; successUrl: string; cancelUrl: string }>
  | Readonly<{ uiMode: "embedded"; returnUrl: string | undefined }>;

/** The provider's session; "" for what the kind of session does not have. */
export type PaymentSession = Readonly<{ id: string; clientSecret: string; url: string }>;

/** The status of a payment at the provider. */
export type PaymentStatus = Readonly<{
  paymentId: string;
  quoteId: string | undefined;
  state: "open" | "processing" | "succeeded" | "canceled";
  currency: string;
  amountReceived: bigint;
  amountRefunded: bigint;
  /** When the money was taken, Unix ms; undefined until it is. */
  paidAt: number | undefined;
}>;

/** The status of a checkout session at the provider. */
export type CheckoutStatus = Readonly<{
  sessionId: string;
  state: "open" | "complete" | "expired";
  paymentId: string | undefined;
}>;

/** Events of one span of time, newest first. */
export type CardEventPage = Readonly<{
  events: readonly StripeEvent[];
  /** The event after which the next page begins; undefined when this was the last one. */
  next: string | undefined;
}>;

/**
 * The card provider. Every call rejects with Failure `payment_session_failed` when it gets no response, or a
 * rejection, and with the signal's reason.
 */
export type CardProvider = Readonly<{
  createPaymentIntent: (request: SessionRequest, signal: AbortSignal) => Promise<PaymentSession>;
  /** @param expiresAt - Unix ms, whole seconds, at least 30 minutes from now. */
  createCheckout: (
    request: SessionRequest,
    expiresAt: number,
    back: CheckoutReturn,
    signal: AbortSignal,
  ) => Promise<PaymentSession>;
  /** Undefined when the provider has no such payment. */
  findPayment: (paymentId: string, signal: AbortSignal) => Promise<PaymentStatus | undefined>;
  findCheckout: (sessionId: string, signal: AbortSignal) => Promise<CheckoutStatus | undefined>;
  /** Cancels an unpaid one. @returns Its status afterwards. */
  endPayment: (paymentId: string, signal: AbortSignal) => Promise<PaymentStatus | undefined>;
  endCheckout: (sessionId: string, signal: AbortSignal) => Promise<CheckoutStatus | undefined>;
  /** Gives a payment back whole; client twice gives it back once. */
  refund: (paymentId: string, signal: AbortSignal) => Promise<void>;
  /** Events from (inclusive) to (exclusive), Unix ms. @param after - `next` of the page before. */
  events: (from: number, to: number, after: string | undefined, signal: AbortSignal) => Promise<CardEventPage>;
  close: () => void;
}>;

// An event as Stripe reports it.

/** Something that happened at Stripe. */
export type StripeEvent = Readonly<{
  id: string;
  type: string;
  /** Unix ms. */
  createdAt: number;
  /** The object at the time of the event. */
  object: JsonObject;
}>;
