/**
 * Requests of the page of an account, to the payment service of its own origin.
 * @module
 */
import { fetchRoute, objectOf } from "../route-client.ts";
import { ratedBytes } from "./amounts.ts";

const service = "payment/v1";

export const historyPath = `${service}/svc/account/history`;

/** An approval as the service describes it. */
export type Approval = Readonly<{
  approvalDataItemId: string;
  approvedAddress: string;
  payingAddress: string;
  approvedWincAmount: string;
  usedWincAmount: string;
  expirationDate?: string;
}>;

export type Balance = Readonly<{
  winc: bigint;
  /** With the unused part of approvals that were received. */
  effectiveWinc: bigint;
  given: readonly Approval[];
  received: readonly Approval[];
}>;

const noBalance: Balance = { winc: 0n, effectiveWinc: 0n, given: [], received: [] };

type BalanceRecord = Readonly<{
  winc: string;
  effectiveBalance: string;
  givenApprovals: readonly Approval[];
  receivedApprovals: readonly Approval[];
}>;

/** The credits of an address; nothing for an address that never had any. */
export async function readBalance(address: string, signal: AbortSignal): Promise<Balance> {
  const response = await fetchRoute(`${service}/account/balance?address=${encodeURIComponent(address)}`, signal);
  if (response.status === 404) {
    // A proxy without its payment service responds 404 too.
    const fault = await faultOf(response);
    if (fault.message !== "User Not Found") throw fault;
    return noBalance;
  }
  const record = await bodyOf<BalanceRecord>(response);
  return {
    winc: BigInt(record.winc),
    effectiveWinc: BigInt(record.effectiveBalance),
    given: record.givenApprovals,
    received: record.receivedApprovals,
  };
}

/** Winc for `ratedBytes`. */
export async function readRate(signal: AbortSignal): Promise<bigint> {
  const { winc } = await readJson<{ winc: string }>(`price/bytes/${ratedBytes}`, signal);
  return BigInt(winc);
}

export type CurrencyLimits = Readonly<{
  minimumPaymentAmount: number;
  maximumPaymentAmount: number;
  suggestedPaymentAmounts: readonly number[];
  zeroDecimalCurrency: boolean;
}>;

export type Currencies = Readonly<{
  supportedCurrencies: readonly string[];
  limits: Readonly<Record<string, CurrencyLimits>>;
}>;

export async function readCurrencies(signal: AbortSignal): Promise<Currencies> {
  return await readJson<Currencies>("currencies", signal);
}

/** A purchase; `amount` in the currency's smallest unit. */
export type Purchase = Readonly<{ address: string; currency: string; amount: bigint; promoCode: string }>;

type Step = Readonly<{ name: string; adjustmentAmount: string }>;

export type PaymentPrice = Readonly<{
  winc: string;
  /** The charged amount, and the amount without promo codes. */
  actualPaymentAmount: number | string;
  quotedPaymentAmount: number | string;
  fees: readonly Step[];
}>;

export async function readPaymentPrice(purchase: Purchase, signal: AbortSignal): Promise<PaymentPrice> {
  const { address, currency, amount, promoCode } = purchase;
  const query = promoCode === "" ? "" : `?${new URLSearchParams({ destinationAddress: address, promoCode })}`;
  return await readJson<PaymentPrice>(`price/${currency}/${amount}${query}`, signal);
}

/** Opens a checkout session. @returns The address of its page. */
export async function openCheckout(purchase: Purchase, signal: AbortSignal): Promise<string> {
  const { address, currency, amount, promoCode } = purchase;
  const query = promoCode === "" ? "" : `?${new URLSearchParams({ promoCode })}`;
  const path = `top-up/checkout-session/${address}/${currency}/${amount}${query}`;
  const { paymentSession } = await readJson<{ paymentSession: { url: string } }>(path, signal);
  if (paymentSession.url === "") throw new Error("The card provider has no page for this payment.");
  return paymentSession.url;
}

export type HistoryEntry = Readonly<{
  id: string;
  kind: string;
  date: string;
  winc: string;
  changeId: string | null;
}>;

export type HistoryPage = Readonly<{ entries: readonly HistoryEntry[]; cursor: string | null }>;

/** Rows of a page of the history. */
const rowsPerPage = 25;

