/**
 * The interface of a card provider: its requests, responses, events, and the countries where cards are accepted.
 * @module
 */
import type { JsonObject } from "../../lib/json.ts";

/** The description and amount of a payment session. */
export type SessionRequest = Readonly<{
  quoteId: string; // also the idempotency key
  currency: string;
  amount: bigint; // the currency's smallest unit
  description: string;
  metadata: Readonly<Record<string, string>>;
}>;

/** The return URLs of a checkout page, absolute. */
export type CheckoutReturn =
  | Readonly<{ uiMode: "hosted"; successUrl: string; cancelUrl: string }>
  | Readonly<{ uiMode: "embedded"; returnUrl: string | undefined }>;

/** The provider's session; "" for fields that the kind of session does not have. */
export type PaymentSession = Readonly<{ id: string; clientSecret: string; url: string }>;

/** The status of a payment at the provider. */
export type PaymentStatus = Readonly<{
  paymentId: string;
  quoteId: string | undefined;
  state: "open" | "processing" | "succeeded" | "canceled";
  currency: string;
  amountReceived: bigint;
  amountRefunded: bigint;
  /** When the payment was made, Unix ms; undefined until then. */
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
  /** The event after which the next page begins; undefined on the last page. */
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
  /** Cancels an unpaid payment. @returns Its new status. */
  endPayment: (paymentId: string, signal: AbortSignal) => Promise<PaymentStatus | undefined>;
  endCheckout: (sessionId: string, signal: AbortSignal) => Promise<CheckoutStatus | undefined>;
  /**
   * Refunds what was not refunded of a payment.
   *
   * @param key - Of the reason for it, at most 128 characters: a request that is repeated with it within a day gets the
   *   first response again.
   */
  refund: (paymentId: string, key: string, signal: AbortSignal) => Promise<void>;
  /** Events from (inclusive) to (exclusive), Unix ms. @param after - `next` of the page before. */
  events: (from: number, to: number, after: string | undefined, signal: AbortSignal) => Promise<CardEventPage>;
  close: () => void;
}>;

// An event as Stripe reports it.

/** An event of Stripe. */
export type StripeEvent = Readonly<{
  id: string;
  type: string;
  /** Unix ms. */
  createdAt: number;
  /** The object at the time of the event. */
  object: JsonObject;
}>;

// Countries where cards are accepted: all except those that the provider's rules or sanctions exclude.
// Source: docs/reference/payment.md#limits-of-payments.

/** Listed first, because most buyers are there. */
const first = ["United States", "United Kingdom"];

const others = `
Afghanistan, Albania, Algeria, Andorra, Angola, Antigua and Barbuda, Argentina, Armenia, Aruba, Australia, Austria,
Azerbaijan, Bahamas, Bahrain, Bangladesh, Barbados, Belgium, Belize, Benin, Bermuda, Bhutan, Bolivia,
Bosnia and Herzegovina, Botswana, Brazil, Brunei, Bulgaria, Burkina Faso, Burundi, Cambodia, Cameroon, Canada,
Cape Verde, Cayman Islands, Central African Republic, Chad, Chile, China, Colombia, Comoros, Congo, Cook Islands,
Costa Rica, Côte d'Ivoire, Croatia, Curaçao, Cyprus, Czech Republic, Democratic Republic of the Congo, Denmark,
Djibouti, Dominica, Dominican Republic, Ecuador, Egypt, El Salvador, Equatorial Guinea, Eritrea, Estonia, Eswatini,
Ethiopia, Faroe Islands, Fiji, Finland, France, French Guiana, French Polynesia, Gabon, Gambia, Georgia, Germany,
Ghana, Gibraltar, Greece, Greenland, Grenada, Guadeloupe, Guam, Guatemala, Guernsey, Guinea, Guinea-Bissau, Guyana,
Haiti, Honduras, Hong Kong, Hungary, Iceland, India, Indonesia, Iraq, Ireland, Isle of Man, Israel, Italy, Jamaica,
Japan, Jersey, Jordan, Kazakhstan, Kenya, Kiribati, Kosovo, Kuwait, Kyrgyzstan, Laos, Latvia, Lebanon, Lesotho,
Liberia, Libya, Liechtenstein, Lithuania, Luxembourg, Macao, Madagascar, Malawi, Malaysia, Maldives, Mali, Malta,
Marshall Islands, Martinique, Mauritania, Mauritius, Mayotte, Mexico, Micronesia, Moldova, Monaco, Mongolia,
Montenegro, Montserrat, Morocco, Mozambique, Myanmar, Namibia, Nauru, Nepal, Netherlands, New Caledonia, New Zealand,
Nicaragua, Niger, Nigeria, North Macedonia, Norway, Oman, Pakistan, Palau, Palestine, Panama, Papua New Guinea,
Paraguay, Peru, Philippines, Poland, Portugal, Puerto Rico, Qatar, Réunion, Romania, Rwanda, Saint Kitts and Nevis,
Saint Lucia, Saint Vincent and the Grenadines, Samoa, San Marino, São Tomé and Príncipe, Saudi Arabia, Senegal,
Serbia, Seychelles, Sierra Leone, Singapore, Slovakia, Slovenia, Solomon Islands, Somalia, South Africa, South Korea,
South Sudan, Spain, Sri Lanka, Sudan, Suriname, Sweden, Switzerland, Taiwan, Tajikistan, Tanzania, Thailand,
Timor-Leste, Togo, Tonga, Trinidad and Tobago, Tunisia, Turkey, Turkmenistan, Tuvalu, Uganda, Ukraine,
United Arab Emirates, Uruguay, Uzbekistan, Vanuatu, Vatican City, Venezuela, Vietnam, Yemen, Zambia, Zimbabwe
`;

/** English names, in alphabetical order after the first two. */
export const supportedCountries: readonly string[] = [...first, ...others.trim().split(/,\s+/)];
