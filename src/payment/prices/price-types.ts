/**
 * What things cost: bytes, credits for fiat money, credits for tokens. The types that all of them share.
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
  /** What an upload pays. */
  winc: Winc;
  /** What the chain asks for that many bytes. */
  networkWinc: Winc;
  adjustments: readonly Adjustment[];
}>;

/** What a payment buys; a decimal amount that is too large for a ledger is for the ledger to reject. */
export type PaymentPrice = Readonly<{
  /** What the account is credited with. */
  winc: Winc;
  /** What changed the amount that is charged: promo codes. */
  adjustments: readonly Adjustment[];
  /** What is stored of the payment. */
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
  /** The account that is credited; absent, or text that is no address, no promo code applies. */
  address?: UserAddress | undefined;
}>;

/** What one payment in a currency may be, in its smallest unit, both inclusive. */
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

// What may be uploaded without paying: items up to a size, as many as one likes.
// Source: docs/reference/upload.md#posting-an-item; the published SDK's `getFreeStatus`.

/** What an address may still upload free of charge. */
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
