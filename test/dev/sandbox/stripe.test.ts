/**
 * Parts of the sandbox that Stripe's library does not test: forms, the page, deliveries, and stored state.
 */
import { Database } from "bun:sqlite";
import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStripeSandbox, type StripeSandbox } from "../../../src/dev/sandbox/stripe.ts";
import { readForm } from "../../../src/dev/sandbox/stripe-context.ts";
import { type DeliveryFaults, noFaults } from "../../../src/dev/sandbox/stripe-events.ts";
import { cardsToTry, outcomeOf } from "../../../src/dev/sandbox/stripe-payments.ts";
import { createSandboxRoutes } from "../../../src/dev/sandbox-routes/sandbox-routes.ts";
import { type Log, silentLog } from "../../../src/lib/log.ts";
import { createRandom } from "../../support/random.ts";
import { until } from "../../support/until.ts";

const start = 1_800_000_000_000;
const key = "sk_test_x";
let cleanUp: (() => unknown)[] = [];

afterEach(async () => {
  for (const step of cleanUp.reverse()) await step();
  cleanUp = [];
});

type Options = Readonly<{ path?: string; faults?: DeliveryFaults; clock?: () => number; log?: Log }>;

function open(options: Options = {}): StripeSandbox {
  const random = createRandom(7);
  const sandbox = openStripeSandbox({
    clock: () => start,
    random: () => random.below(2 ** 32) / 2 ** 32,
    log: silentLog,
    ...options,
  });
  cleanUp.push(sandbox.close);
  return sandbox;
}

function askerOf(sandbox: StripeSandbox) {
  const response = createSandboxRoutes({
    sandbox,
    secretKey: key,
    pageUrl: () => "http://localhost",
    log: silentLog,
    priceFeed: () => undefined,
  });
  return (path: string, init: RequestInit = {}) => response(new Request(`http://localhost${path}`, init));
}

const checkout = (more: Record<string, string> = {}) =>
  readForm(
    new URLSearchParams({
      mode: "payment",
      success_url: "https://app.example/ok?s={CHECKOUT_SESSION_ID}",
      cancel_url: 'https://app.example/no?"><script>alert(1)</script>',
      "line_items[0][quantity]": "1",
      "line_items[0][price_data][currency]": "usd",
      "line_items[0][price_data][unit_amount]": "1000",
      "line_items[0][price_data][product_data][name]": '<img src=x onerror=alert(1)> & "credits"',
      ...more,
    }).toString(),
  ) ?? {};

describe("a form", () => {
  test.each([
    ["", {}],
    ["a=1", { a: "1" }],
    ["a=", { a: "" }],
    ["a[b]=1&a[c][d]=2", { a: { b: "1", c: { d: "2" } } }],
    ["a[0]=x&a[1]=y", { a: { 0: "x", 1: "y" } }],
    ["a[]=x&a[]=y", { a: { 0: "x", 1: "y" } }],
    ["a%5Bb%5D=%C3%BC+%26", { a: { b: "ü &" } }],
    ["a[__proto__][x]=1", JSON.parse('{"a":{"__proto__":{"x":"1"}}}')],
    ["a=1&a=2", undefined],
    ["a=1&a[b]=2", undefined],
    ["a[b]=2&a=1", undefined],
    ["a[b=1", undefined],
    ["a]b=1", undefined],
    ["[a]=1", undefined],
    ["a[b]c=1", undefined],
    [`a${"[b]".repeat(8)}=1`, undefined],
    [`a=${"x".repeat(5_001)}`, undefined],
    [Array.from({ length: 1_001 }, (_, index) => `a${index}=`).join("&"), undefined],
  ])("%p", (text, tree) => {
    const read = readForm(text);
    expect(read === undefined ? undefined : JSON.stringify(read)).toBe(
      tree === undefined ? undefined : JSON.stringify(tree),
    );
    expect(Object.hasOwn(Object.prototype, "x")).toBe(false);
  });
});

describe("the page", () => {
  const urlOf = (sandbox: StripeSandbox, form = checkout()) =>
    `/c/pay/${String(sandbox.createCheckout(form, "http://localhost")["id"])}`;

  test("escapes the text of sellers, and its policy prevents scripts and resources", async () => {
    const sandbox = open();
    const page = await askerOf(sandbox)(urlOf(sandbox));
    const html = await page.text();
    expect(html).not.toContain("<img");
    expect(html).not.toContain("<script");
    expect(html).toContain("&lt;img src=x onerror=alert(1)&gt; &amp; &quot;credits&quot;");
    const policy = page.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain("unsafe");
    expect(policy).not.toContain("script-src");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("form-action 'self' https://app.example");
    expect(page.headers.get("cache-control")).toBe("no-store");
  });

  test("its style has the hash of its policy", async () => {
    const sandbox = open();
    const page = await askerOf(sandbox)(urlOf(sandbox));
    const style = /<style>([\s\S]*)<\/style>/.exec(await page.text())?.[1] ?? "";
    const hash = new Bun.CryptoHasher("sha256").update(style).digest("base64");
    expect(page.headers.get("content-security-policy")).toContain(`style-src 'sha256-${hash}'`);
  });

  test.each([
    ["same-origin", 303],
    ["none", 303],
    ["cross-site", 403],
    ["same-site", 403],
  ])("responds to a form with Sec-Fetch-Site %s with %i", async (site, status) => {
    const sandbox = open();
    const response = await askerOf(sandbox)(urlOf(sandbox), {
      method: "POST",
      headers: { "sec-fetch-site": site },
      body: new URLSearchParams({ cardNumber: "4242424242424242" }),
    });
    expect(response.status).toBe(status);
  });

  test("of an embedded checkout accepts a card too, also without a return URL", async () => {
    const sandbox = open();
    const form = { ...checkout({ ui_mode: "embedded", redirect_on_completion: "never" }) };
    const { success_url: _success, cancel_url: _cancel, ...embedded } = form;
    const ask = askerOf(sandbox);
    const path = urlOf(sandbox, embedded);
    expect((await ask(path)).status).toBe(200);
    const body = new URLSearchParams({ cardNumber: "4242424242424242" });
    const paid = await ask(path, { method: "POST", body });
    expect([paid.status, await paid.text()]).toEqual([200, expect.stringContaining("Paid. Thank you.")]);
  });

  test("of an unknown checkout is 404", async () => {
    expect((await askerOf(open())("/c/pay/cs_test_none")).status).toBe(404);
  });
});

