/**
 * Top-ups over HTTP: rejections with their order and messages, and the shape of a session and its quote.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type CardFixture, openCardFixture } from "../../payment/cards/card-fixture.ts";
import { testStart } from "../../support/payment.ts";
import { cardlessTopUpRoutes, openPaymentServer } from "../../support/payment-server.ts";
import { eventually } from "../../support/until.ts";

const native = "A".repeat(43);
const ethereum = "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A";
const checkout = `/v1/top-up/checkout-session/${native}`;

let fixture: CardFixture;
let narrow: CardFixture;
let blind: CardFixture;

beforeAll(async () => {
  fixture = await openCardFixture();
  narrow = await openCardFixture({
    returnOrigins: ["https://app.example"],
    publicUrl: "https://pay.example/",
  });
  blind = await openCardFixture({ feed: {} });
});

afterAll(async () => {
  for (const each of [fixture, narrow, blind]) await each.close();
});

const quoteCount = async (of: CardFixture): Promise<bigint> => {
  const row = await of.payment.database.read((tx) => tx.get<{ n: bigint }>("SELECT COUNT(*) AS n FROM quotes"));
  return row?.n ?? 0n;
};

const large = 'is too large for the currency type "usd"; it must be below or equal to 1000000!';
const invalid = (text: string) =>
  `Payment Amount is Invalid!: The provided payment amount (${text}) is invalid; it must be a positive non-decimal integer!`;
const longMessage = "x".repeat(251);

/** Each row breaks one rule; rows below the first of a pair break a later one too, and the earlier one is reported. */
const rejections: readonly (readonly [string, number, string])[] = [
  ["/v1/top-up/cash/x/y/z?token=q", 400, "Payment method must include one of: payment-intent,checkout-session!"],
  [`${checkout}/usd/1000?token=doge&giftMessage=`, 400, "Invalid destination address type: doge"],
  [`${checkout}/usd/1000?destinationAddressType=doge&token=native`, 400, "Invalid destination address type: doge"],
  [
    `${checkout}/usd/1000?token=native&token=ethereum`,
    400,
    "Expected a singular query parameter but got an array native,ethereum",
  ],
  [`${checkout}/usd/1000?giftMessage=${longMessage}&uiMode=x`, 400, "Invalid gift message!"],
  [`${checkout}/usd/1000?giftMessage=`, 400, "Invalid gift message!"],
  [`${checkout}/usd/1000?giftMessage=a%00b`, 400, "Invalid gift message!"],
  [`${checkout}/usd/1000?uiMode=popup&successUrl=x`, 400, 'Invalid ui mode! Allowed modes: "hosted,embedded"'],
  [`${checkout}/usd/1000?successUrl=javascript:alert(1)`, 400, "Invalid url provided: javascript:alert(1)!"],
  [
    `${checkout}/usd/1000?successUrl=https://a.example&successUrl=https://b.example`,
    400,
    "Expected a singular query parameter but got an array https://a.example,https://b.example",
  ],
  ["/v1/top-up/checkout-session/a@b.example/usd/1?destinationAddressType=email", 403, "Gifting by email is disabled!"],
  [
    "/v1/top-up/checkout-session/a@b.example/usd/1?destinationAddressType=email&uiMode=no",
    400,
    'Invalid ui mode! Allowed modes: "hosted,embedded"',
  ],
  ["/v1/top-up/checkout-session/unnamed/xyz/1", 403, "Destination address is not a valid native address!"],
  [`/v1/top-up/checkout-session/${ethereum}/usd/1000`, 403, "Destination address is not a valid native address!"],
  [
    `/v1/top-up/payment-intent/${ethereum.replace("19E7", "19e7")}/usd/1000?token=ethereum`,
    403,
    "Destination address is not a valid native address!",
  ],
  [
    `/v1/top-up/payment-intent/${native}/usd/1000?destinationAddressType=gift`,
    403,
    "Destination address is not a valid native address!",
  ],
  [`${checkout}/xyz/1000`, 400, "The currency type 'xyz' is currently not supported by this API!"],
  [`${checkout}/usd/ten`, 400, invalid("ten")],
  [`${checkout}/usd/10.5`, 400, invalid("10.5")],
  [`${checkout}/usd/-1000`, 400, invalid("-1000")],
  [`${checkout}/usd/9007199254740993`, 400, invalid("9007199254740993")],
  [
    `${checkout}/usd/499`,
    400,
    'Payment Amount is Invalid!: The provided payment amount (499) is too small for the currency type "usd"; it must be above 500!',
  ],
  [`${checkout}/usd/1000001`, 400, `Payment Amount is Invalid!: The provided payment amount (1000001) ${large}`],
  [`${checkout}/usd/1000?promoCode=NOPE`, 400, "No promo code found with code 'NOPE'"],
  [
    "/v1/top-up/checkout-session/gift/usd/1000?destinationAddressType=gift&promoCode=NOPE",
    400,
    "Promo codes must be applied to a specific `destinationAddress` or to the request signer",
  ],
];

