/**
 * Where prices come from: a feed over HTTP and our own nodes, which may be slow, silent, wrong or stale.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Node, NodeResponse } from "../../../src/chain/node.ts";
import { createNodes } from "../../../src/chain/nodes.ts";
import { createSandboxPriceFeed, sandboxPrices } from "../../../src/dev/sandbox/price-feed.ts";
import { Failure } from "../../../src/failures.ts";
import { fault } from "../../../src/lib/http-client.ts";
import { silentLog } from "../../../src/lib/log.ts";
import { untilStopped } from "../../../src/lib/stop.ts";
import { defaultRules } from "../../../src/payment/prices/price-rules.ts";
import { keyOf, openNetworkPrice, openPriceFeed, readFeed } from "../../../src/payment/prices/price-sources.ts";
import { feedPairsOf } from "../../../src/payment/prices/prices.ts";
import { compare, rational, writeDecimal } from "../../../src/payment/prices/rational.ts";
import { createTestClock, type TestClock, testStart } from "../../support/payment.ts";
import { newSeed } from "../../support/seed.ts";
import { until } from "../../support/until.ts";

const signal = new AbortController().signal;
const minute = 60_000;
const ageMaxMs = 360 * minute;
const pair = { coin: "arweave", currency: "usd" };

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

describe("a response of the feed", () => {
  const now = BigInt(testStart);
  const read = (text: string) => readFeed(Buffer.from(text), [pair], now, BigInt(ageMaxMs));
  const good: readonly (readonly [string, string])[] = [
    ['{"arweave":{"usd":7.02}}', "7.02"],
    ['{"arweave":{"usd":7.020000000000000001}}', "7.020000000000000001"],
    ['{"arweave":{"usd":702e-2,"eur":"x"},"other":null}', "7.02"],
    ['{"arweave":{"usd":1e-9}}', "0.000000001"],
    ['{"arweave":{"usd":1000000000}}', "1000000000"],
    [`{"arweave":{"usd":7.02,"last_updated_at":${testStart / 1_000 - 60}}}`, "7.02"],
    [`{"arweave":{"usd":7.02,"last_updated_at":${testStart / 1_000 + 60}}}`, "7.02"],
    [`{"arweave":{"usd":7.02,"last_updated_at":${testStart / 1_000 - 6 * 3_600}}}`, "7.02"],
  ];
  test.each(good)("%s is a price of %s", (text, price) => {
    const { readings, faults } = read(text);
    expect(writeDecimal(readings.get(keyOf(pair))?.price ?? rational(0n), 60n)).toBe(price);
    expect(faults).toEqual([]);
  });

  test("has the age of the feed's time, and is never from the future", () => {
    const at = (seconds: number) =>
      read(`{"arweave":{"usd":1,"last_updated_at":${seconds}}}`).readings.get(keyOf(pair))?.at;
    expect(at(testStart / 1_000 - 60)).toBe(now - 60_000n);
    expect(at(testStart / 1_000 + 60)).toBe(now);
  });

  test.each([
    "",
    "{",
    "NaN",
    "[]",
    "null",
    '"arweave"',
    "{}",
    '{"arweave":null}',
    '{"arweave":{}}',
    '{"arweave":[7]}',
    '{"arweave":{"usd":NaN}}',
    '{"arweave":{"usd":null}}',
    '{"arweave":{"usd":"7.02"}}',
    '{"arweave":{"usd":0}}',
    '{"arweave":{"usd":0.0}}',
    '{"arweave":{"usd":-7.02}}',
    '{"arweave":{"usd":-0}}',
    '{"arweave":{"usd":1e30}}',
    '{"arweave":{"usd":1e400}}',
    '{"arweave":{"usd":1000000001}}',
    '{"arweave":{"usd":9e-10}}',
    '{"arweave":{"usd":1e-400}}',
    '{"arweave":{"usd":true}}',
    '{"arweave":{"usd":{"usd":7}}}',
    '{"arweave":{"eur":7}}',
    '{"Arweave":{"usd":7}}',
    `{"arweave":{"usd":7.02,"last_updated_at":${testStart / 1_000 - 6 * 3_600 - 1}}}`,
    '{"arweave":{"usd":7,"last_updated_at":"now"}}',
    '{"arweave":{"usd":7,"last_updated_at":1e10}}',
    '{"arweave":{"usd":7,"last_updated_at":-1}}',
    '{"arweave":{"usd":7,"last_updated_at":null}}',
  ])("%s has no price, and says why", (text) => {
    const { readings, faults } = read(text);
    expect(readings.size).toBe(0);
    expect(faults).toHaveLength(1);
  });

  test("of any bytes gives no implausible price and throws nothing", () => {
    const numbers = fc.oneof(
      fc.double().map(String),
      fc.bigInt().map(String),
      fc.constantFrom("1e999999999", "-0.0", "NaN", "Infinity", "01", "1e-9", "1e9", "0.0000000009999", "null"),
    );
    const texts = fc.oneof(
      numbers.map((number) => `{"arweave":{"usd":${number}}}`),
      fc.tuple(numbers, numbers).map(([price, at]) => `{"arweave":{"usd":${price},"last_updated_at":${at}}}`),
      fc.json().map((json) => `{"arweave":${json}}`),
      fc.json(),
      fc.string(),
    );
    const seed = newSeed();
    fc.assert(
      fc.property(texts, (text) => {
        for (const { price, at } of read(text).readings.values()) {
          expect(compare(price, rational(1n, 10n ** 9n))).toBeGreaterThanOrEqual(0);
          expect(compare(price, rational(10n ** 9n))).toBeLessThanOrEqual(0);
          expect(at <= now && at >= now - BigInt(ageMaxMs)).toBe(true);
        }
      }),
      { seed, numRuns: 3_000 },
    );
  });

  test("bytes that are not UTF-8 are not a response", () => {
    const body = Buffer.from('{"arweave":{"usd":7,"x":"\xff"}}', "latin1");
    expect(readFeed(body, [pair], now, BigInt(ageMaxMs)).readings.size).toBe(0);
  });

  test("one invalid price does not affect the others", () => {
    const pairs = [pair, { coin: "arweave", currency: "eur" }, { coin: "solana", currency: "usd" }];
    const body = Buffer.from('{"arweave":{"usd":7,"eur":0},"solana":{"usd":140}}');
    const { readings, faults } = readFeed(body, pairs, now, BigInt(ageMaxMs));
    expect([...readings.keys()]).toEqual(["arweave usd", "solana usd"]);
    expect(faults).toHaveLength(1);
  });
});

/** A feed on a real socket with the test's responses, and a client of it. */
function openFeed(
  response: (count: number, request: Request) => Response | Promise<Response>,
  options: Readonly<{ clock?: TestClock; everyMs?: number; timeoutMs?: number }> = {},
) {
  const { clock = createTestClock(), everyMs = 3_600_000, timeoutMs = 20_000 } = options;
  let asked = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => {
      asked += 1;
      return response(asked, request);
    },
  });
  closing.push(() => server.stop(true));
  const url = `http://127.0.0.1:${server.port}`;
  const feed = openPriceFeed({
    url,
    pairs: [pair],
    ageMaxMs,
    clock: clock.now,
    random: () => 0.5,
    log: silentLog,
    everyMs,
    timeoutMs,
  });
  closing.push(feed.close);
  const price = async () => {
    const [found] = await feed.prices([pair], signal);
    return writeDecimal(found ?? rational(0n), 60n);
  };
  return { feed, clock, price, asked: () => asked };
}

