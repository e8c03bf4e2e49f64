/**
 * Paid reading beyond the rate limits by x402, through a real listener, a ledger, and a node and a facilitator on
 * sockets: the price, the allowance of a payment, and that a payment counts once.
 * @module
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { Elysia } from "elysia";
import { createPaidReads } from "../../src/http/paid-reads.ts";
import { createRateLimiter } from "../../src/http/rate-limiter.ts";
import { withBodySize } from "../../src/http/responses.ts";
import type { HttpServer } from "../../src/http/server.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createMetrics } from "../../src/lib/metrics.ts";
import { openPaidReading, type PaidReading } from "../../src/payment/x402/paid-reading.ts";
import { checkLedger } from "../../src/store/ledger/ledger-check.ts";
import type { Payer } from "../payment/x402/payers.ts";
import { funded, openX402Fixture, type X402Fixture } from "../payment/x402/x402-fixture.ts";
import { describeWith } from "../support/helpers.ts";
import { openTestServer } from "../support/http-server.ts";
import { type LedgerKind, ledgerKinds } from "../support/ledger-databases.ts";

const kibibyte = 1_024;
/** What one payment buys: eight responses of a kibibyte. */
const allowance = 8 * kibibyte;
const price = 1_000n;
/** What an address may take without paying. */
const free = 3;
const key = new Uint8Array(32).fill(1);

let fixture: X402Fixture;
let alice: Payer;
let server: HttpServer;
let reading: PaidReading;

/** Opens it on a kind of ledger for each test that is around the call. */
function eachOn(kind: LedgerKind): void {
  beforeEach(async () => {
    fixture = await openX402Fixture({ kind });
    alice = funded(fixture, 1);
    await begin();
  });

  afterEach(async () => {
    await server.close(0);
    expect(await checkLedger(fixture.payment.database)).toEqual([]);
    await fixture.close();
  });
}

/** Starts the listener over what the ledger holds, as a start of the program does. */
async function begin(): Promise<void> {
  const { payment, x402 } = fixture;
  const clock = payment.clock.now;
  const metrics = createMetrics();
  reading = await openPaidReading({
    x402,
    ledger: payment.database,
    amount: price,
    bytes: allowance,
    key,
    clock,
    makeId: payment.makeId,
  });
  const limiter = createRateLimiter({
    client: { capacity: free, refillPerSecond: 0.000_001 },
    resource: { capacity: 1_000, refillPerSecond: 1 },
    isExempt: () => false,
    seed: 1,
    clock,
    metrics,
  });
  server = openTestServer({
    app: new Elysia({ strictPath: true })
      .get("/sized/:size", ({ params }) =>
        withBodySize(new Response(new Uint8Array(Number(params.size))), Number(params.size)),
      )
      .get("/payment/v1/info", () => new Response("info"))
      .post("/post", () => new Response("posted")),
    isTrustedProxy: () => true,
    limiter,
    paidReads: createPaidReads({
      limiter,
      reading,
      publicUrl: () => "http://gateway.test",
      seed: 1,
      clock,
      log: silentLog,
    }),
  });
}

type Result = Readonly<{ status: number; headers: Headers; body: string }>;

/** Asks from an address. */
async function ask(
  path: string,
  headers: Readonly<Record<string, string>> = {},
  { from = "192.0.2.1", method = "GET" } = {},
): Promise<Result> {
  const response = await fetch(`${server.url}${path}`, {
    method,
    headers: { "x-forwarded-for": from, ...headers },
  });
  return { status: response.status, headers: response.headers, body: await response.text() };
}

const read = (headers: Readonly<Record<string, string>> = {}, from?: string) =>
  ask(`/sized/${kibibyte}`, headers, from === undefined ? {} : { from });

/** Takes what an address may take without paying. */
async function takeFree(from?: string): Promise<void> {
  for (let index = 0; index < free; index += 1) expect((await read({}, from)).status).toBe(200);
}

const pay = (value = price) => ({ "x-payment": fixture.header(fixture.authorize(alice, value), alice) });

/** Responses until one is rejected. */
async function readsLeft(headers: Readonly<Record<string, string>> = {}): Promise<number> {
  for (let count = 0; count < 100; count += 1) if ((await read(headers)).status !== 200) return count;
  throw new Error("nothing was rejected");
}

