/**
 * A top-up as it is asked for: path and query read, in the order in which faults are told.
 * Source: docs/reference/payment.md#top-ups; docs/reference/threats.md (X3).
 * @module
 */
import { Failure } from "../../failures.ts";
import { readAddressOfWord } from "../../payment/addresses.ts";
import type { CheckoutReturn } from "../../payment/providers/card-provider.ts";
import { rejected } from "../../payment/rejection.ts";
import { giftWord, type TopUpMethod, topUpMethods } from "../../payment/top-ups/quotes.ts";
import type { Recipient, TopUpRequest } from "../../payment/top-ups/top-up.ts";
import { topUpParameters as parameters, uiModes, uiModeUsual } from "./parameters.ts";
import { readPromoCodes } from "./price-routes.ts";

/** The path of a request for a top-up. */
export type TopUpPath = Readonly<{ method: string; address: string; currency: string; amount: string }>;

/** Where checkouts may return to. */
export type ReturnRules = Readonly<{
  /** Address of this service without a slash at its end; "" where it is not known. */
  publicUrl: string;
  /** The only origins that may be named; empty: any. */
  origins: readonly string[];
}>;

/** Pages of this service that a checkout returns to when the request names none: paid, and given up. */
export const donePath = "/done";
export const cancelledPath = "/cancelled";

/** Query parameter by which these pages know what the checkout was for. */
export const quoteParameter = "topUpQuoteId";

/** What of a caller's text is said back. Characters. */
const echoedMax = 200;

/**
 * Reads a request.
 *
 * @throws Failure `payment_rejected` with the reason, `gifting_by_email_off`, `invalid_destination`.
 */
export function readTopUp(path: TopUpPath, query: URLSearchParams, rules: ReturnRules): TopUpRequest {
  const { method } = path;
  if (!parameters.method.is(method)) throw rejected(`Payment method must include one of: ${topUpMethods.join(",")}!`);
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

/** The word for what the destination is; checked, for its messages come first. */
function readDestinationWord(query: URLSearchParams): string {
  const word = single(query, parameters.addressType.name) ?? single(query, parameters.token.name) ?? "native";
  if (!parameters.addressType.is(word)) throw rejected(`Invalid destination address type: ${echo(word)}`);
  return word;
}

function readGiftMessage(query: URLSearchParams): string | undefined {
  const message = single(query, parameters.giftMessage.name);
  if (message === undefined) return undefined;
  if (!parameters.giftMessage.is(message)) throw rejected("Invalid gift message!");
  return message;
}

function readRecipient(text: string, word: string, message: string | undefined): Recipient {
  if (word === "email") throw new Failure("gifting_by_email_off", {});
  if (word === giftWord && text === giftWord) return { kind: "gift", message };
  const address = word === giftWord ? undefined : readAddressOfWord(text, word)?.address;
  if (address === undefined) throw new Failure("invalid_destination", { word, address: echo(text) });
  return { kind: "account", address, type: word };
}

/** What is said of pages is checked also where the method has none. */
function readSession(method: TopUpMethod, query: URLSearchParams, rules: ReturnRules): TopUpRequest["session"] {
  const uiMode = single(query, parameters.uiMode.name) ?? uiModeUsual;
  if (!parameters.uiMode.is(uiMode)) throw rejected(`Invalid ui mode! Allowed modes: "${uiModes.join(",")}"`);
  const successUrl = readUrl(query, parameters.successUrl.name, rules);
  const cancelUrl = readUrl(query, parameters.cancelUrl.name, rules);
  const returnUrl = readUrl(query, parameters.returnUrl.name, rules);
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

/** An address that a checkout may send its payer to. @throws Failure `payment_rejected`. */
function readUrl(query: URLSearchParams, name: string, rules: ReturnRules): string | undefined {
  const text = single(query, name);
  if (text === undefined) return undefined;
  if (!mayReturnTo(text, rules)) throw rejected(`Invalid url provided: ${echo(text)}!`);
  return text;
}

/**
 * Whether a checkout may return to an address.
 *
 * Absolute, https, http on this machine alone, without user information.
 */
export function mayReturnTo(text: string, { publicUrl, origins }: ReturnRules): boolean {
  if (!parameters.successUrl.is(text) || !URL.canParse(text)) return false;
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

/** A parameter that may stand once. @throws Failure `payment_rejected`. */
function single(query: URLSearchParams, name: string): string | undefined {
  const values = query.getAll(name);
  if (values.length > 1)
    throw rejected(`Expected a singular query parameter but got an array ${echo(values.join(","))}`);
  return values[0];
}

function echo(text: string): string {
  return text.slice(0, echoedMax);
}
