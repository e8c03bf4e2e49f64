/**
 * What tokens cost in fiat money, as a feed says it that speaks CoinGecko's `/simple/price`.
 *
 * Every price is read from the text of its number, checked by itself, and kept with its time: one that is missing or
 * absurd leaves the last good one in its place, and that one too is too old some day.
 * Source: docs/reference/payment.md#price-feed.
 * @module
 */

import { isUtf8 } from "node:buffer";
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import { openHttp } from "../../lib/http-client.ts";
import { memberOf, numberText, readWrittenJson, type WrittenJson } from "../../lib/json.ts";
import type { Log } from "../../lib/log.ts";
import { compare, type Rational, rational, readDecimal, smaller } from "./rational.ts";
import { openRefresh } from "./refresh.ts";

/** One price: a coin by the feed's name, in a currency. */
export type FeedPair = Readonly<{ coin: string; currency: string }>;

/** Prices of one whole coin, in whole units of the currency. */
export type PriceFeed = Readonly<{
  /**
   * The prices of some pairs; at once where all of them are held and young enough.
   * @throws Failure `fiat_oracle_unavailable`.
   */
  prices: (pairs: readonly FeedPair[], signal: AbortSignal) => Promise<readonly Rational[]>;
  /** Milliseconds since the oldest price was current; `undefined` while one is missing. */
  ageMs: () => bigint | undefined;
  close: () => Promise<void>;
}>;

/** How a feed is asked. */
export type PriceFeedOptions = Readonly<{
  /** Its address, to which `/simple/price` is added. */
  url: string;
  /** Every price that will be wanted. */
  pairs: readonly FeedPair[];
  /** Oldest price that is used. Milliseconds. */
  ageMaxMs: number;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  log: Log;
  /** How often it is asked, and how long it may take; for tests. Milliseconds. */
  everyMs?: number;
  timeoutMs?: number;
}>;

/** A price and when it was current, Unix milliseconds. */
export type Reading = Readonly<{ price: Rational; at: bigint }>;

/** CoinGecko's own prices are a minute old, and it answers ten calls a minute without a key. */
const everyMsDefault = 60_000;

/** Callers wait for an attempt at most so long. */
const timeoutMsDefault = 5_000;

/** An answer of 8 coins in 10 currencies has 2 KiB. */
const responseBytesMax = 256 * 1_024;

/** No coin that is paid with costs less than a billionth, or more than a billion, of any currency. */
const priceMin = rational(1n, 1_000_000_000n);
const priceMax = rational(1_000_000_000n);

/** Opens a feed; its first question is under way when this returns. */
export function openPriceFeed(options: PriceFeedOptions): PriceFeed {
  const { url, pairs, clock, random, log } = options;
  const now = () => BigInt(clock());
  const ageMaxMs = BigInt(options.ageMaxMs);
  const timeoutMs = options.timeoutMs ?? timeoutMsDefault;
  const http = openHttp({ firstByteMs: timeoutMs, stallMs: timeoutMs, totalMs: timeoutMs });
  const held = new Map<string, Reading>();
  const address = `${url}/simple/price?${questionOf(pairs)}`;
  let knownFaults = "";

  const ask = async (signal: AbortSignal): Promise<void> => {
    const response = await http.whole({ method: "GET", url: address }, responseBytesMax, signal);
    if (response.kind === "trouble") throw unusable(`${response.reason}: ${response.detail}`);
    if (response.status !== 200) throw unusable(`status ${response.status}`);
    const { readings, faults } = readFeed(response.body, pairs, now(), ageMaxMs);
    for (const [key, reading] of readings) held.set(key, reading);
    if (readings.size === 0) throw unusable(faults[0] ?? "it has no price");
    if (faults.join() !== knownFaults && faults.length > 0)
      log.warn("prices of the feed were refused", { feed: url, faults });
    knownFaults = faults.join();
  };

  const refresh = openRefresh({
    name: "price feed",
    ask,
    everyMs: options.everyMs ?? everyMsDefault,
    timeoutMs,
    random,
    log,
  });
  const current = (wanted: readonly FeedPair[]): readonly Rational[] | undefined => {
    const oldest = now() - ageMaxMs;
    const prices: Rational[] = [];
    for (const pair of wanted) {
      const reading = held.get(keyOf(pair));
      if (reading === undefined || reading.at < oldest) return undefined;
      prices.push(reading.price);
    }
    return prices;
  };
  return {
    prices: async (wanted, signal) => {
      const prices = current(wanted);
      if (prices !== undefined) return prices;
      await refresh.settled(signal);
      const found = current(wanted);
      if (found === undefined) throw new Failure("fiat_oracle_unavailable", { wanted });
      return found;
    },
    ageMs: () => {
      let oldest = now();
      for (const pair of pairs) {
        const at = held.get(keyOf(pair))?.at;
        if (at === undefined) return undefined;
        oldest = smaller(oldest, at);
      }
      return now() - oldest;
    },
    close: async () => {
      http.close();
      await refresh.close();
    },
  };
}

