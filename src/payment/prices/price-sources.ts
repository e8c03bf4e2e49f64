/**
 * Prices from outside: the price feed and the network price, refreshed in the background.
 *
 * No client's request asks a source directly: a caller waits for the attempt under way at most, or has the rest between
 * two attempts cut short where the last one is some time ago.
 * @module
 */

import { isUtf8 } from "node:buffer";
import type { Nodes } from "../../chain/nodes.ts";
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import { openHttp } from "../../lib/http-client.ts";
import { memberOf, numberText, readWrittenJson, type WrittenJson } from "../../lib/json.ts";
import type { Log } from "../../lib/log.ts";
import { type RetryPlan, retryWaitMs } from "../../lib/retry.ts";
import { ignoreRejection, isTimeout, untilStopped, withDeadline } from "../../lib/stop.ts";
import { compare, type Rational, rational, readDecimal, smaller } from "./rational.ts";

type RefreshOptions = Readonly<{
  /** For the log. */
  name: string;
  /** Makes one attempt and keeps what it found; must heed its signal. What it throws is logged, once an outage. */
  ask: (signal: AbortSignal) => Promise<void>;
  /** Rest after an attempt that succeeded. Milliseconds. */
  everyMs: number;
  /** Longest that one attempt may take. Milliseconds. */
  timeoutMs: number;
  /** Attempts that callers may bring about are at least so far apart. Milliseconds; five seconds by default. */
  wokenEveryMs?: number;
  /** In [0, 1). */
  random: () => number;
  log: Log;
}>;

/** Attempts that go on until they are closed. */
type Refresh = Readonly<{
  /**
   * Waits for the attempt under way; begins one that would be due later, but not more often than `wokenEveryMs`.
   * Returns at once after a failure.
   * @throws The signal's reason.
   */
  settled: (signal: AbortSignal) => Promise<void>;
  /** Ends the attempt under way, and all further ones. */
  close: () => Promise<void>;
}>;

/** Waits after failures: soon at first, then as often as a source in trouble can be asked. */
const afterFailure: RetryPlan = { attempts: 1, firstMs: 1_000, longestMs: 30_000 };

const wokenEveryMsDefault = 5_000;

/** Begins the attempts; the first is under way when this returns. */
export function openRefresh(options: RefreshOptions): Refresh {
  const { name, ask, everyMs, timeoutMs, wokenEveryMs = wokenEveryMsDefault, random, log } = options;
  const life = new AbortController();
  let failed = 0; // attempts in a row
  let startedAt = 0;
  let underWay: Promise<void> | undefined;
  let timer: Timer | undefined;

  const tryOnce = async (): Promise<void> => {
    startedAt = performance.now();
    try {
      // Work that does not heed its signal is left behind: it must not keep all later attempts from being made.
      await withDeadline(life.signal, timeoutMs, (own) => untilStopped(ask(own), own));
      if (failed > 0) log.info("a price can be had again", { source: name, failed });
      failed = 0;
    } catch (error) {
      if (life.signal.aborted) return; // closed
      failed += 1;
      const reports = { source: name, ...(isTimeout(error) ? { timeoutMs } : { error }) };
      if (failed === 1) log.warn("a price cannot be had; the last one is used while it may be", reports);
      else log.debug("a price still cannot be had", reports);
    }
  };

  /** Joins the attempt under way, or makes one; the next one is made when its time has come. */
  const attempt = (): Promise<void> => {
    clearTimeout(timer);
    underWay ??= tryOnce().finally(() => {
      underWay = undefined;
      if (life.signal.aborted) return;
      const restMs = failed === 0 ? everyMs : retryWaitMs(afterFailure, failed, random);
      timer = setTimeout(() => ignoreRejection(attempt()), restMs);
    });
    return underWay;
  };
  ignoreRejection(attempt());

  return {
    settled: async (signal) => {
      const isDue = failed === 0 && performance.now() - startedAt >= wokenEveryMs;
      const pending = underWay ?? (isDue && !life.signal.aborted ? attempt() : undefined);
      if (pending !== undefined) await untilStopped(pending, signal);
    },
    close: async () => {
      life.abort(new DOMException("prices were closed", "AbortError"));
      clearTimeout(timer);
      await underWay;
    },
  };
}

// Token prices in fiat money, from a feed with CoinGecko's `/simple/price`.
//
// Every price is read from the text of its number, checked by itself, and stored with its time: one that is missing or
// absurd leaves the last good one in its place, and that one too is too old some day.
// Source: docs/reference/payment.md#price-feed.

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

