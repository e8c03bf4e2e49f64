/**
 * The rules of prices as data: currencies, tokens, fees, adjustments, promo codes, confirmations.
 * Source: reference/payment.md §3.
 * @module
 */
import type { Token } from "./addresses.ts";
import type { CurrencyLimits, Operator } from "./prices.ts";
import type { Rational } from "./rational.ts";

/** A decimal and the text that it was written as. */
export type Magnitude = Readonly<{ text: string; value: Rational }>;

/** What every rule has. It holds from `startsAt` (inclusive) to `endsAt` (exclusive), Unix milliseconds. */
export type Rule = Readonly<{
  name: string;
  description: string;
  operator: Operator;
  magnitude: Magnitude;
  startsAt: bigint;
  endsAt: bigint | undefined;
  /** Lower ones first; equal ones in the order of the data. */
  priority: bigint;
}>;

/** What is kept of payments. */
export type FeeRule = Rule & Readonly<{ payments: ReadonlySet<"fiat" | Token> }>;

/** What changes the price of an upload. */
export type UploadRule = Rule &
  Readonly<{
    /** Larger items keep their price; 0 is no such limit. Bytes. */
    sizeMax: bigint;
  }>;

/** A code that lowers what is charged, once for a user. */
export type PromoRule = Rule &
  Readonly<{
    /** Compared without regard to case. */
    code: string;
    /** `new`: only users who never paid. */
    group: "all" | "new";
    /** Payments that may use it in all; undefined is no limit. */
    usesMax: bigint | undefined;
    /** The least payment, US cents. */
    minimumUsdCents: bigint;
    /** The most that it takes off, US cents; undefined is no limit. */
    discountUsdCentsMax: bigint | undefined;
  }>;

/** A token as prices know it. */
export type TokenRule = Readonly<{
  /** Its name at the price feed; undefined is the native token's own. */
  feedId: string;
  /** Blocks on top before a payment is credited. */
  confirmations: number;
}>;

/** All rules. */
export type PriceRules = Readonly<{
  currencies: ReadonlyMap<string, CurrencyLimits>;
  tokens: ReadonlyMap<Token, TokenRule>;
  fees: readonly FeeRule[];
  uploads: readonly UploadRule[];
  promos: readonly PromoRule[];
}>;