describe("GET /top-up rejects", () => {
  test.each(rejections)("%s with %i %p", async (path, status, message) => {
    const before = await quoteCount(fixture);
    const response = await fixture.ask(path);
    expect({ status: response.status, body: response.body }).toEqual({ status, body: message });
    expect(await quoteCount(fixture)).toBe(before);
  });

  test("everything about money with 503 while the feed is out of reach, and says when to ask again", async () => {
    for (const path of [`${checkout}/usd/1000`, `${checkout}/xyz/1000`, `${checkout}/usd/1`]) {
      const { status, body, headers } = await blind.ask(path);
      expect([status, body, headers.get("retry-after")]).toEqual([503, "Fiat Oracle Unavailable", "5"]);
    }
  });

  test("an invalid destination before a request to the price feed", async () => {
    const { status } = await blind.ask("/v1/top-up/checkout-session/unnamed/usd/1000");
    expect(status).toBe(403);
  });
});

test("GET /top-up says in words that clients know that no cards are taken", async () => {
  const server = openPaymentServer(() => [cardlessTopUpRoutes()]);
  const response = await fetch(`${server.url}${checkout}/usd/1000`);
  expect(response.status).toBe(503);
  expect(await response.json()).toMatch(/Fiat \(Stripe\).*disabled/i);
  await server.close();
});