/** What an answer says of the pairs, by {@link keyOf}, and what is wrong with the others. */
export type FeedReadings = Readonly<{ readings: ReadonlyMap<string, Reading>; faults: readonly string[] }>;

/**
 * Reads an answer of `/simple/price`.
 *
 * @param now - Unix milliseconds. @param ageMaxMs - Oldest time that the feed may give for a coin.
 */
export function readFeed(body: Uint8Array, pairs: readonly FeedPair[], now: bigint, ageMaxMs: bigint): FeedReadings {
  const response = isUtf8(body) ? readWrittenJson(new TextDecoder().decode(body)) : undefined;
  if (response === undefined) return { readings: new Map(), faults: ["the answer is not JSON"] };
  const readings = new Map<string, Reading>();
  const faults: string[] = [];
  for (const pair of pairs) {
    const coin = memberOf(response, pair.coin);
    const reading = readPrice(memberOf(coin, pair.currency), memberOf(coin, "last_updated_at"), now);
    if (typeof reading === "string") faults.push(`${keyOf(pair)}: ${reading}`);
    else if (reading.at < now - ageMaxMs) faults.push(`${keyOf(pair)}: it is too old`);
    else readings.set(keyOf(pair), reading);
  }
  return { readings, faults };
}

/** The name of a pair. */
export function keyOf({ coin, currency }: FeedPair): string {
  return `${coin} ${currency}`;
}

/** A price, or what is wrong with it. */
function readPrice(value: WrittenJson | undefined, updatedAt: WrittenJson | undefined, now: bigint): Reading | string {
  const text = numberText(value);
  if (text === undefined) return "it is missing, or no number";
  const price = readDecimal(text);
  if (price === undefined || compare(price, priceMin) < 0 || compare(price, priceMax) > 0)
    return `it is absurd: ${text.slice(0, 40)}`;
  if (updatedAt === undefined) return { price, at: now }; // a feed that does not say when its prices were current
  const seconds = numberText(updatedAt) ?? "";
  if (!/^\d{1,12}$/.test(seconds)) return "its time is no number of seconds";
  const at = BigInt(seconds) * 1_000n;
  return { price, at: smaller(at, now) };
}

/** Asks for every coin in every currency: a feed knows no pairs, and answers more than is wanted. */
function questionOf(pairs: readonly FeedPair[]): string {
  const list = (values: readonly string[]) => [...new Set(values)].map(encodeURIComponent).join(",");
  const coins = list(pairs.map(({ coin }) => coin));
  const currencies = list(pairs.map(({ currency }) => currency));
  return `ids=${coins}&vs_currencies=${currencies}&include_last_updated_at=true&precision=full`;
}

function unusable(reason: string): Failure {
  return new Failure("fiat_oracle_unavailable", { reason });
}
