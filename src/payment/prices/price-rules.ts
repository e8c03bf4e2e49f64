/**
 * The rules of prices as data: currencies, tokens, fees, adjustments, promo codes, confirmations.
 * Source: docs/price-rules.md.
 * @module
 */
import { assert } from "../../lib/assert.ts";
import { isKnownToken, tokens as knownTokens, readAddress, type Token, type UserAddress } from "../addresses.ts";
import type { CurrencyLimits, Operator } from "./price-types.ts";
import { type Rational, readDecimal } from "./rational.ts";

/** A decimal and the text that it was written as. */
export type Magnitude = Readonly<{ text: string; value: Rational }>;

/**
 * The common part of rules. A rule applies from `startsAt` (inclusive) to `endsAt` (exclusive), Unix
 * milliseconds.
 */
export type Rule = Readonly<{
  name: string;
  description: string;
  operator: Operator;
  /** A factor, or an addend: winc for an upload's price, US cents for a payment. */
  magnitude: Magnitude;
  startsAt: bigint;
  endsAt: bigint | undefined;
  /** Lower ones first; equal ones in the order of the data. */
  priority: bigint;
}>;

/** A fee on payments. */
export type FeeRule = Rule & Readonly<{ payments: ReadonlySet<"fiat" | Token> }>;

/** A rule for the price of uploads. */
export type UploadRule = Rule &
  Readonly<{
    /** The rule applies to items up to this size; 0 is unlimited. Bytes. */
    sizeMax: bigint;
  }>;

/** A code that lowers the charged amount, once per user. */
export type PromoRule = Rule &
  Readonly<{
    /** Printable ASCII, compared without regard to case. */
    code: string;
    /** `new`: only users without an earlier payment. */
    group: "all" | "new";
    /** Total number of payments with the code; undefined is unlimited. */
    usesMax: bigint | undefined;
    /** The least payment, US cents. */
    usdCentsMin: bigint;
    /** The largest discount, US cents; undefined is unlimited. */
    discountUsdCentsMax: bigint | undefined;
  }>;

/** The rule of a token. */
export type TokenRule = Readonly<{
  /** Its name at the price feed. */
  feedId: string;
  /** Blocks on top of a payment's own before it is credited. */
  confirmations: bigint;
  /** Only for an ERC-20 token that the rules list. */
  erc20?: Erc20;
}>;

/** The contract of an ERC-20 token. */
type Erc20 = Readonly<{
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
  /** Discounts on payments in fiat money without a code. */
  discounts: readonly Rule[];
  uploads: readonly UploadRule[];
  promos: readonly PromoRule[];
}>;

/** The rules that are in force. @param now - Unix milliseconds. */
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

/** The canonical spelling of a promo code; `undefined` for invalid text. Only ASCII has one spelling. */
export function canonicalCode(code: string): string | undefined {
  return /^[\x21-\x2b\x2d-\x7e]{1,64}$/.test(code) ? code.toUpperCase() : undefined;
}

// The default rules, which an operator may replace.
// Source: docs/price-rules.md.

/** The default priority of a rule. */
export const priorityDefault = 500n;

const currencies: readonly (readonly [string, CurrencyLimits])[] = [
  currency("aud", 7_500n, 1_500_000n, [2_500n, 7_500n, 15_000n], 50n),
  currency("brl", 2_500n, 1_000_000n, [12_500n, 25_000n, 50_000n], 50n),
  currency("cad", 500n, 1_000_000n, [2_500n, 5_000n, 10_000n], 50n),
  currency("eur", 500n, 1_000_000n, [2_500n, 5_000n, 10_000n], 50n),
  currency("gbp", 500n, 1_000_000n, [2_000n, 4_000n, 8_000n], 30n),
  currency("hkd", 5_000n, 10_000_000n, [20_000n, 40_000n, 80_000n], 400n),
  currency("inr", 50_000n, 90_000_000n, [200_000n, 400_000n, 800_000n], 1_000n),
  currency("jpy", 750n, 1_500_000n, [3_500n, 6_500n, 15_000n], 120n, true),
  currency("sgd", 750n, 1_500_000n, [2_500n, 7_500n, 15_000n], 50n),
  currency("usd", 500n, 1_000_000n, [2_500n, 5_000n, 10_000n], 50n),
];

/** Dollar coins are one coin to the feed, whatever chain they are on. */
const dollarCoin = "usd-coin";

/** The bridged token of the AR.IO network. */
const arioOnBase: Erc20 = {
  contract: contract("0x138746adfA52909E5920def027f5a8dc1C7EfFb6"),
  decimals: 6n,
};

/** Solana's payments are read when they are final, KYVE's when they are in a block: no confirmations are counted. */
const tokens: readonly (readonly [Token, TokenRule])[] = [
  ["native", { feedId: "arweave", confirmations: 18n }],
  ["ario", { feedId: "ar-io-network", confirmations: 0n }],
  ["ethereum", { feedId: "ethereum", confirmations: 5n }],
  ["matic", { feedId: "matic-network", confirmations: 12n }],
  ["base-eth", { feedId: "l2-standard-bridged-weth-base", confirmations: 5n }],
  ["solana", { feedId: "solana", confirmations: 0n }],
  ["kyve", { feedId: "kyve-network", confirmations: 0n }],
  ["usdc", { feedId: dollarCoin, confirmations: 5n }],
  ["polygon-usdc", { feedId: dollarCoin, confirmations: 12n }],
  ["base-usdc", { feedId: dollarCoin, confirmations: 5n }],
  ["solana-usdc", { feedId: dollarCoin, confirmations: 0n }],
  ["base-ario", { feedId: "ar-io-network", confirmations: 5n, erc20: arioOnBase }],
];

/** Payments in ARIO have no fee. */
const fees: readonly FeeRule[] = [
  fee(
    "Turbo Infrastructure Fee",
    "Inclusive usage fee on all payments to cover infrastructure costs and payment provider fees.",
    "0.766",
    [
      ...(["fiat", "native", "ethereum", "matic", "base-eth", "solana"] as const),
      ...(["usdc", "polygon-usdc", "base-usdc", "solana-usdc"] as const),
    ],
  ),
  fee(
    "Kyve Turbo Infrastructure Fee",
    "Inclusive usage fee on payments in KYVE to cover infrastructure costs.",
    "0.5",
    ["kyve"],
  ),
];

/** The rules. */
export const defaultRules: PriceRules = {
  currencies: new Map(currencies),
  tokens: new Map(tokens),
  fees,
  discounts: [],
  uploads: [],
  promos: [],
};

/** The magnitude of a valid decimal text. */
export function magnitude(text: string): Magnitude {
  const value = readDecimal(text);
  assert(value !== undefined, "a magnitude is a decimal");
  return { text, value };
}

function contract(text: string): UserAddress {
  const read = readAddress(text, "ethereum");
  assert(read !== undefined, "a contract is an address");
  return read.address;
}

function fee(name: string, description: string, factor: string, payments: readonly ("fiat" | Token)[]): FeeRule {
  return {
    name,
    description,
    operator: "multiply",
    magnitude: magnitude(factor),
    startsAt: 0n,
    endsAt: undefined,
    priority: priorityDefault,
    payments: new Set(payments),
  };
}

function currency(
  code: string,
  minimum: bigint,
  maximum: bigint,
  suggested: readonly bigint[],
  stripeMinimum: bigint,
  isZeroDecimal = false,
): readonly [string, CurrencyLimits] {
  return [code, { minimum, maximum, suggested, stripeMinimum, isZeroDecimal }];
}
