/**
 * Prices of bytes, and of credits for fiat money and for tokens: their types, free uploads, and units of currencies.
 * @module
 */
import type { Winc } from "../../arweave/winston.ts";
import { decimalText } from "../../lib/quantity-text.ts";
import type { Token, UserAddress } from "../addresses.ts";

/** The operation of a rule on an amount. */
export type Operator = "add" | "multiply";

/** One step of a price's calculation. */
export type Adjustment = Readonly<{
  name: string;
  description: string;
  operator: Operator;
  /** The decimal text of the rules. */
  operatorMagnitude: string;
  /**
   * The change by the step; below 0 for a reduction. Winc for uploads and token payments, the currency's smallest unit
   * for fiat payments.
   */
  adjustmentAmount: bigint;
  /** Only of a promo code: the code as written in the rules. */
  promoCode?: string;
}>;

/** The price of storing. */
export type BytesPrice = Readonly<{
  /** The price of an upload. */
  winc: Winc;
  /** The network's price for these bytes. */
  networkWinc: Winc;
  adjustments: readonly Adjustment[];
}>;

/** The result of a payment. The ledger rejects amounts that are too large for it. */
export type PaymentPrice = Readonly<{
  /** Credits of the account. */
  winc: Winc;
  /** Changes of the charged amount: promo codes. */
  adjustments: readonly Adjustment[];
  /** Fees on the payment. */
  fees: readonly Adjustment[];
  /** Fiat: the charged amount, smallest unit. Tokens: the payment's value in winc, before fees. */
  actualPaymentAmount: bigint;
  /** Fiat: the requested amount, before promo codes. Tokens: the same as `actualPaymentAmount`. */
  quotedPaymentAmount: bigint;
}>;

/** The buyer of a quoted payment. */
export type Buyer = Readonly<{
  /** Codes in the order in which they apply, in the request's spelling. */
  promoCodes?: readonly string[];
  /** The credited account. Without a valid address no promo code applies. */
  address?: UserAddress | undefined;
}>;

/** Limits of one payment in a currency, in its smallest unit, both inclusive. */
export type CurrencyLimits = Readonly<{
  minimum: bigint;
  maximum: bigint;
  suggested: readonly bigint[];
  /** The card provider's minimum. */
  stripeMinimum: bigint;
  /** The smallest unit is the whole one. */
  isZeroDecimal: boolean;
}>;

/** The price of 1 GiB. */
export type Rates = Readonly<{
  winc: Winc;
  /** By currency, whole units with 12 places at most, as decimal text; fees are in it. */
  fiat: ReadonlyMap<string, string>;
  adjustments: readonly Adjustment[];
}>;

/**
 * Returns prices. A call does not wait while a sufficiently new price is held; else it waits some seconds at most for
 * the source.
 */
export type Prices = Readonly<{
  /**
   * The price of storing bytes.
   * @param size - 0 or more.
   * @throws Failure `pricing_oracle_unavailable`.
   */
  bytes: (size: bigint, signal: AbortSignal) => Promise<BytesPrice>;
  /**
   * The credits for a payment by card; limits are not checked.
   * @param currency - lower case. @param amount - from the path: the smallest unit, 0 to 2^53 − 1.
   * @throws Failure `payment_rejected` for an unknown currency and promo codes; `price_amount_invalid`;
   *   `fiat_oracle_unavailable`.
   */
  fiat: (currency: string, amount: string, buyer: Buyer, signal: AbortSignal) => Promise<PaymentPrice>;
  /**
   * The same for a top-up, whose amount must be within the limits.
   * @throws Failure as `fiat`, with `top_up_amount_invalid` and its reason in the place of `price_amount_invalid`.
   */
  topUp: (currency: string, amount: string, buyer: Buyer, signal: AbortSignal) => Promise<PaymentPrice>;
  /**
   * The credits for a payment in a token.
   * @param amount - smallest unit of the token.
   * @throws Failure `price_amount_invalid` with the reason when its value is below one winc;
   *   `fiat_oracle_unavailable`.
   */
  token: (token: Token, amount: bigint, signal: AbortSignal) => Promise<PaymentPrice>;
  /**
   * The least amount of a token for some credits; `token()` of it gives at least `winc`.
   * @param winc - 1 or more.
   * @throws Failure `fiat_oracle_unavailable`.
   */
  tokenFor: (token: Token, winc: bigint, signal: AbortSignal) => Promise<bigint>;
  /** @throws Failure `pricing_oracle_unavailable`, `fiat_oracle_unavailable`. */
  rates: (signal: AbortSignal) => Promise<Rates>;
  /**
   * The price of one whole native token, as decimal text, without fees.
   * @throws Failure `invalid_currency`, `fiat_oracle_unavailable`.
   */
  rate: (currency: string, signal: AbortSignal) => Promise<string>;
  /** Limits by currency, after today's rates. @throws Failure `fiat_oracle_unavailable`. */
  limits: (signal: AbortSignal) => Promise<ReadonlyMap<string, CurrencyLimits>>;
}>;

// Free uploads: items up to a size, without a limit on their number.
// Source: docs/reference/upload.md#posting-an-item; the published SDK's `getFreeStatus`.

/** The free allowance of an address. */
export type FreeAllowance = Readonly<{
  /** The largest item that costs nothing, in bytes; 0 where nothing is free. */
  itemBytesMax: number;
  /** Bytes left in all; `null` is without limit. */
  bytesRemaining: number | null;
}>;

/**
 * The allowance of every address.
 *
 * @param itemBytesMax - The setting, bytes, 0 or more.
 */
export function freeAllowance(itemBytesMax: number): FreeAllowance {
  return { itemBytesMax, bytesRemaining: itemBytesMax === 0 ? 0 : null };
}

// The smallest unit of each currency: the whole one, its hundredth, or its thousandth. The card provider counts in this
// unit, so a wrong rule would sell credits at a hundred times the price, or at a hundredth.
// Source: ISO 4217; Stripe's "Zero-decimal currencies", "Three-decimal currencies".

/** Currencies without decimals. The Ugandan shilling is omitted: Stripe counts it both ways. */
const wholes = new Set([
  "bif",
  "clp",
  "djf",
  "gnf",
  "jpy",
  "kmf",
  "krw",
  "mga",
  "pyg",
  "rwf",
  "vnd",
  "vuv",
  "xaf",
  "xof",
  "xpf",
]);

/** Currencies that are divided by a thousand; they have no prices. */
const thousands = new Set(["bhd", "iqd", "jod", "kwd", "lyd", "omr", "tnd"]);

/** Writes an amount for people: "10.00 USD". @param amount - In the currency's smallest unit. */
export function writeMoney(amount: bigint, code: string): string {
  return `${decimalText(amount, wholes.has(code) ? 0 : 2)} ${code.toUpperCase()}`;
}

/**
 * Validates the unit of a currency.
 *
 * @param code - ISO 4217, lower case. @param isZeroDecimal - Whether the rule says that it has no decimals.
 * @returns The expected value; `undefined` for a valid unit, or for a currency that is counted both ways.
 */
export function unitFault(code: string, isZeroDecimal: boolean): string | undefined {
  if (thousands.has(code)) return "a currency without thousandths";
  if (code === "ugx" || wholes.has(code) === isZeroDecimal) return undefined;
  return isZeroDecimal
    ? "no zeroDecimalCurrency, because the smallest unit is a hundredth"
    : "zeroDecimalCurrency true, because the smallest unit is the whole one";
}