describe("the protocol", () => {
  test("rejects requests without the key, in each form of credentials", async () => {
    const ask = askerOf(open());
    const rows: [string, number][] = [
      [`Bearer ${key}`, 200],
      [`Basic ${btoa(`${key}:`)}`, 200],
      ["", 401],
      ["Bearer", 401],
      ["Bearer wrong", 401],
      ["Basic %%%", 401],
      [`Basic ${btoa(`:${key}`)}`, 401],
    ];
    for (const [authorization, status] of rows) {
      const response = await ask("/v1/events", { headers: { authorization } });
      expect([authorization, response.status]).toEqual([authorization, status]);
    }
  });

  test("responds with an error to other paths", async () => {
    expect((await askerOf(open())("/v1/customers")).status).toBe(404);
  });
});

describe("deliveries", () => {
  /** A target with given responses, which records deliveries. */
  function target(statuses: number[]) {
    const came: string[] = [];
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: async (request) => {
        came.push(JSON.parse(await request.text()).id);
        return new Response(null, { status: statuses.shift() ?? 200 });
      },
    });
    cleanUp.push(() => server.stop(true));
    return { url: `http://127.0.0.1:${server.port}/`, secret: "whsec", came };
  }

  const signal = new AbortController().signal;

  test("are repeated until they are accepted, with increasing waits", async () => {
    let now = start;
    const sandbox = open({ clock: () => now });
    const { came, ...to } = target([500, 302, 404, 200]);
    sandbox.createIntent({ amount: "100", currency: "usd" });
    sandbox.deliverTo(to);
    const waits: number[] = [];
    let since = now;
    while (sandbox.deliveriesWaiting() > 0) {
      const before = came.length;
      await sandbox.deliver(signal);
      if (came.length > before) {
        waits.push(now - since);
        since = now;
      }
      now += 50;
    }
    expect(new Set(came).size).toBe(1);
    expect(came.length).toBe(4);
    expect(waits.slice(-3)).toEqual([250, 500, 1_000]);
  });

  test("wait while the target is unreachable, also over a restart", async () => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-sandbox-"));
    cleanUp.push(() => rmSync(folder, { recursive: true }));
    const path = join(folder, "sandbox.sqlite");
    const first = open({ path });
    const intent = first.createIntent({ amount: "100", currency: "usd" });
    first.deliverTo({ url: "http://127.0.0.1:1/", secret: "whsec" });
    await first.deliver(signal);
    await first.close();
    cleanUp.pop();
    const second = open({ path, clock: () => start + 60_000 });
    expect(second.fetch("payment_intent", String(intent["id"]))).toEqual(intent);
    const { came, ...to } = target([]);
    second.deliverTo(to);
    while (second.deliveriesWaiting() > 0) await second.deliver(signal);
    expect(came.length).toBeGreaterThan(0);
  });

  test.each([
    ["lost", { ...noFaults, lostShare: 1 }, 0],
    ["doubled", { ...noFaults, doubledShare: 1 }, 20],
    ["whole", noFaults, 10],
  ])("are %s with the configured faults", (_name, faults, count) => {
    const sandbox = open({ faults });
    for (let each = 0; each < 10; each += 1) sandbox.createIntent({ amount: "100", currency: "usd" });
    expect(sandbox.deliveriesWaiting()).toBe(count);
    expect(sandbox.events({ from: 0, to: undefined, types: [], limit: 100, after: undefined }).events).toHaveLength(10);
  });
});

test("a database that another program has locked delays the expiry of checkouts, and ends nothing", async () => {
  const folder = mkdtempSync(join(tmpdir(), "cairn-sandbox-"));
  cleanUp.push(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "sandbox.sqlite");
  const errors: string[] = [];
  let now = start;
  const log = { ...silentLog, error: (message: string) => void errors.push(message) };
  const sandbox = open({ path, clock: () => now, log });
  const { id } = sandbox.createCheckout(checkout(), "http://localhost");
  const other = new Database(path);
  other.run("BEGIN IMMEDIATE");
  now += 2 * 24 * 60 * 60_000;
  await until(() => errors.length > 0);
  other.run("ROLLBACK");
  other.close();
  const events = () => sandbox.events({ from: 0, to: undefined, types: [], limit: 100, after: undefined }).events;
  await until(() => events().some(({ type }) => type === "checkout.session.expired"));
  expect(sandbox.fetchCheckout(String(id))["status"]).toBe("expired");
  expect(errors[0]).toBe("sandbox: checkouts could not be expired");
});

test("every card on the start page has the stated outcome", () => {
  const kinds = cardsToTry.map(([number, says]) => [says.split(",")[0], outcomeOf(number)]);
  expect(kinds).toEqual(
    cardsToTry.map(([, says]) => {
      const outcome = says.startsWith("pays")
        ? { kind: "paid", isDisputed: says.includes("disputed") }
        : expect.objectContaining({ kind: "declined" });
      return [says.split(",")[0], outcome];
    }),
  );
});
