/**
 * The rate limiter through a real listener: counted clients, costs, responses, and paths without limits.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import { Elysia } from "elysia";
import { sandboxLabel } from "../../src/http/hosts.ts";
import { createRateLimiter, type RateLimiterOptions } from "../../src/http/rate-limiter.ts";
import { textResponse, withBodySize } from "../../src/http/responses.ts";
import type { HttpServer } from "../../src/http/server.ts";
import { createMetrics } from "../../src/lib/metrics.ts";
import { post, rsa, testBytes } from "../dev/devnet/support.ts";
import { openTestServer, type TestServerOptions } from "../support/http-server.ts";
import { openStack } from "../support/stack.ts";

let server: HttpServer;
let now = 0;
let metrics = createMetrics();
afterEach(() => server.close(0));

/** Sizes are small, and nothing refills but by the test's clock. */
function open(limits: Partial<RateLimiterOptions>, more: Partial<TestServerOptions> = {}): void {
  now = 1_000_000;
  metrics = createMetrics();
  const limiter = createRateLimiter({
    client: { capacity: 5, refillPerSecond: 1 },
    resource: { capacity: 1_000, refillPerSecond: 1 },
    isExempt: () => false,
    seed: 1,
    clock: () => now,
    metrics,
    ...limits,
  });
  const sized = (size: number) => withBodySize(new Response(new Uint8Array(size)), size);
  server = openTestServer({
    app: new Elysia({ strictPath: true })
      .get("/a", () => textResponse("a"))
      .get("/b", () => textResponse("b"))
      .get("/sized/:size", ({ params }) => sized(Number(params.size)))
      .get("/health", () => textResponse("well"))
      .get("/svc/admin/debug", () => textResponse("state")),
    limiter,
    ...more,
  });
}

const ask = (path: string, headers: Record<string, string> = {}, method = "GET") =>
  fetch(`${server.url}${path}`, { headers, method });

async function statuses(count: number, path: string, headers: (at: number) => Record<string, string> = () => ({})) {
  const all: number[] = [];
  for (let at = 0; at < count; at += 1) all.push((await ask(path, headers(at))).status);
  return all;
}

describe("a client", () => {
  test("gets, without a token, the reason and the time to retry", async () => {
    open({});
    expect(await statuses(5, "/a")).toEqual([200, 200, 200, 200, 200]);
    const rejected = await ask("/b");
    expect([rejected.status, await rejected.json()]).toEqual([
      429,
      { error: "Too Many Requests", message: "IP rate limit exceeded" },
    ]);
    expect(rejected.headers.get("retry-after")).toBe("1");
    expect(rejected.headers.get("cache-control")).toBe("no-store");
    expect(rejected.headers.get("access-control-allow-origin")).toBe("*");
    expect(rejected.headers.get("x-request-id")).toBeString();
    now += 1_000;
    expect(await statuses(2, "/b")).toEqual([200, 429]);
    const stats = (await metrics.text()).split("\n").filter((line) => line.startsWith("rate_limit_"));
    expect(stats).toEqual([
      "rate_limit_requests_total 8",
      'rate_limit_exceeded_total{limit_type="ip"} 2',
      "rate_limit_tokens_consumed_total 6",
    ]);
  });

  test("pays a token for each kibibyte, after it got them", async () => {
    open({});
    expect(await statuses(2, "/sized/2049")).toEqual([200, 200]);
    expect((await ask("/a")).headers.get("retry-after")).toBe("2");
  });

  test("pays for headers alone, and for 304, one token", async () => {
    open({});
    for (let at = 0; at < 5; at += 1) expect((await ask("/sized/900000", {}, "HEAD")).status).toBe(200);
    expect((await ask("/a")).status).toBe(429);
  });

  test("cannot be another by what it says of itself", async () => {
    open({});
    const claims = (at: number) => ({ "X-Forwarded-For": `203.0.113.${at}`, "X-Real-IP": `203.0.113.${at}` });
    expect(await statuses(7, "/a", claims)).toEqual([200, 200, 200, 200, 200, 429, 429]);
  });

  test("is who a trusted proxy says that it is", async () => {
    open({}, { isTrustedProxy: (address) => address === "127.0.0.1" });
    const first = () => ({ "X-Forwarded-For": "203.0.113.9, 203.0.113.1" });
    expect(await statuses(6, "/a", first)).toEqual([200, 200, 200, 200, 200, 429]);
    expect(await statuses(1, "/a", () => ({ "X-Forwarded-For": "203.0.113.2" }))).toEqual([200]);
    // Entries before the proxy's own are set by the client.
    expect(await statuses(1, "/a", () => ({ "X-Forwarded-For": "203.0.113.77, 203.0.113.1" }))).toEqual([429]);
  });

  test("of IPv6 is the first 64 bits of its address", async () => {
    open({}, { isTrustedProxy: (address) => address === "127.0.0.1" });
    const ofOne = (at: number) => ({ "X-Forwarded-For": `2001:db8:0:1::${at + 1}` });
    expect(await statuses(6, "/a", ofOne)).toEqual([200, 200, 200, 200, 200, 429]);
    expect(await statuses(1, "/a", () => ({ "X-Forwarded-For": "2001:db8:0:2::1" }))).toEqual([200]);
  });

  test("on the list of those without a limit has none", async () => {
    open({ isExempt: (address) => address === "127.0.0.1" });
    expect(new Set(await statuses(20, "/a"))).toEqual(new Set([200]));
  });
});

