/**
 * Top-ups over HTTP: a quote, and a session at the card provider. The path and the query are parsed in the order in
 * which the specification reports their errors.
 * Source: docs/reference/payment.md#top-ups; docs/reference/threats.md (X3).
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure, rejected } from "../../failures.ts";
import { enumSchema, refined, stringSchema } from "../../lib/value-schema.ts";
import { readAddressOfWord, tokenWords } from "../../payment/addresses.ts";
import type { CheckoutReturn } from "../../payment/cards/card-provider.ts";
import { giftWord, type QuoteTerms, type TopUpMethod, topUpMethods } from "../../payment/top-ups/quotes.ts";
import type { Recipient, TopUp, TopUpRequest, TopUps } from "../../payment/top-ups/top-up.ts";
import { pathParameter, queryParameter } from "../parameter.ts";
import type { PublicUrl } from "../public-url.ts";
import {
  failureResponses,
  inPath,
  inQuery,
  json,
  record,
  ref,
  type Schema,
  textSchema,
} from "../reference/openapi-types.ts";
import { contextOf } from "../request-context.ts";
import { jsonResponse, noStore } from "../responses.ts";
import { described, type RouteDescription } from "../route-schema.ts";
import type { FailedAttemptGuard, SessionGuard } from "./client-guards.ts";
import { redeemPath } from "./gift-routes.ts";
import { adjustments, dateTime, fromLedger, winc } from "./payment-common.ts";
import { adjustmentRecord, isoDate, wireInteger } from "./payment-records.ts";
import { paymentAmount, readPromoCodes } from "./price-routes.ts";

const addressKinds = "Type of the address; `native` when absent.";

/** Pages that a checkout may lead to: printable ASCII without backslashes, which URL parsers treat differently. */
const page = stringSchema({
  pattern: "^[hH][tT][tT][pP][sS]?://[\\x21-\\x5b\\x5d-\\x7e]+$",
  maxLength: 2_048,
  description: "Https, or http on this machine; of an origin that the operator allows.",
});
const destinations = enumSchema([...tokenWords, giftWord, "email"]);

/** Where a checkout is shown. */
const uiModes = ["hosted", "embedded"] as const;
const uiModeDefault = "hosted";

/** PostgreSQL text cannot hold a NUL. */
const giftMessage = refined(
  stringSchema({ minLength: 1, maxLength: 250 }),
  (text): text is string => !text.includes("\0"),
  "1 to 250 characters, none of them NUL.",
);

/** Of top-ups by card. */
const topUpParameters = {
  method: pathParameter("method", enumSchema(topUpMethods), "checkout-session", "Kind of the payment session."),
  amount: paymentAmount,
  token: queryParameter("token", destinations, addressKinds),
  addressType: queryParameter("destinationAddressType", destinations, "The same; takes precedence."),
  giftMessage: queryParameter("giftMessage", giftMessage, "Stored with a gift."),
  uiMode: queryParameter("uiMode", enumSchema(uiModes), "Where the checkout is shown.", uiModeDefault),
  successUrl: queryParameter("successUrl", page, "Where a hosted checkout redirects after payment."),
  cancelUrl: queryParameter("cancelUrl", page, "Where a hosted checkout redirects when it is abandoned."),
  returnUrl: queryParameter("returnUrl", page, "Where an embedded checkout redirects."),
} as const;

/** The path of a request for a top-up. */
type TopUpPath = Readonly<{ method: string; address: string; currency: string; amount: string }>;

/** Limits on the addresses that checkouts return to. */
type ReturnRules = Readonly<{
  /** Address of this service without a trailing slash; "" when it is not known. */
  publicUrl: string;
  /** The only allowed origins; empty allows any. */
  origins: readonly string[];
}>;

/** Default return pages of a checkout: paid, and abandoned. */
export const donePath = "/done";
export const cancelledPath = "/cancelled";

/** Query parameter with which these pages find the quote. */
export const quoteParameter = "topUpQuoteId";

/** Longest part of a client's text that a message repeats. Characters. */
const echoedMax = 200;

/** @throws Failure `payment_rejected` with the reason, `gifting_by_email_off`, `invalid_destination`. */
function readTopUp(path: TopUpPath, query: URLSearchParams, rules: ReturnRules): TopUpRequest {
  const { method } = path;
  if (!topUpParameters.method.is(method))
    throw rejected(`Payment method must include one of: ${topUpMethods.join(",")}!`);
  const word = readDestinationWord(query);
  const message = readGiftMessage(query);
  const session = readSession(method, query, rules);
  return {
    recipient: readRecipient(path.address, word, message),
    currency: path.currency.toLowerCase(),
    amount: path.amount,
    promoCodes: readPromoCodes(query),
    session,
  };
}

