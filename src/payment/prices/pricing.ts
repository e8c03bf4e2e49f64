/**
 * Prices: the rules, what the network and the feed say now, and promo codes, put together.
 * Source: docs/reference/payment.md#prices-of-storage.
 * @module
 */

import type { FeedPair } from "./feed.ts";
import { createFiatPrices, type FiatPricesParts } from "./fiat-prices.ts";
import type { NetworkPrice } from "./network-price.ts";
import type { Prices } from "./prices.ts";
import { writeDecimal } from "./rational.ts";
import { feedIdOf, inForce, type PriceRules } from "./rules.ts";
import { bytesPrice, storagePrice } from "./steps.ts";
import { createTokenPrices } from "./token-prices.ts";

/** What prices are made of. */
export type PricingParts = FiatPricesParts & Readonly<{ network: Pick<NetworkPrice, "price"> }>;

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