type PriceFeedOptions = Readonly<{
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
type Reading = Readonly<{ price: Rational; at: bigint }>;

/** CoinGecko's prices are a minute old and it allows ten calls a minute. Blocks come every two. */
const everyMsDefault = 60_000;

/** Callers wait for an attempt at most so long. */
const timeoutMsDefault = 5_000;

/** A response with 8 coins in 10 currencies has 2 KiB. */
const responseBytesMax = 256 * 1_024;

/** No coin that is paid with costs less than a billionth, or more than a billion, of any currency. */
const coinPriceMin = rational(1n, 1_000_000_000n);
const coinPriceMax = rational(1_000_000_000n);

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
    if (response.kind === "fault") throw unusable(`${response.reason}: ${response.detail}`);
    if (response.status !== 200) throw unusable(`status ${response.status}`);
    const { readings, faults } = readFeed(response.body, pairs, now(), ageMaxMs);
    for (const [key, reading] of readings) held.set(key, reading);
    if (readings.size === 0) throw unusable(faults[0] ?? "it has no price");
    if (faults.join() !== knownFaults && faults.length > 0)
      log.warn("prices of the feed were rejected", { feed: url, faults });
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

/** The prices of a response by {@link keyOf}, and the faults of the other pairs. */
type FeedReadings = Readonly<{ readings: ReadonlyMap<string, Reading>; faults: readonly string[] }>;

/**
 * Parses a response of `/simple/price`.
 *
 * @param now - Unix milliseconds. @param ageMaxMs - Oldest time that the feed may give for a coin.
 */
export function readFeed(body: Uint8Array, pairs: readonly FeedPair[], now: bigint, ageMaxMs: bigint): FeedReadings {
  const response = isUtf8(body) ? readWrittenJson(new TextDecoder().decode(body)) : undefined;
  if (response === undefined) return { readings: new Map(), faults: ["the response is not JSON"] };
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
  if (price === undefined || compare(price, coinPriceMin) < 0 || compare(price, coinPriceMax) > 0)
    return `it is absurd: ${text.slice(0, 40)}`;
  if (updatedAt === undefined) return { price, at: now }; // a feed that does not say when its prices were current
  const seconds = numberText(updatedAt) ?? "";
  if (!/^\d{1,12}$/.test(seconds)) return "its time is not a number of seconds";
  const at = BigInt(seconds) * 1_000n;
  return { price, at: smaller(at, now) };
}

/** Asks for every coin in every currency: a feed has no parameter for pairs. */
function questionOf(pairs: readonly FeedPair[]): string {
  const list = (values: readonly string[]) => [...new Set(values)].map(encodeURIComponent).join(",");
  const coins = list(pairs.map(({ coin }) => coin));
  const currencies = list(pairs.map(({ currency }) => currency));
  return `ids=${coins}&vs_currencies=${currencies}&include_last_updated_at=true&precision=full`;
}

function unusable(reason: string): Failure {
  return new Failure("fiat_oracle_unavailable", { reason });
}

// The network's storage price from our own nodes: the price of one large size, of which every item's price
// is a part.
// Source: docs/reference/payment.md#prices-of-storage.

/** The size that is asked for, 10 GiB in bytes: for smaller ones rounding up would weigh more. */
const requestedBytes = 10 * 2 ** 30;

/** The price of storage. */
export type NetworkPrice = Readonly<{
  /**
   * Winston for 10 GiB; at once where it is held and young enough.
   * @throws Failure `pricing_oracle_unavailable`.
   */
  price: (signal: AbortSignal) => Promise<bigint>;
  /** Milliseconds since it was asked for; `undefined` before. */
  ageMs: () => bigint | undefined;
  close: () => Promise<void>;
}>;

type NetworkPriceOptions = Readonly<{
  nodes: Pick<Nodes, "ask">;
  /** Oldest price that is used. Milliseconds. */
  ageMaxMs: number;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  log: Log;
  /** For tests. Milliseconds. */
  everyMs?: number;
  timeoutMs?: number;
}>;

/** All that there will ever be of the token, winston: nothing costs more. */
const storagePriceMax = 66_000_000n * 1_000_000_000_000n;

/** Opens it; the first question is under way when this returns. */
export function openNetworkPrice(options: NetworkPriceOptions): NetworkPrice {
  const { nodes, ageMaxMs, clock, random, log } = options;
  const timeoutMs = options.timeoutMs ?? timeoutMsDefault;
  let held: { price: bigint; at: number } | undefined;

  const ask = async (signal: AbortSignal): Promise<void> => {
    const response = await nodes.ask((node, own) => node.price(requestedBytes, undefined, own), signal, checkPrice);
    if (response.kind !== "ok") throw new Failure("pricing_oracle_unavailable", { response });
    held = { price: response.value, at: clock() };
  };
  const refresh = openRefresh({
    name: "network price",
    ask,
    everyMs: options.everyMs ?? everyMsDefault,
    timeoutMs,
    random,
    log,
  });
  const current = () => (held !== undefined && held.at >= clock() - ageMaxMs ? held.price : undefined);
  return {
    price: async (signal) => {
      const price = current();
      if (price !== undefined) return price;
      await refresh.settled(signal);
      const found = current();
      if (found === undefined) throw new Failure("pricing_oracle_unavailable");
      return found;
    },
    ageMs: () => (held === undefined ? undefined : BigInt(clock() - held.at)),
    close: refresh.close,
  };
}

function checkPrice(price: bigint): string | undefined {
  return price > 0n && price <= storagePriceMax ? undefined : `storage cannot cost ${price} winston`;
}