describe("a resource", () => {
  test("has a limit for all clients together, and others are still there", async () => {
    const small = { capacity: 2, refillPerSecond: 1 };
    open({ resource: small }, { isTrustedProxy: (address) => address === "127.0.0.1" });
    const many = (at: number) => ({ "X-Forwarded-For": `203.0.113.${at}` });
    expect(await statuses(3, "/a", many)).toEqual([200, 200, 429]);
    const rejected = await ask("/a", { "X-Forwarded-For": "203.0.113.99" });
    expect(await rejected.json()).toEqual({
      error: "Too Many Requests",
      message: "Resource rate limit exceeded",
    });
    expect(await statuses(1, "/b", many)).toEqual([200]);
  });
});

test.each(["/health", "/svc/admin/debug"])("%s is never limited", async (path) => {
  open({ client: { capacity: 1, refillPerSecond: 1 } });
  expect(await statuses(2, "/a")).toEqual([200, 429]);
  expect(await statuses(5, path)).toEqual([200, 200, 200, 200, 200]);
});

test.each(["/metrics", "/svc/__gateway_metrics", "/ar-io/__gateway_metrics", "/payment/metrics", "/upload/v1/metrics"])(
  "%s costs what others cost",
  async (path) => {
    open({ client: { capacity: 1, refillPerSecond: 1 } });
    expect(await statuses(2, "/a")).toEqual([200, 429]);
    expect(await statuses(1, path)).toEqual([429]);
  },
);

test("responses from memory cost as much as others, and need tokens", async () => {
  const body = new Uint8Array(2_049);
  const hit = () => withBodySize(new Response(body), body.length);
  const asMany = async (count: number, headers: (at: number) => Record<string, string> = () => ({})) => {
    const responses: unknown[] = [];
    for (let at = 0; at < count; at += 1) {
      const response = await ask("/a", headers(at));
      responses.push(response.status === 200 ? (await response.bytes()).length : response.status);
    }
    return responses;
  };
  // Five tokens: three for the first, three for the second, and then one is owed.
  open({}, { cachedResponse: hit });
  expect(await asMany(3)).toEqual([2_049, 2_049, 429]);
  const rejected = await ask("/a");
  expect([rejected.headers.get("retry-after"), await rejected.json()]).toEqual([
    "2",
    { error: "Too Many Requests", message: "IP rate limit exceeded" },
  ]);
  expect(rejected.headers.get("x-request-id")).toBeString();
  now += 2_000;
  expect(await asMany(2)).toEqual([2_049, 429]);
  await server.close(0);
  // The resource is the same whether it is in memory or not.
  let isInMemory = false;
  open(
    { resource: { capacity: 2, refillPerSecond: 1 } },
    {
      cachedResponse: () => (isInMemory ? hit() : undefined),
      isTrustedProxy: (address) => address === "127.0.0.1",
    },
  );
  const many = (at: number) => ({ "X-Forwarded-For": `203.0.113.${at}` });
  expect(await asMany(1, many)).toEqual([1]);
  isInMemory = true;
  expect(await asMany(2, many)).toEqual([2_049, 429]);
  await server.close(0);
  open({}, { cachedResponse: hit, limiter: undefined });
  expect(new Set(await asMany(20))).toEqual(new Set([2_049]));
});