describe("GET /top-up returns", () => {
  test("a hosted checkout with its quote in the specification's shape", async () => {
    const { topUpQuote, paymentSession, adjustments, fees } = await fixture.topUp(`${checkout}/usd/1000`);
    expect(Object.keys(topUpQuote).sort()).toEqual([
      "currencyType",
      "destinationAddress",
      "destinationAddressType",
      "paymentAmount",
      "paymentProvider",
      "quoteExpirationDate",
      "quotedPaymentAmount",
      "topUpQuoteId",
      "winstonCreditAmount",
    ]);
    expect(topUpQuote).toMatchObject({
      destinationAddress: native,
      destinationAddressType: "native",
      paymentAmount: 1000,
      quotedPaymentAmount: 1000,
      currencyType: "usd",
      winstonCreditAmount: "1094285714286",
      quoteExpirationDate: new Date(testStart + 35 * 60_000).toISOString(),
      paymentProvider: "stripe",
    });
    expect(paymentSession.id).toMatch(/^cs_test_/);
    expect(paymentSession.client_secret).toBe("");
    expect(paymentSession.url).toBe(`${fixture.sandboxUrl}/c/pay/${paymentSession.id}`);
    expect(adjustments).toEqual([]);
    expect(fees).toHaveLength(1);
    expect(fees[0]).toMatchObject({
      operatorMagnitude: "0.766",
      operator: "multiply",
      adjustmentAmount: "-234",
    });
  });

  test.each([
    ["payment-intent", "", /^pi_/, /^pi_.*_secret_/, /^$/],
    ["checkout-session", "?uiMode=embedded", /^cs_test_/, /^cs_test_.*_secret_/, /^$/],
    ["checkout-session", "?uiMode=embedded&returnUrl=https://a.example", /^cs_test_/, /_secret_/, /^$/],
    ["checkout-session", "?uiMode=hosted", /^cs_test_/, /^$/, /^http/],
  ])("a %s %s with the three keys of its session", async (method, query, id, secret, url) => {
    const { paymentSession } = await fixture.topUp(`/v1/top-up/${method}/${native}/usd/1000${query}`);
    expect(Object.keys(paymentSession).sort()).toEqual(["client_secret", "id", "url"]);
    expect(paymentSession.id).toMatch(id);
    expect(paymentSession.client_secret).toMatch(secret);
    expect(paymentSession.url).toMatch(url);
  });

  test("the word that the request used for what the address is of", async () => {
    for (const word of ["ethereum", "matic", "pol", "base-eth", "usdc"]) {
      const lower = ethereum.toLowerCase();
      const { topUpQuote } = await fixture.topUp(`/v1/top-up/payment-intent/${lower}/usd/500?token=${word}`);
      expect(topUpQuote).toMatchObject({ destinationAddressType: word, destinationAddress: ethereum });
    }
    const { topUpQuote } = await fixture.topUp(`${checkout}/usd/1000?token=arweave`);
    expect(topUpQuote).toMatchObject({ destinationAddressType: "arweave", destinationAddress: native });
  });

  test("the same without /v1, for upper-case currencies, and for the exponent form", async () => {
    const { topUpQuote } = await fixture.topUp(`/top-up/checkout-session/${native}/USD/1e3`);
    expect(topUpQuote).toMatchObject({ currencyType: "usd", paymentAmount: 1000 });
  });

  test("with no-store, because a session is for one client", async () => {
    const { headers } = await fixture.ask(`${checkout}/usd/1000`);
    expect(headers.get("cache-control")).toBe("no-store");
  });

  test("HEAD checks all but opens no session and keeps no quote", async () => {
    const before = await quoteCount(fixture);
    const good = await fixture.ask(`${checkout}/usd/1000`, { method: "HEAD" });
    const bad = await fixture.ask(`${checkout}/usd/1`, { method: "HEAD" });
    expect([good.status, bad.status]).toEqual([200, 400]);
    expect(await quoteCount(fixture)).toBe(before);
  });

  test("a gift with the id that redeems it, which the ledger does not contain", async () => {
    const { giftId, topUpQuote } = await fixture.topUp(
      "/v1/top-up/payment-intent/gift/usd/1000?destinationAddressType=gift&giftMessage=Thank%20you",
    );
    expect(giftId).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(topUpQuote).toMatchObject({
      destinationAddress: "gift",
      destinationAddressType: "gift",
      giftMessage: "Thank you",
    });
    const rows = await fixture.payment.database.read((tx) =>
      tx.all<{ id: string }>("SELECT id FROM gifts WHERE id = ?", giftId ?? ""),
    );
    expect(rows).toEqual([]);
  });
});