/** A page of the history of the account whose token is given. @param token - Value of `Authorization`. */
export async function readHistory(token: string, cursor: string | null, signal: AbortSignal): Promise<HistoryPage> {
  const query = new URLSearchParams({ limit: String(rowsPerPage), ...(cursor === null ? {} : { cursor }) });
  return await readOwn<HistoryPage>(`${historyPath}?${query}`, token, signal);
}

/** Addresses of the service, by names of tokens; empty for a token that it does not accept. */
export async function readAcceptedTokens(signal: AbortSignal): Promise<Readonly<Record<string, string>>> {
  const { addresses } = await readJson<{ addresses: Readonly<Record<string, string>> }>("info", signal);
  return addresses;
}

/** The credits for an amount of a token, winc. @param amount - Smallest unit. */
export async function readTokenPrice(word: string, amount: bigint, signal: AbortSignal): Promise<bigint> {
  const { winc } = await readJson<{ winc: string }>(`price/${word}/${amount}`, signal);
  return BigInt(winc);
}

export type TokenReport = Readonly<{ state: "credited" | "pending"; winc: bigint }>;

type ReportedPayment = Readonly<{ winstonCreditAmount: string }>;

type ReportRecord = Readonly<{
  creditedTransaction?: ReportedPayment;
  pendingTransaction?: ReportedPayment;
  failedTransaction?: ReportedPayment & Readonly<{ failureReason?: string }>;
}>;

/** Reports a transaction that pays in a token. Rejects with the reason of a payment that failed. */
export async function reportTransaction(word: string, id: string, signal: AbortSignal): Promise<TokenReport> {
  const response = await fetchRoute(`${service}/account/balance/${word}`, signal, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ tx_id: id }),
  });
  if (!response.ok && response.status !== 400) throw await faultOf(response);
  const text = await response.text();
  const record: ReportRecord = objectOf(text);
  const { creditedTransaction: credited, pendingTransaction: pending, failedTransaction: failed } = record;
  const found = credited ?? pending;
  if (found === undefined) throw new Error(failed?.failureReason ?? reasonOf(text));
  return { state: credited === undefined ? "pending" : "credited", winc: BigInt(found.winstonCreditAmount) };
}

export type PendingPayment = Readonly<{ date: string; wincPending: string; transactionId: string }>;

/** Payments in tokens that wait for confirmations, newest first. @param token - Value of `Authorization`. */
export async function readPending(token: string, signal: AbortSignal): Promise<readonly PendingPayment[]> {
  const path = `${service}/account/payments?limit=1`;
  return (await readOwn<{ pending?: readonly PendingPayment[] }>(path, token, signal)).pending ?? [];
}

/** Redeems a gift to a native address. @returns Its winc; undefined if the service does not say. */
export async function redeemGift(code: string, address: string, signal: AbortSignal): Promise<bigint | undefined> {
  const response = await fetchRoute(`${service}/redeem`, signal, {
    method: "POST",
    body: new URLSearchParams({ id: code, destinationAddress: address, token: "native" }),
  });
  const { message } = await bodyOf<{ message: string }>(response);
  const digits = /(\d+) winc/.exec(message)?.[1];
  return digits === undefined ? undefined : BigInt(digits);
}

/** Reads a record of the signed-in account. */
async function readOwn<Value>(path: string, token: string, signal: AbortSignal): Promise<Value> {
  const response = await fetchRoute(path, signal, { headers: { Authorization: token } });
  if (response.status === 403) throw new Error("The session has ended. Sign out, and sign in again.");
  return await bodyOf<Value>(response);
}

/** Reads a record of the payment service. Rejects with its reason. */
async function readJson<Value>(path: string, signal: AbortSignal): Promise<Value> {
  return await bodyOf<Value>(await fetchRoute(`${service}/${path}`, signal));
}

async function bodyOf<Value>(response: Response): Promise<Value> {
  if (!response.ok) throw await faultOf(response);
  return await response.json();
}

/** Characters of a reason that are shown. */
const reasonMax = 300;

/** Why a request failed. */
export async function faultOf(response: Response): Promise<Error> {
  const reason = reasonOf(await response.text());
  return new Error(reason === "" ? `The payment service responded with status ${response.status}.` : reason);
}

/** The service's reason, which is a JSON text. */
function reasonOf(text: string): string {
  const reason = text.startsWith('"') && text.endsWith('"') ? String(JSON.parse(text)) : text;
  return reason.slice(0, reasonMax);
}
