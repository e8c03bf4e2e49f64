/**
 * Prices of payments in tokens.
 * Source: docs/reference/payment.md#prices-of-payments-in-tokens.
 * @module
 */
import { winc } from "../../arweave/winston.ts";
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Token } from "../addresses.ts";
import type { PriceFeed } from "./feed.ts";
import { unknownCurrencyText } from "./fiat-prices.ts";
import type { Prices } from "./prices.ts";
import { divide, one } from "./rational.ts";
import { decimalsOf, type FeeRule, feedIdOf, inForce, type PriceRules } from "./rules.ts";
import { type TokenRate, tokenAmountFor, tokenPrice, tokenRate, wincOfUsdCent } from "./steps.ts";

/** What they are made of. */
export type TokenPricesParts = Readonly<{
  rules: PriceRules;
  feed: Pick<PriceFeed, "prices">;
  clock: Clock;
}>;

/** Creates them. */
export function createTokenPrices(parts: TokenPricesParts): Pick<Prices, "token" | "tokenFor"> {
  const { rules, feed, clock } = parts;
  const feesOf = (token: Token) => inForce(rules.fees, BigInt(clock())).filter(({ payments }) => payments.has(token));

  const rateOf = async (token: Token, fees: readonly FeeRule[], signal: AbortSignal): Promise<TokenRate> => {
    const exponent = decimalsOf(rules, token);
    if (exponent === undefined) throw new Failure("payment_rejected", { reason: unknownCurrencyText(token) });
    const needsFeed = token !== "native" || fees.some(({ operator }) => operator === "add");
    // What is paid in AR is worth as much, whatever the feed says or does not say.
    if (!needsFeed) return tokenRate(one, exponent, () => one);
    const coins = [feedIdOf(rules, token), feedIdOf(rules, "native")];
    const [own, ar] = await feed.prices(
      coins.map((coin) => ({ coin, currency: "usd" })),
      signal,
    );
    assert(own !== undefined && ar !== undefined, "the feed answers every pair");
    return tokenRate(token === "native" ? one : divide(own, ar), exponent, () => wincOfUsdCent(ar));
  };

  return {
    token: async (token, amount, signal) => {
      const fees = feesOf(token);
      const price = tokenPrice(amount, await rateOf(token, fees, signal), fees);
      if (price === undefined) throw new Failure("price_amount_invalid", { reason: tooSmallText });
      return price;
    },
    tokenFor: async (token, wanted, signal) => {
      const fees = feesOf(token);
      return tokenAmountFor(winc(wanted), await rateOf(token, fees, signal), fees);
    },
  };
}

const tooSmallText = "Crypto payment amount is too small! Token value must convert to at least one winc";
