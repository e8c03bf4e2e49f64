/**
 * Prices put together: an operator's rules, the network's price from our own nodes, a feed for fiat money, promo codes.
 * @module
 */
import { readFileSync, statSync } from "node:fs";
import type { Nodes } from "../chain/nodes.ts";
import type { Config } from "../config/settings.ts";
import { Failure } from "../failures.ts";
import type { HealthCheck } from "../gateway/health.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import type { Log } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import { defaultRules, type PriceRules } from "../payment/prices/price-rules.ts";
import { readRules } from "../payment/prices/price-rules-reader.ts";
import { openNetworkPrice, openPriceFeed } from "../payment/prices/price-sources.ts";
import type { Prices } from "../payment/prices/price-types.ts";
import { createPrices, feedPairsOf } from "../payment/prices/token-prices.ts";
import { createPromos, type Promos } from "../payment/top-ups/promo.ts";
import { hasPaid } from "../payment/top-ups/quotes.ts";
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import { badSettings } from "./complaints.ts";
import { systemRandom } from "./random.ts";

/** What they are opened with. */
export type PricesParts = Readonly<{
  config: Config;
  nodes: Pick<Nodes, "ask">;
  ledger: LedgerDatabase;
  /** The feed where PRICE_FEED_URL names none; unset is the public one. */
  feedUrl?: string | undefined;
  metrics: Metrics;
  log: Log;
  closers: Closers;
}>;

/** Prices, open. */
export type OpenPrices = Readonly<{
  rules: PriceRules;
  prices: Prices;
  promos: Promos;
  isNetworkPriceKnown: () => boolean;
  /** Says which prices cannot be answered, and which are old. */
  check: HealthCheck;
}>;

const publicFeedUrl = "https://api.coingecko.com/api/v3";

/** Room for ten thousand promo codes. */
const rulesBytesMax = 8 * 2 ** 20;

/** A price that is so old is worth a word to the operator: ten attempts have failed. Milliseconds. */
const notedAgeMs = 10n * 60_000n;

/**
 * Opens them; what has to be closed is closed by `closers`.
 *
 * @throws Misuse when the rules cannot be read.
 */
export function openPrices(parts: PricesParts): OpenPrices {
  const { config, nodes, ledger, metrics, log, closers } = parts;
  const rules = readRulesFile(config.PAYMENT_RULES_FILE);
  const source = { ageMaxMs: config.PRICE_AGE_MAX, clock: systemClock, random: systemRandom, log };
  const network = openNetworkPrice({ ...source, nodes });
  closers.add("network price", network.close);
  const url = config.PRICE_FEED_URL ?? parts.feedUrl ?? publicFeedUrl;
  const feed = openPriceFeed({ ...source, url, pairs: feedPairsOf(rules) });
  closers.add("price feed", feed.close);

  const ages = { "The network's price": network.ageMs, "The price feed": feed.ageMs };
  metrics.gaugesOf({
    name: "payment_price_age_seconds",
    help: "Seconds since the oldest price of a source was current; absent before there is one.",
    label: "source",
    values: ["network", "feed"],
    read: () => ({ ...ageSeconds("network", network.ageMs()), ...ageSeconds("feed", feed.ageMs()) }),
  });
  const promos = createPromos({ database: ledger, rules: rules.promos, hasPaid, clock: systemClock });
  return {
    rules,
    promos,
    prices: createPrices({ rules, network, feed, promos, clock: systemClock }),
    isNetworkPriceKnown: () => {
      const age = network.ageMs();
      return age !== undefined && age <= BigInt(config.PRICE_AGE_MAX);
    },
    check: () => Object.entries(ages).flatMap(([name, ageMs]) => ageNotes(name, ageMs())),
  };
}

/** Reads the price rules. @throws Misuse when the file is not there, or says what it may not. */
export function readRulesFile(path: string | undefined): PriceRules {
  if (path === undefined) return defaultRules;
  try {
    const { size } = statSync(path);
    if (size > rulesBytesMax) throw new Error(`it has ${size} bytes, at most ${rulesBytesMax} are read`);
    return readRules(readFileSync(path, "utf8"), defaultRules);
  } catch (error) {
    // The fault becomes one line of the complaint.
    const reason = error instanceof Failure ? error.context["reason"] : error;
    throw badSettings([`PAYMENT_RULES_FILE: ${reason instanceof Error ? reason.message : reason}`]);
  }
}

function ageSeconds(source: string, ageMs: bigint | undefined): Readonly<Record<string, number>> {
  return ageMs === undefined ? {} : { [source]: Number(ageMs) / 1_000 };
}

function ageNotes(name: string, ageMs: bigint | undefined): readonly string[] {
  if (ageMs === undefined) return [`${name} is not known yet.`];
  return ageMs < notedAgeMs ? [] : [`${name} has not been current for ${ageMs / 60_000n} minutes.`];
}