describe("GET /top-up needs no login, and", () => {
  test("lets one client open 300 sessions at once, and one more each second", async () => {
    const busy = await openCardFixture();
    const open = async () => (await busy.ask(`/top-up/payment-intent/${native}/usd/1000`)).status;
    for (let opened = 0; opened < 300; opened += 20)
      expect(new Set(await Promise.all(Array.from({ length: 20 }, open)))).toEqual(new Set([200]));
    const rejected = await busy.ask(`${checkout}/usd/1000`);
    expect([rejected.status, rejected.body, rejected.headers.get("retry-after")]).toEqual([
      429,
      "Too Many Requests",
      "1",
    ]);
    expect(await quoteCount(busy)).toBe(300n);
    expect((await busy.ask(`${checkout}/usd/1000`, { method: "HEAD" })).status).toBe(200); // opens none
    busy.payment.clock.advance(1_000);
    expect([await open(), await open()]).toEqual([200, 429]);
    await busy.close();
  }, 60_000);

  test("all clients together have a bounded number of quotes open", async () => {
    const small = await openCardFixture({ openQuotesMax: 2 });
    for (const _ of [1, 2]) await small.topUp(`${checkout}/usd/1000`);
    const rejected = await small.ask(`${checkout}/usd/1000`);
    expect([rejected.status, rejected.body]).toEqual([429, "Too Many Requests"]);
    expect(await quoteCount(small)).toBe(2n);
    small.payment.clock.advance(40 * 60_000);
    await small.watch.look(new AbortController().signal);
    await small.topUp(`${checkout}/usd/1000`);
    await small.close();
  });
});

/** Addresses that a checkout may or may not return to. */
const urls: readonly (readonly [string, boolean, boolean])[] = [
  // address, anywhere, with TOP_UP_RETURN_ORIGINS=https://app.example
  ["https://app.example/done?x=1#y", true, true],
  ["https://pay.example/done", true, true],
  ["https://other.example/", true, false],
  ["https://app.example.evil.example/", true, false],
  ["http://localhost:5173/done", true, false],
  ["http://127.0.0.1:5173/", true, false],
  ["http://[::1]:5173/", true, false],
  ["http://app.example/", false, false],
  ["http://169.254.169.254/latest/meta-data", false, false],
  ["//evil.example", false, false],
  ["javascript:alert(1)", false, false],
  ["data:text/html,x", false, false],
  ["https://app.example@evil.example/", false, false],
  ["https://user:word@app.example/", false, false],
  ["https://@app.example/", false, false],
  ["https://app.example\\@evil.example/", false, false],
  ["https:\\\\evil.example", false, false],
  ["https:/evil.example", false, false],
  ["https://", false, false],
  ["/done", false, false],
  [" https://app.example", false, false],
  ["https://app.example/\n", false, false],
  ["https://app.example/ü", false, false],
  [`https://app.example/${"x".repeat(2_048)}`, false, false],
];

