/**
 * The rules of prices as data: currencies, tokens, fees, adjustments, promo codes, confirmations.
 * Source: docs/price-rules.md.
 * @module
 */
import { assert } from "../../lib/assert.ts";
import { isKnownToken, tokens as knownTokens, type Token, type UserAddress } from "../addresses.ts";
import type { CurrencyLimits, Operator } from "./prices.ts";
import type { Rational } from "./rational.ts";

/** A decimal and the text that it was written as. */
export type Magnitude = Readonly<{ text: string; value: Rational }>;

/** What every rule has. It is in force from `startsAt` (inclusive) to `endsAt` (exclusive), Unix milliseconds. */
export type Rule = Readonly<{
  name: string;
  description: string;
  operator: Operator;
  /** A factor; or what is added: winc to an upload's price, US cents to a payment. */
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
    /** Printable ASCII, compared without regard to case. */
    code: string;
    /** `new`: only users who never paid. */
    group: "all" | "new";
    /** Payments that may use it in all; undefined is no limit. */
    usesMax: bigint | undefined;
    /** The least payment, US cents. */
    usdCentsMin: bigint;
    /** The most that it takes off, US cents; undefined is no limit. */
    discountUsdCentsMax: bigint | undefined;
  }>;

/** A token as prices know it. */
export type TokenRule = Readonly<{
  /** Its name at the price feed. */
  feedId: string;
  /** Blocks on top of a payment's own before it is credited. */
  confirmations: bigint;
  /** Only of an ERC-20 token that the rules themselves list. */
  erc20?: Erc20;
}>;

/** What the rules say of an ERC-20 token. */
export type Erc20 = Readonly<{
  contract: UserAddress;
  /** Power of ten between the smallest unit and the whole one, as the contract's `decimals()`. */
  decimals: bigint;
}>;

/** All rules; lists are in the order in which they apply. */
export type PriceRules = Readonly<{
  /** By lower-case code, in the order in which they are listed; `usd` is always there. */
  currencies: ReadonlyMap<string, CurrencyLimits>;
  tokens: ReadonlyMap<Token, TokenRule>;
  fees: readonly FeeRule[];
  /** What lowers payments in fiat money without a code. */
  discounts: readonly Rule[];
  uploads: readonly UploadRule[];
  promos: readonly PromoRule[];
}>;

/** Those of some rules that are in force. @param now - Unix milliseconds. */
export function inForce<Kind extends Rule>(rules: readonly Kind[], now: bigint): readonly Kind[] {
  return rules.filter(({ startsAt, endsAt }) => startsAt <= now && (endsAt === undefined || now < endsAt));
}

/** A token's name at the price feed. */
export function feedIdOf({ tokens }: PriceRules, token: Token): string {
  const rule = tokens.get(token);
  assert(rule !== undefined, "every token has a rule");
  return rule.feedId;
}

/** The power of ten between a token's smallest unit and the whole one; `undefined` for a token without a rule. */
export function decimalsOf({ tokens }: Pick<PriceRules, "tokens">, token: Token): bigint | undefined {
  return isKnownToken(token) ? BigInt(knownTokens[token].exponent) : tokens.get(token)?.erc20?.decimals;
}

/** The one spelling of a promo code; `undefined` for text that is none. Other letters than ASCII's have several. */
export function canonicalCode(code: string): string | undefined {
  return /^[\x21-\x2b\x2d-\x7e]{1,64}$/.test(code) ? code.toUpperCase() : undefined;
}
