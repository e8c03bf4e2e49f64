/**
 * Prices: the rules, what the network and the feed say now, and promo codes, put together.
 * Source: docs/reference/payment.md#prices-of-storage.
 * @module
 */

import { winc } from "../../arweave/winston.ts";
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Token } from "../addresses.ts";
import { createFiatPrices, type FiatPricesParts, unknownCurrencyText } from "./fiat-prices.ts";
import { decimalsOf, type FeeRule, feedIdOf, inForce, type PriceRules } from "./price-rules.ts";
import type { FeedPair, NetworkPrice, PriceFeed } from "./price-sources.ts";
import {
  bytesPrice,
  storagePrice,
  type TokenRate,
  tokenAmountFor,
  tokenPrice,
  tokenRate,
  wincOfUsdCent,
} from "./price-steps.ts";
import type { Prices } from "./price-types.ts";
import { divide, one, writeDecimal } from "./rational.ts";

type PricingParts = FiatPricesParts & Readonly<{ network: Pick<NetworkPrice, "price"> }>;

/** The size whose price the rates are. Bytes. */
const gibibyte = 2n ** 30n;

/** Places of the rates: a winc of a token has as many. */
const wincPlaces = 12n;

/** Every price that prices will want of a feed: AR in every currency, the other tokens in dollars. */
export function feedPairsOf(rules: PriceRules): FeedPair[] {
  const native = feedIdOf(rules, "native");
  const coins = new Set([...rules.tokens.values()].map(({ feedId }) => feedId));
  coins.delete(native);
  return [
    ...[...rules.currencies.keys()].map((currency) => ({ coin: native, currency })),
    ...[...coins].map((coin) => ({ coin, currency: "usd" })),
  ];
}

/** Creates prices; there is nothing in them that has to be closed. */
export function createPrices(parts: PricingParts): Prices {
  const { rules, network, clock } = parts;
  const { money, ...fiatPrices } = createFiatPrices(parts);
  const bytes = async (size: bigint, signal: AbortSignal) => {
    const price = await network.price(signal);
    return bytesPrice(price, size, inForce(rules.uploads, BigInt(clock())));
  };
  return {
    bytes,
    ...fiatPrices,
    ...createTokenPrices(parts),
    rates: async (signal) => {
      const [{ winc, adjustments }, currencies] = await Promise.all([bytes(gibibyte, signal), money(signal)]);
      const fees = inForce(rules.fees, BigInt(clock())).filter(({ payments }) => payments.has("fiat"));
      const rows = [...currencies].map(([currency, each]) => {
        const cost = storagePrice(winc, each, fees);
        return [currency, writeDecimal(cost, wincPlaces)] as const;
      });
      return { winc, fiat: new Map(rows), adjustments };
    },
  };
}

// Prices of payments in tokens.
// Source: docs/reference/payment.md#prices-of-payments-in-tokens.

type TokenPricesParts = Readonly<{
  rules: PriceRules;
  feed: Pick<PriceFeed, "prices">;
  clock: Clock;
}>;

function createTokenPrices(parts: TokenPricesParts): Pick<Prices, "token" | "tokenFor"> {
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
    assert(own !== undefined && ar !== undefined, "the feed has every pair");
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
