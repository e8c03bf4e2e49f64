/**
 * Prices from outside: the price feed and the network price, refreshed in the background.
 *
 * A client's request never calls a source directly: it waits at most for the running attempt, or ends the wait between
 * two attempts early when the last attempt is some seconds old.
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
  /** Makes one attempt and stores its result; must heed its signal. Its errors are logged once per outage. */
  ask: (signal: AbortSignal) => Promise<void>;
  /** Wait after a successful attempt. Milliseconds. */
  everyMs: number;
  /** Timeout of one attempt. Milliseconds. */
  timeoutMs: number;
  /** Shortest time between attempts that callers start. Milliseconds; five seconds by default. */
  wokenEveryMs?: number;
  /** In [0, 1). */
  random: () => number;
  log: Log;
}>;

/** Attempts in the background. */
type Refresh = Readonly<{
  /**
   * Waits for the running attempt. Without one, starts the next attempt early, but not more often than `wokenEveryMs`.
   * Returns at once after a failure.
   * @throws The signal's reason.
   */
  settled: (signal: AbortSignal) => Promise<void>;
  /** Aborts the running attempt and ends all further ones. */
  close: () => Promise<void>;
}>;

/** Waits after failures. */
const afterFailure: RetryPlan = { attempts: 1, firstMs: 1_000, longestMs: 30_000 };

const wokenEveryMsDefault = 5_000;

/** Wait before the first attempt, which would delay the first responses of the program. Milliseconds. */
const firstAttemptAfterMs = 50;

/** Begins the attempts. The first starts a moment later, at once for a caller of `settled`. */
export function openRefresh(options: RefreshOptions): Refresh {
  const { name, ask, everyMs, timeoutMs, wokenEveryMs = wokenEveryMsDefault, random, log } = options;
  const life = new AbortController();
  let failed = 0; // attempts in a row
  let startedAt = Number.NEGATIVE_INFINITY;
  let underWay: Promise<void> | undefined;
  let timer: Timer | undefined;

  const tryOnce = async (): Promise<void> => {
    startedAt = performance.now();
    try {
      // Work that ignores its signal is abandoned, so that it does not block later attempts.
      await withDeadline(life.signal, timeoutMs, (own) => untilStopped(ask(own), own));
      if (failed > 0) log.info("price source recovered", { source: name, failed });
      failed = 0;
    } catch (error) {
      if (life.signal.aborted) return; // closed
      failed += 1;
      const reports = { source: name, ...(isTimeout(error) ? { timeoutMs } : { error }) };
      if (failed === 1) log.warn("price source failed; the last price is used until it expires", reports);
      else log.debug("price source still fails", reports);
    }
  };

  /** Joins the running attempt, or starts one, and schedules the next. */
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
  timer = setTimeout(() => ignoreRejection(attempt()), firstAttemptAfterMs);

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
// Every price is parsed from the text of its number, validated, and stored with its time. After a missing or
// implausible price the last valid price stays in place, until it expires.
// Source: docs/reference/payment.md#price-feed.

/** One price: a coin by the feed's name, in a currency. */
export type FeedPair = Readonly<{ coin: string; currency: string }>;

/** Prices of one whole coin, in whole units of the currency. */
export type PriceFeed = Readonly<{
  /**
   * The prices of some pairs; at once while all of them are held and new enough.
   * @throws Failure `fiat_oracle_unavailable`.
   */
  prices: (pairs: readonly FeedPair[], signal: AbortSignal) => Promise<readonly Rational[]>;
  /** Milliseconds since the oldest price was current; `undefined` while one is missing. */
  ageMs: () => bigint | undefined;
  close: () => Promise<void>;
}>;

type SourceOptions = Readonly<{
  /** Oldest price that is used. Milliseconds. */
  ageMaxMs: number;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  log: Log;
  /** Interval and timeout of attempts; for tests. Milliseconds. */
  everyMs?: number;
  timeoutMs?: number;
}>;

type PriceFeedOptions = SourceOptions &
  Readonly<{
    /** Its URL, to which `/simple/price` is appended. */
    url: string;
    /** Every pair that will be requested. */
    pairs: readonly FeedPair[];
  }>;

/** A price and when it was current, Unix milliseconds. */
type Reading = Readonly<{ price: Rational; at: bigint }>;

/** CoinGecko updates its prices every minute and allows ten calls a minute. Blocks come every two minutes. */
const everyMsDefault = 60_000;

/** Longest wait of a caller for an attempt. */
const timeoutMsDefault = 5_000;

/** A response with 8 coins in 10 currencies has 2 KiB. */
const responseBytesMax = 256 * 1_024;

/** Plausible prices of an accepted coin, in any currency. */
const coinPriceMin = rational(1n, 1_000_000_000n);
const coinPriceMax = rational(1_000_000_000n);

function refreshOf(name: string, ask: RefreshOptions["ask"], options: SourceOptions): Refresh {
  const { everyMs = everyMsDefault, timeoutMs = timeoutMsDefault, random, log } = options;
  return openRefresh({ name, ask, everyMs, timeoutMs, random, log });
}

/** Opens a feed; its first request starts at once. */
export function openPriceFeed(options: PriceFeedOptions): PriceFeed {
  const { url, pairs, clock, log } = options;
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
    if (readings.size === 0) throw unusable(faults[0] ?? "no prices in the response");
    if (faults.join() !== knownFaults && faults.length > 0)
      log.warn("invalid prices of the feed", { feed: url, faults });
    knownFaults = faults.join();
  };

  const refresh = refreshOf("price feed", ask, options);
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
  if (response === undefined) return { readings: new Map(), faults: ["invalid JSON"] };
  const readings = new Map<string, Reading>();
  const faults: string[] = [];
  for (const pair of pairs) {
    const coin = memberOf(response, pair.coin);
    const reading = readPrice(memberOf(coin, pair.currency), memberOf(coin, "last_updated_at"), now);
    if (typeof reading === "string") faults.push(`${keyOf(pair)}: ${reading}`);
    else if (reading.at < now - ageMaxMs) faults.push(`${keyOf(pair)}: expired`);
    else readings.set(keyOf(pair), reading);
  }
  return { readings, faults };
}