const priced = (text: string) => () => new Response(`{"arweave":{"usd":${text}}}`);

describe("the feed", () => {
  test("is requested once for every coin and currency, and returns their prices", async () => {
    const questions: string[] = [];
    const { price } = openFeed((_count, request) => {
      questions.push(new URL(request.url).pathname, new URL(request.url).searchParams.get("ids") ?? "");
      return priced("7.02")();
    });
    const many = await Promise.all(Array.from({ length: 50 }, price));
    expect(new Set(many)).toEqual(new Set(["7.02"]));
    expect(questions).toEqual(["/simple/price", "arweave"]);
  });

  test("N: is requested in the background: no call waits while a price is held, however long the feed takes", async () => {
    const held = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const { price, asked } = openFeed(
      (count) => {
        if (count === 1) return priced("7")();
        begun.resolve();
        return held.promise.then(priced("8"));
      },
      { everyMs: 1, timeoutMs: 60_000 },
    );
    expect(await price()).toBe("7");
    await begun.promise; // the second question is under way and is not responded
    for (let round = 0; round < 1_000; round += 1) expect(await price()).toBe("7");
    expect(asked()).toBe(2);
    held.resolve();
    await until(async () => (await price()) === "8");
  });

  const bad: readonly (readonly [string, () => Response | Promise<Response>])[] = [
    ["status 500", () => new Response('{"arweave":{"usd":8}}', { status: 500 })],
    ["status 429", () => new Response('{"arweave":{"usd":8}}', { status: 429 })],
    ["a redirect", () => Response.redirect("/elsewhere", 302)],
    ["zero", priced("0")],
    ["NaN", priced("NaN")],
    ["a negative price", priced("-8")],
    ["1e30", priced("1e30")],
    ["nothing", () => new Response("{}")],
    ["no JSON", () => new Response("<html>")],
    ["a megabyte", () => new Response(`{"arweave":{"usd":8},"x":"${"x".repeat(2 ** 20)}"}`)],
    ["silence", () => new Promise<Response>(() => undefined)],
  ];
  /** Only silence takes as long as it may. */
  const timeoutFor = (name: string, silenceMs: number) => (name === "silence" ? silenceMs : 20_000);
  test.each(bad)("L6: after %s the last valid price is used until it expires", async (name, response) => {
    const { price, clock, asked } = openFeed((count) => (count === 1 ? priced("7")() : response()), {
      everyMs: 1,
      timeoutMs: timeoutFor(name, 3_000),
    });
    expect(await price()).toBe("7");
    await until(() => asked() >= 2);
    clock.advance(ageMaxMs);
    expect(await price()).toBe("7");
    clock.advance(1);
    expect(await codeOf(price())).toBe("fiat_oracle_unavailable");
  });

  test.each(bad)("of %s at the start gives no price", async (name, response) => {
    const { price, feed } = openFeed(response, { timeoutMs: timeoutFor(name, 300) });
    expect(await codeOf(price())).toBe("fiat_oracle_unavailable");
    expect(feed.ageMs()).toBeUndefined();
  });

  test("fails at once between failed attempts", async () => {
    const { price, asked } = openFeed(() => new Response("", { status: 500 }));
    const codes = new Set<unknown>();
    for (let round = 0; round < 100; round += 1) codes.add(await codeOf(price()));
    expect([...codes]).toEqual(["fiat_oracle_unavailable"]);
    expect(asked()).toBe(1); // the next attempt is a second away
  });

  test("recovers by itself", async () => {
    const { price } = openFeed((count) => (count <= 2 ? new Response("", { status: 500 }) : priced("9")()));
    await until(async () => (await price().catch(() => "")) === "9");
  });

  test("an aborted caller stops waiting, and the others get their price", async () => {
    const held = Promise.withResolvers<Response>();
    const { feed, price } = openFeed(() => held.promise);
    const leaving = new AbortController();
    const left = feed.prices([pair], leaving.signal);
    const staying = price();
    leaving.abort(new Error("gone"));
    expect(await left.then(String, String)).toBe("Error: gone");
    held.resolve(priced("7")());
    expect(await staying).toBe("7");
  });

  test("returns the age of its prices", async () => {
    const { feed, price, clock } = openFeed(priced("7"));
    await price();
    clock.advance(90_000);
    expect(feed.ageMs()).toBe(90_000n);
  });

  test("aborts the running request when it is closed", async () => {
    const { feed, price } = openFeed(() => new Promise<Response>(() => undefined), { timeoutMs: 60_000 });
    const waiting = codeOf(price());
    await feed.close();
    expect(await waiting).toBe("fiat_oracle_unavailable");
  });
});

