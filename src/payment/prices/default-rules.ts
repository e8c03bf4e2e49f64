/**
 * The rules of prices that hold unless an operator replaces them.
 * Source: docs/price-rules.md.
 * @module
 */
import { assert } from "../../lib/assert.ts";
import { readAddress, type Token, type UserAddress } from "../addresses.ts";
import type { CurrencyLimits } from "./prices.ts";
import { readDecimal } from "./rational.ts";
import type { Erc20, FeeRule, Magnitude, PriceRules, TokenRule } from "./rules.ts";

/** Where a rule stands among others that says nothing of it. */
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

/** Solana's payments are asked for when they are final, KYVE's when they are in a block: nothing is counted there. */
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

/** Payments in ARIO bear none. */
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

/** Names a decimal. */
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
