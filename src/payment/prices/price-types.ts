/**
 * Types of prices: of bytes, and of credits for fiat money and for tokens.
 * @module
 */
import type { Winc } from "../../arweave/winston.ts";
import type { Token, UserAddress } from "../addresses.ts";

/** How a rule changes an amount. */
export type Operator = "add" | "multiply";

/** One step on the way to a price. */
export type Adjustment = Readonly<{
  name: string;
  description: string;
  operator: Operator;
  /** The decimal text of the rules. */
  operatorMagnitude: string;
  /**
   * What the step added; below 0 where it took away. Winc for uploads and token payments, the currency's smallest
   * unit for fiat payments.
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
  /** Fiat: what is charged, smallest unit. Tokens: the payment's worth in winc, before fees. */
  actualPaymentAmount: bigint;
  /** Fiat: what was asked for, before promo codes. Tokens: the same as `actualPaymentAmount`. */
  quotedPaymentAmount: bigint;
}>;

/** Whom a promo code is for. */
export type Buyer = Readonly<{
  /** Codes in the order in which they apply; spelled as the caller did. */
  promoCodes?: readonly string[];
  /** The credited account. Without a valid address no promo code applies. */
  address?: UserAddress | undefined;
}>;

/** Limits of one payment in a currency, in its smallest unit, both inclusive. */
export type CurrencyLimits = Readonly<{
  minimum: bigint;
  maximum: bigint;
  suggested: readonly bigint[];
  /** The least that the card provider takes. */
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
 * Returns prices. No call waits while a price that is young enough is held; else it waits for its source
 * for some seconds at most.
 */
export type Prices = Readonly<{
  /**
   * The price of storing so many bytes.
   * @param size - 0 or more.
   * @throws Failure `pricing_oracle_unavailable`.
   */
  bytes: (size: bigint, signal: AbortSignal) => Promise<BytesPrice>;
  /**
   * What a payment by card buys; limits are not looked at.
   * @param currency - lower case. @param amount - as written in the path: the smallest unit, 0 to 2^53 − 1.
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
   * What a payment in a token buys.
   * @param amount - smallest unit of the token.
   * @throws Failure `price_amount_invalid` with the reason when it is worth less than a winc;
   *   `fiat_oracle_unavailable`.
   */
  token: (token: Token, amount: bigint, signal: AbortSignal) => Promise<PaymentPrice>;
  /**
   * The least amount of a token that buys so much; `token()` of it gives at least `winc`.
   * @param winc - 1 or more.
   * @throws Failure `fiat_oracle_unavailable`.
   */
  tokenFor: (token: Token, winc: bigint, signal: AbortSignal) => Promise<bigint>;
  /** @throws Failure `pricing_oracle_unavailable`, `fiat_oracle_unavailable`. */
  rates: (signal: AbortSignal) => Promise<Rates>;
  /**
   * What one whole native token costs, as decimal text; no fee in it.
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