describe("the sandbox's feed", () => {
  const responseOf = createSandboxPriceFeed();

  test("has a valid price for every requested pair", async () => {
    const { pathname, searchParams } = await askedOf(feedPairsOf(defaultRules));
    const response = responseOf(new Request(`http://localhost${pathname}?${searchParams}`));
    const { readings, faults } = readFeed(
      new Uint8Array((await response?.arrayBuffer()) ?? new ArrayBuffer(0)),
      feedPairsOf(defaultRules),
      BigInt(testStart),
      BigInt(ageMaxMs),
    );
    expect(faults).toEqual([]);
    expect(readings.size).toBe(feedPairsOf(defaultRules).length);
  });

  test("responds as the public feed: unknown coins are omitted", async () => {
    const ask = (path: string) => responseOf(new Request(`http://localhost${path}`));
    const known = ask("/api/v3/simple/price?ids=arweave,unnamed,toString&vs_currencies=usd,xyz");
    expect(await known?.json()).toEqual({ arweave: { usd: Number(sandboxPrices["arweave"]?.["usd"]) } });
    expect(ask("/simple/price?vs_currencies=usd")?.status).toBe(422);
    expect(ask("/simple/price?ids=arweave")?.status).toBe(422);
    expect(ask("/v1/checkout/sessions")).toBeUndefined();
  });
});