export function keyOf({ coin, currency }: FeedPair): string {
  return `${coin} ${currency}`;
}

/** A price, or its fault. */
function readPrice(value: WrittenJson | undefined, updatedAt: WrittenJson | undefined, now: bigint): Reading | string {
  const text = numberText(value);
  if (text === undefined) return "missing or not a number";
  const price = readDecimal(text);
  if (price === undefined || compare(price, coinPriceMin) < 0 || compare(price, coinPriceMax) > 0)
    return `implausible: ${text.slice(0, 40)}`;
  if (updatedAt === undefined) return { price, at: now }; // a feed without times
  const seconds = numberText(updatedAt) ?? "";
  if (!/^\d{1,12}$/.test(seconds)) return "the time is not a number of seconds";
  const at = BigInt(seconds) * 1_000n;
  return { price, at: smaller(at, now) };
}

/** The query for every coin in every currency: a feed has no parameter for pairs. */
function questionOf(pairs: readonly FeedPair[]): string {
  const list = (values: readonly string[]) => [...new Set(values)].map(encodeURIComponent).join(",");
  const coins = list(pairs.map(({ coin }) => coin));
  const currencies = list(pairs.map(({ currency }) => currency));
  return `ids=${coins}&vs_currencies=${currencies}&include_last_updated_at=true&precision=full`;
}

function unusable(reason: string): Failure {
  return new Failure("fiat_oracle_unavailable", { reason });
}

// The network's storage price from the configured nodes: the price of one large size, of which every item's price is a
// part.
// Source: docs/reference/payment.md#prices-of-storage.

/** The requested size, 10 GiB in bytes: rounding up would weigh more for a smaller size. */
const requestedBytes = 10 * 2 ** 30;

/** The price of storage. */
export type NetworkPrice = Readonly<{
  /**
   * Winston for 10 GiB; at once while it is held and new enough.
   * @throws Failure `pricing_oracle_unavailable`.
   */
  price: (signal: AbortSignal) => Promise<bigint>;
  /** Milliseconds since the last response; `undefined` before the first. */
  ageMs: () => bigint | undefined;
  close: () => Promise<void>;
}>;

type NetworkPriceOptions = SourceOptions & Readonly<{ nodes: Pick<Nodes, "ask"> }>;

/** The token's total supply in winston, the upper bound of every price. */
const storagePriceMax = 66_000_000n * 1_000_000_000_000n;

/** Opens the source; its first request starts at once. */
export function openNetworkPrice(options: NetworkPriceOptions): NetworkPrice {
  const { nodes, ageMaxMs, clock } = options;
  let held: { price: bigint; at: number } | undefined;

  const ask = async (signal: AbortSignal): Promise<void> => {
    const response = await nodes.ask((node, own) => node.price(requestedBytes, undefined, own), signal, checkPrice);
    if (response.kind !== "ok") throw new Failure("pricing_oracle_unavailable", { response });
    held = { price: response.value, at: clock() };
  };
  const refresh = refreshOf("network price", ask, options);
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
  return price > 0n && price <= storagePriceMax ? undefined : `implausible storage price of ${price} winston`;
}