describe("X3: a checkout returns", () => {
  const named = urls.map(
    ([url, ...rest]) => [url.length > 100 ? `${url.length} characters` : url, url, ...rest] as const,
  );
  test.each(named)("to %p (%#)", async (_name, url, anywhere, listed) => {
    for (const [of, isTaken] of [
      [fixture, anywhere],
      [narrow, listed],
    ] as const) {
      for (const name of ["successUrl", "cancelUrl", "returnUrl"]) {
        const { status } = await of.ask(`${checkout}/usd/1000?${name}=${encodeURIComponent(url)}`);
        expect([name, status]).toEqual([name, isTaken ? 200 : 400]);
      }
    }
  });

  test("to the page of this service when nothing else is named, and that page is there", async () => {
    const { paymentSession, topUpQuote } = await narrow.topUp(`${checkout}/usd/1000`);
    const session = narrow.sandbox.fetchCheckout(paymentSession.id);
    const { topUpQuoteId } = topUpQuote;
    expect(session).toMatchObject({
      success_url: `https://pay.example/done?topUpQuoteId=${topUpQuoteId}`,
      cancel_url: `https://pay.example/cancelled?topUpQuoteId=${topUpQuoteId}`,
    });
    for (const path of ["done", "cancelled"]) {
      for (const query of ["", `?topUpQuoteId=${topUpQuoteId}`, "?topUpQuoteId=%3Cb%3E"]) {
        const page = await fetch(`${narrow.server.url}/v1/${path}${query}`);
        expect([page.status, page.headers.get("cache-control")]).toEqual([200, "no-store"]);
        expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
        expect(await page.text()).not.toContain("<b>");
      }
    }
  });

  test("to pages that say what was paid, for whom, and whether the credits are there", async () => {
    const { paymentSession, topUpQuote } = await fixture.topUp(`${checkout}/usd/1000`);
    const quoteId = String(topUpQuote["topUpQuoteId"]);
    const text = async (path: string) => {
      const separator = path.includes("?") ? "&" : "?";
      const page = await fetch(`${fixture.server.url}/v1/${path}${separator}topUpQuoteId=${quoteId}`);
      return { text: await page.text(), refresh: page.headers.get("refresh") };
    };
    expect(await text("cancelled")).toEqual({
      text: expect.stringContaining("<h1>Nothing was paid</h1>"),
      refresh: null,
    });
    expect((await text("cancelled")).text).toContain("<code>cairn topup</code>");
    const waiting = await text("done");
    const again = (seconds: number, reload: number) => `${seconds}; url=?topUpQuoteId=${quoteId}&reload=${reload}`;
    expect(waiting).toEqual({ text: expect.stringContaining("Waiting for your payment"), refresh: again(2, 1) });
    expect((await text("done?reload=29")).refresh).toBe(again(2, 30));
    expect((await text("done?reload=30")).refresh).toBe(again(10, 31));
    expect((await text("done?reload=x")).refresh).toBe(again(2, 1));
    // After six minutes a person decides.
    expect(await text("done?reload=60")).toEqual({
      text: expect.stringContaining(`<a href="?topUpQuoteId=${quoteId}&amp;reload=0">Look again</a>`),
      refresh: null,
    });
    fixture.sandbox.payCheckout(paymentSession.id, "4242 4242 4242 4242");
    for (const path of ["done", "cancelled"]) {
      const paid = await eventually(
        () => text(path),
        (page) => page.text.includes("<h1>Paid</h1>"),
      );
      expect(paid.refresh).toBeNull();
      for (const shown of ["10.00 USD", "1.094285714286", native, "The credits are on the account."])
        expect(paid.text).toContain(shown);
    }
  });

  test("where the request says", async () => {
    const query = new URLSearchParams({
      successUrl: "https://app.example/ok?session={CHECKOUT_SESSION_ID}",
      cancelUrl: "https://app.example/no",
    });
    const { paymentSession } = await fixture.topUp(`${checkout}/usd/1000?${query}`);
    expect(fixture.sandbox.fetchCheckout(paymentSession.id)).toMatchObject({
      success_url: "https://app.example/ok?session={CHECKOUT_SESSION_ID}",
      cancel_url: "https://app.example/no",
    });
  });
});

test("the status of a quote is shown only to clients that know its id", async () => {
  const { topUpQuote, paymentSession } = await fixture.topUp(`${checkout}/usd/1000`);
  const { topUpQuoteId: quoteId = "", quoteExpirationDate, winstonCreditAmount } = topUpQuote;
  const path = `/v1/top-up-quote/${quoteId}`;
  const open = { status: "open", wincCredited: "0", wincTakenBack: "0", quoteExpirationDate };
  expect((await fixture.ask(path)).body).toEqual({ topUpQuoteId: quoteId, ...open });
  const body = new URLSearchParams({ cardNumber: "4242424242424242" });
  await fetch(paymentSession.url, { method: "POST", body, redirect: "manual" });
  await fixture.watch.look(AbortSignal.timeout(20_000));
  const paid = await eventually(
    () => fixture.ask(path),
    (response) => response.body.status !== "open",
  );
  expect(paid.body).toMatchObject({ status: "paid", wincCredited: winstonCreditAmount });
  for (const id of ["0".repeat(32), quoteId.slice(1), "%00", `${quoteId}'`])
    expect(await fixture.ask(`/v1/top-up-quote/${id}`)).toMatchObject({ status: 404, body: "Not Found" });
});