/** The type of the destination, whose faults are reported first. */
function readDestinationWord(query: URLSearchParams): string {
  const word = single(query, topUpParameters.addressType.name) ?? single(query, topUpParameters.token.name) ?? "native";
  if (!topUpParameters.addressType.is(word)) throw rejected(`Invalid destination address type: ${echo(word)}`);
  return word;
}

function readGiftMessage(query: URLSearchParams): string | undefined {
  const message = single(query, topUpParameters.giftMessage.name);
  if (message === undefined) return undefined;
  if (!topUpParameters.giftMessage.is(message)) throw rejected("Invalid gift message!");
  return message;
}

function readRecipient(text: string, word: string, message: string | undefined): Recipient {
  if (word === "email") throw new Failure("gifting_by_email_off", {});
  if (word === giftWord && text === giftWord) return { kind: "gift", message };
  const address = word === giftWord ? undefined : readAddressOfWord(text, word)?.address;
  if (address === undefined) throw new Failure("invalid_destination", { word, address: echo(text) });
  return { kind: "account", address, type: word };
}

/** Return addresses are validated even when the payment method has no checkout page. */
function readSession(method: TopUpMethod, query: URLSearchParams, rules: ReturnRules): TopUpRequest["session"] {
  const uiMode = single(query, topUpParameters.uiMode.name) ?? uiModeDefault;
  if (!topUpParameters.uiMode.is(uiMode)) throw rejected(`Invalid ui mode! Allowed modes: "${uiModes.join(",")}"`);
  const successUrl = readUrl(query, topUpParameters.successUrl.name, rules);
  const cancelUrl = readUrl(query, topUpParameters.cancelUrl.name, rules);
  const returnUrl = readUrl(query, topUpParameters.returnUrl.name, rules);
  if (method === "payment-intent") return { method };
  if (uiMode === "embedded") return { method, back: () => ({ uiMode, returnUrl }) };
  if (rules.publicUrl === "" && (successUrl === undefined || cancelUrl === undefined))
    throw rejected("Must provide successUrl and cancelUrl");
  const back = (quoteId: string): CheckoutReturn => ({
    uiMode,
    successUrl: successUrl ?? ownPage(rules, donePath, quoteId),
    cancelUrl: cancelUrl ?? ownPage(rules, cancelledPath, quoteId),
  });
  return { method, back };
}

function ownPage({ publicUrl }: ReturnRules, path: string, quoteId: string): string {
  return `${publicUrl}${path}?${quoteParameter}=${quoteId}`;
}

/** @throws Failure `payment_rejected`. */
function readUrl(query: URLSearchParams, name: string, rules: ReturnRules): string | undefined {
  const text = single(query, name);
  if (text === undefined) return undefined;
  if (!mayReturnTo(text, rules)) throw rejected(`Invalid url provided: ${echo(text)}!`);
  return text;
}

/** Valid return addresses are absolute, https (http on this machine only), without user information. */
export function mayReturnTo(text: string, { publicUrl, origins }: ReturnRules): boolean {
  if (!topUpParameters.successUrl.is(text) || !URL.canParse(text)) return false;
  const { protocol, hostname, username, password, origin } = new URL(text);
  const authority = text.split("/", 3)[2] ?? "";
  if (username !== "" || password !== "" || authority.includes("@")) return false;
  if (protocol === "http:" && !isLoopback(hostname)) return false;
  const own = publicUrl === "" ? [] : [originOf(publicUrl)];
  return origins.length === 0 || [...origins.map(originOf), ...own].includes(origin);
}

