/**
 * Requests of the page of an account, to the payment service of its own origin.
 * @module
 */
import { fetchRoute } from "../route-client.ts";
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
  if (response.status === 404) return noBalance;
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
  const response = await fetchRoute(`${historyPath}?${query}`, signal, { headers: { Authorization: token } });
  return await bodyOf<HistoryPage>(response);
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

/** Why a request failed: the service's reason, which is a JSON text. */
export async function faultOf(response: Response): Promise<Error> {
  const text = await response.text();
  const reason = text.startsWith('"') && text.endsWith('"') ? String(JSON.parse(text)) : text;
  return new Error(
    reason === "" ? `The payment service responded with status ${response.status}.` : reason.slice(0, reasonMax),
  );
}