describe("a response without the router", () => {
  const requestCount = async () => (await metrics.text()).match(/^rate_limit_requests_total (\d+)/m)?.[1];

  test("needs tokens before it is made", async () => {
    let made = 0;
    const withoutRouter = () => () => {
      made += 1;
      return { pattern: "/tx/:id", response: new Response("record") };
    };
    open({ client: { capacity: 2, refillPerSecond: 1 } }, { withoutRouter });
    expect(await statuses(3, "/a")).toEqual([200, 200, 429]);
    expect(made).toBe(2);
  });

  test("costs as much as by its route", async () => {
    const response = () => withBodySize(new Response("x".repeat(2_049)), new Blob(["x".repeat(2_049)]));
    open({}, { withoutRouter: () => () => ({ pattern: "/a", response: response() }) });
    // Five tokens: three for the first, three for the second, and then one is owed.
    expect(await statuses(3, "/a")).toEqual([200, 200, 429]);
  });

  test.each([
    ["nothing", () => undefined],
    ["an error", () => failing()],
  ])("costs nothing where the read makes %s: its route takes the token", async (_what, make) => {
    open({ client: { capacity: 2, refillPerSecond: 1 } }, { withoutRouter: () => make });
    expect(await statuses(3, "/a")).toEqual([200, 200, 429]);
    expect(await requestCount()).toBe("3");
  });
});

function failing(): undefined {
  throw new Error("damaged");
}

test("the program counts content by its size, also from memory, and is off by default", async () => {
  const stack = await openStack({
    ENABLE_RATE_LIMITER: "true",
    RATE_LIMITER_IP_TOKENS_PER_BUCKET: "15",
    RATE_LIMITER_IP_REFILL_PER_SEC: "1",
  });
  const { id } = await post(stack.devnet, rsa, { data: testBytes(10_000) });
  await stack.devnet.mine(1);
  await stack.settled();
  const get = async () => (await fetch(`${stack.gateway.url}/raw/${id}`)).status;
  expect([await get(), await get(), await get()]).toEqual([200, 200, 429]);
  await stack.close();
  open({}, { limiter: undefined }); // closed after each test
  expect(new Set(await statuses(50, "/a"))).toEqual(new Set([200]));
}, 120_000);

test.each(["/svc/admin/page", "/health"])(
  "%s is limited on the hosts of content",
  async (path) => {
    const root = "gateway.test";
    const stack = await openStack({
      ARNS_ROOT_HOST: root,
      ENABLE_RATE_LIMITER: "true",
      RATE_LIMITER_IP_TOKENS_PER_BUCKET: "15",
      RATE_LIMITER_IP_REFILL_PER_SEC: "1",
    });
    const page = await post(stack.devnet, rsa, { data: testBytes(10_000) });
    const manifest = { manifest: "arweave/paths", version: "0.1.0", paths: { [path.slice(1)]: { id: page.id } } };
    const site = await post(stack.devnet, rsa, {
      data: new TextEncoder().encode(JSON.stringify(manifest)),
      tags: [{ name: "Content-Type", value: "application/x.arweave-manifest+json" }],
    });
    await stack.devnet.mine(1);
    await stack.settled();
    const at = async (host: string) =>
      (await fetch(`${stack.gateway.url}${path}`, { headers: { Host: host, Accept: "*/*" } })).status;
    const own = `${sandboxLabel(site.id)}.${root}`;
    expect([await at(own), await at(own), await at(own)]).toEqual([200, 200, 429]);
    expect(await at(root)).not.toBe(429);
    await stack.close();
    open({}); // closed after each test
  },
  120_000,
);