function originOf(url: string): string {
  return new URL(url).origin;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** The value of a parameter that must not be repeated. @throws Failure `payment_rejected`. */
function single(query: URLSearchParams, name: string): string | undefined {
  const values = query.getAll(name);
  if (values.length > 1)
    throw rejected(`Expected a singular query parameter but got an array ${echo(values.join(","))}`);
  return values[0];
}

function echo(text: string): string {
  return text.slice(0, echoedMax);
}

type TopUpRoutesOptions = Readonly<{
  /** Undefined: cards are not accepted. */
  topUps: TopUps | undefined;
  promoGuard: FailedAttemptGuard;
  sessionGuard: SessionGuard;
  publicUrl: PublicUrl;
  /** The only origins to which a checkout may return; empty allows any. */
  returnOrigins: readonly string[];
}>;

/** Idle timeout: the provider can be slow, and requests to it are retried. */
const idleSeconds = 120;

/** The records of top-ups, as components of the API reference. */
export const topUpSchemas: Readonly<Record<string, Schema>> = {
  TopUpQuote: record({
    topUpQuoteId: textSchema,
    destinationAddress: textSchema,
    destinationAddressType: textSchema,
    paymentAmount: { type: "integer", description: "The charged amount, in the currency's smallest unit." },
    quotedPaymentAmount: { type: "integer", description: "The price without promo codes." },
    currencyType: textSchema,
    winstonCreditAmount: winc,
    quoteExpirationDate: dateTime,
    paymentProvider: textSchema,
    "giftMessage?": textSchema,
  }),
  PaymentSession: record(
    { id: textSchema, client_secret: textSchema, url: textSchema },
    "The session at Stripe; an empty text where it has none.",
  ),
  TopUp: record({
    topUpQuote: ref("TopUpQuote"),
    paymentSession: ref("PaymentSession"),
    adjustments,
    fees: adjustments,
    "giftId?": { type: "string", description: "Redeems the gift once it is paid for; returned only here." },
    "giftUrl?": { type: "string", description: "The page on which a person redeems it." },
  }),
};

const ofTopUp: RouteDescription = {
  tag: "Top-ups",
  summary: "A quote, and a session to pay it with",
  description:
    "The quote holds until it expires; a payment made in time is credited whenever Stripe reports it. With " +
    "`destinationAddressType=gift` and the address `gift` the credits wait for the person who gets `giftId`.",
  parameters: [
    topUpParameters.method,
    inPath("address", textSchema, "A".repeat(43), "The account that gets the credits."),
    inPath("currency", textSchema, "usd", "Currency."),
    topUpParameters.amount,
    topUpParameters.token,
    topUpParameters.addressType,
    topUpParameters.giftMessage,
    inQuery("promoCode", textSchema, "Promo codes, separated by commas."),
    topUpParameters.uiMode,
    topUpParameters.successUrl,
    topUpParameters.cancelUrl,
    topUpParameters.returnUrl,
  ],
  responses: {
    200: json("The quote and its session.", ref("TopUp")),
    ...failureResponses(
      "top_up_amount_invalid",
      "payment_rejected",
      "invalid_destination",
      "gifting_by_email_off",
      "too_many_requests",
      "fiat_oracle_unavailable",
      "payment_session_failed",
      "busy",
      "fiat_off",
      "database_unavailable",
    ),
  },
};

export function createTopUpRoutes(options: TopUpRoutesOptions): AnyElysia {
  const { topUps, promoGuard, sessionGuard, publicUrl, returnOrigins } = options;
  return new Elysia({ strictPath: true }).get(
    "/top-up/:method/:address/:currency/:amount",
    async ({ params, request }) => {
      if (topUps === undefined) throw new Failure("fiat_off", {});
      const context = contextOf(request);
      const rules = { publicUrl: publicUrl(request), origins: returnOrigins };
      const order = readTopUp(params, new URLSearchParams(context.target.query), rules);
      if (!context.headOnly) sessionGuard.admit(request);
      context.extendIdleTimeout(idleSeconds);
      const work = () => start(topUps, order, rules.publicUrl, context.headOnly, request.signal);
      const topUp = await (order.promoCodes.length > 0 ? promoGuard.guarded(request, work) : work());
      return jsonResponse(topUp, 200, noStore);
    },
    { detail: described(ofTopUp) },
  );
}

/** A HEAD request opens no session. */
async function start(
  topUps: TopUps,
  order: TopUpRequest,
  publicUrl: string,
  headOnly: boolean,
  signal: AbortSignal,
): Promise<Readonly<Record<string, unknown>>> {
  if (headOnly) {
    await topUps.price(order, signal);
    return {};
  }
  return topUpRecord(await fromLedger("database_unavailable", topUps.start(order, signal)), publicUrl);
}

function topUpRecord(topUp: TopUp, publicUrl: string): Readonly<Record<string, unknown>> {
  const { quote, session, fees, giftSecret } = topUp;
  return {
    topUpQuote: quoteRecord(quote),
    paymentSession: { id: session.id, client_secret: session.clientSecret, url: session.url },
    adjustments: topUp.adjustments.map(adjustmentRecord),
    fees: fees.map(adjustmentRecord),
    ...(giftSecret === undefined ? {} : giftRecord(giftSecret, publicUrl)),
  };
}

/** The secret that redeems a gift, and the page on which a person does so. */
function giftRecord(secret: string, publicUrl: string): Readonly<Record<string, string>> {
  return { giftId: secret, giftUrl: `${publicUrl}${redeemPath}?id=${secret}` };
}

function quoteRecord(quote: QuoteTerms) {
  const { destination } = quote;
  const isGift = destination.kind === "gift";
  return {
    topUpQuoteId: quote.id,
    destinationAddress: isGift ? giftWord : destination.address,
    destinationAddressType: isGift ? giftWord : destination.type,
    paymentAmount: wireInteger(quote.paymentAmount),
    quotedPaymentAmount: wireInteger(quote.quotedPaymentAmount),
    currencyType: quote.currency,
    winstonCreditAmount: quote.winc.toString(),
    quoteExpirationDate: isoDate(quote.expiresAt),
    paymentProvider: "stripe",
    ...(isGift && destination.message !== undefined ? { giftMessage: destination.message } : {}),
  };
}
