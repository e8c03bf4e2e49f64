/**
 * Prices for tests: rules, and what the fixture says, as a test likes them.
 * @module
 */
import { Failure } from "../../../src/failures.ts";
import {
  defaultRules,
  type FeeRule,
  magnitude,
  type PriceRules,
  type PromoRule,
  type Rule,
  type UploadRule,
} from "../../../src/payment/prices/price-rules.ts";
import { type FeedPair, keyOf } from "../../../src/payment/prices/price-sources.ts";
import type { Prices } from "../../../src/payment/prices/price-types.ts";
import { createPrices } from "../../../src/payment/prices/prices.ts";
import { type Rational, readDecimal } from "../../../src/payment/prices/rational.ts";

/** When prices are requested, Unix milliseconds. */
export const priceTime = 1_800_000_000_000;

/** What the fixture says in a test: winston for 10 GiB, and the feed's prices. */
export type Fixture = Readonly<{
  network?: bigint;
  feed?: Readonly<Record<string, string>>;
  rules?: Partial<PriceRules>;
}>;

/** Prices in such a fixture; every client finds the promo codes. */
export function pricesIn({ network = 1n, feed = {}, rules = {} }: Fixture): Prices {
  const all: PriceRules = { ...defaultRules, ...rules };
  const priceOf = (pair: FeedPair): Rational => {
    const price = readDecimal(feed[keyOf(pair)] ?? "");
    if (price === undefined) throw new Failure("fiat_oracle_unavailable", { pair });
    return price;
  };
  return createPrices({
    rules: all,
    network: { price: async () => network },
    feed: { prices: async (pairs) => pairs.map(priceOf) },
    promos: { find: async () => all.promos },
    clock: () => priceTime,
  });
}

/** What a feed says where an AR costs so many dollars. */
export const arAt = (usd: string) => ({ "arweave usd": usd });

/** The failure with which something ends. */
export async function failureOf(promise: Promise<unknown>): Promise<Failure> {
  const outcome = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (outcome instanceof Failure) return outcome;
  throw new Error("it did not fail as expected", { cause: outcome });
}

export function ruleOf(text: string, changed: Partial<Rule> = {}): Rule {
  return {
    name: "rule",
    description: "A rule.",
    operator: "multiply",
    startsAt: 0n,
    endsAt: undefined,
    priority: 500n,
    ...changed,
    magnitude: magnitude(text),
  };
}

export function uploadRule(text: string, changed: Partial<Omit<UploadRule, "magnitude">> = {}): UploadRule {
  return { sizeMax: 0n, ...changed, ...ruleOf(text, changed) };
}

export function feeRule(text: string, changed: Partial<Rule> = {}): FeeRule {
  return { ...ruleOf(text, changed), payments: new Set(["fiat", "ethereum", "solana", "kyve", "usdc"]) };
}

export function promoRule(code: string, text: string, changed: Partial<PromoRule> = {}): PromoRule {
  return {
    group: "all",
    usesMax: undefined,
    usdCentsMin: 0n,
    discountUsdCentsMax: undefined,
    ...changed,
    ...ruleOf(text, changed),
    code,
  };
}