/** What a client asks for such pairs. */
async function askedOf(pairs: ReturnType<typeof feedPairsOf>): Promise<URL> {
  const asked = Promise.withResolvers<URL>();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => {
      asked.resolve(new URL(request.url));
      return new Response("{}");
    },
  });
  closing.push(() => server.stop(true));
  const feed = openPriceFeed({
    url: `http://127.0.0.1:${server.port}`,
    pairs,
    ageMaxMs,
    clock: Date.now,
    random: () => 0.5,
    log: silentLog,
  });
  closing.push(feed.close);
  return await asked.promise;
}

describe("the network's price", () => {
  type Result = NodeResponse<bigint>;

  function openNetwork(responses: readonly ((size: number) => Result | Promise<Result>)[], everyMs = 3_600_000) {
    const clock = createTestClock();
    const sizes: number[] = [];
    const nodes = responses.map(
      (response, index) =>
        ({
          url: `http://node-${index}`,
          price: async (size: number, _target: unknown, own: AbortSignal) => {
            sizes.push(size);
            return await untilStopped(Promise.resolve(response(size)), own);
          },
          close: () => undefined,
        }) as unknown as Node,
    );
    const price = openNetworkPrice({
      nodes: createNodes(nodes, { clock: clock.now, random: () => 0.5, log: silentLog }),
      ageMaxMs,
      clock: clock.now,
      random: () => 0.5,
      log: silentLog,
      everyMs,
      timeoutMs: 500,
    });
    closing.push(price.close);
    return { price: () => price.price(signal), ageMs: price.ageMs, clock, sizes };
  }

  test("is that of 10 GiB, from the configured nodes", async () => {
    const { price, sizes, ageMs, clock } = openNetwork([() => ({ kind: "ok", value: 123n })]);
    expect(await price()).toBe(123n);
    expect(sizes).toEqual([10_737_418_240]);
    clock.advance(5);
    expect(ageMs()).toBe(5n);
  });

  test("N: comes from another node after a fault or an implausible price", async () => {
    const responses: (() => Result)[] = [
      () => fault("connect", "rejected"),
      () => ({ kind: "ok", value: 0n }),
      () => ({ kind: "ok", value: 10n ** 30n }),
      () => ({ kind: "absent" }),
      () => ({ kind: "ok", value: 7n }),
    ];
    expect(await openNetwork(responses).price()).toBe(7n);
  });

  test("is used until it expires when the nodes are gone", async () => {
    let count = 0;
    const response = (): Result => {
      count += 1;
      return count === 1 ? { kind: "ok", value: 7n } : fault("connect", "rejected");
    };
    const { price, clock } = openNetwork([response], 1);
    expect(await price()).toBe(7n);
    await until(() => count >= 2);
    clock.advance(ageMaxMs);
    expect(await price()).toBe(7n);
    clock.advance(1);
    expect(await codeOf(price())).toBe("pricing_oracle_unavailable");
  });

  test("is absent after the timeout when no node responds", async () => {
    const { price } = openNetwork([() => new Promise(() => undefined)]);
    expect(await codeOf(price())).toBe("pricing_oracle_unavailable");
  });
});

async function codeOf(promise: Promise<unknown>): Promise<string> {
  return await promise.then(
    () => "it did not fail",
    (error: unknown) => (error instanceof Failure ? error.code : String(error)),
  );
}