for (const kind of ledgerKinds())
  describeWith(kind.need, `a reader who has reached the limit (${kind.name})`, () => {
    eachOn(kind);

    test("gets the price, in both versions, and the time to retry without payment", async () => {
      await takeFree();
      const { status, headers, body } = await read();
      expect(status).toBe(402);
      const { accepts, ...flat } = JSON.parse(body);
      expect(flat).toMatchObject({
        x402Version: 1,
        error: "IP rate limit exceeded",
        scheme: "exact",
        network: "base",
        maxAmountRequired: "1000",
        resource: "http://gateway.test/",
      });
      expect(accepts).toHaveLength(1);
      const second = JSON.parse(Buffer.from(headers.get("payment-required") ?? "", "base64").toString());
      expect(second).toMatchObject({ x402Version: 2, accepts: [{ amount: "1000", network: "eip155:8453" }] });
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
      expect(headers.get("cache-control")).toBe("no-store");
      expect((await ask(`/sized/${kibibyte}`, {}, { method: "HEAD" })).status).toBe(402);
    });

    test.each([1, 2] as const)("pays by version %p, and reads what was paid for, and no more", async (version) => {
      await takeFree();
      const header = fixture.header(fixture.authorize(alice, price), alice, version);
      const paid = await read({ [version === 1 ? "x-payment" : "payment-signature"]: header });
      expect([paid.status, paid.body.length]).toEqual([200, kibibyte]);
      const name = version === 1 ? "x-payment-response" : "payment-response";
      const settlement = JSON.parse(Buffer.from(paid.headers.get(name) ?? "", "base64").toString());
      expect(settlement).toMatchObject({ success: true, payer: alice.address });
      expect(await readsLeft()).toBe(7);
      expect(await fixture.balance(alice)).toBe(0n);
    });

    test("buys one allowance with one payment, however often and at once it is sent, also when it is used up", async () => {
      await takeFree();
      const headers = pay();
      const responses = await Promise.all(Array.from({ length: 5 }, () => read(headers)));
      const served = responses.filter(({ status }) => status === 200).length;
      expect(responses.every(({ status }) => [200, 503].includes(status))).toBe(true);
      expect(served + (await readsLeft(headers))).toBe(8);
      const again = await read(headers);
      expect([again.status, JSON.parse(again.body).error]).toEqual([402, "IP rate limit exceeded"]);
      expect(await read(pay())).toMatchObject({ status: 200 });
    });

    test("keeps what was paid over a restart, and what was used of it", async () => {
      await takeFree();
      const headers = pay();
      for (let index = 0; index < 3; index += 1) expect((await read(headers)).status).toBe(200);
      await server.close(0);
      await begin();
      await takeFree();
      expect(await readsLeft(headers)).toBe(5);
      await server.close(0);
      await begin();
      await takeFree();
      expect((await read(headers)).status).toBe(402);
    });

    test("reads for another's payment nothing, nor for one that was a top-up", async () => {
      const headers = pay();
      for (const from of ["192.0.2.1", "192.0.2.2"]) await takeFree(from);
      expect((await read(headers, "192.0.2.1")).status).toBe(200);
      const stolen = await read(headers, "192.0.2.2");
      expect(stolen.status).toBe(402);
      const rejection = JSON.parse(Buffer.from(stolen.headers.get("x-payment-response") ?? "", "base64").toString());
      expect(rejection).toMatchObject({
        success: false,
        errorReason: "the payment was made for something else",
      });
      expect(reading.left("192.0.2.2")).toBe(0);

      const topUp = fixture.authorize(alice, 2_000n);
      await fixture.ask("type=bytes&qty=1000000");
      expect((await fixture.pay(topUp, alice)).status).toBe(200);
      expect((await read({ "x-payment": fixture.header(topUp, alice) }, "192.0.2.2")).status).toBe(402);
    });

    test("owes what a body is larger than what was paid", async () => {
      await takeFree();
      const large = await ask(`/sized/${9 * kibibyte}`, pay());
      expect([large.status, large.body.length]).toEqual([200, 9 * kibibyte]);
      expect(reading.left("192.0.2.1")).toBe(0);
      expect((await read()).status).toBe(402);
    });

    test("is rejected without asking the chain again and again, and hears 429 where nothing is sold", async () => {
      await takeFree();
      expect((await ask("/post", {}, { method: "POST" })).status).toBe(429);
      expect((await ask("/payment/v1/info")).status).toBe(429);
      expect((await read({ "x-payment": "no payment" })).status).toBe(403);
      const bad = {
        "x-payment": fixture.header(fixture.authorize(alice, price), {
          ...alice,
          key: funded(fixture, 2).key,
        }),
      };
      const statuses: number[] = [];
      for (let index = 0; index < 12; index += 1) statuses.push((await read(bad)).status);
      expect(statuses.at(0)).toBe(403);
      expect(statuses.slice(10)).toEqual([429, 429]);
    });

    test("a payment of less is rejected, and nothing is transferred", async () => {
      await takeFree();
      const response = await read(pay(price - 1n));
      expect(response.status).toBe(402);
      expect(await fixture.balance(alice)).toBe(0n);
      expect(reading.left("192.0.2.1")).toBe(0);
    });

    test("a payment within the limits is left with its payer", async () => {
      const headers = pay();
      expect((await read(headers)).status).toBe(200);
      expect(reading.left("192.0.2.1")).toBe(0);
      expect(fixture.facilitator.orders).toHaveLength(0);
    });
  });
