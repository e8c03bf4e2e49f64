/**
 * Prices over HTTP: responses, rejections word by word, and caching.
 * @module
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { sandboxPrices } from "../../../src/dev/sandbox/price-feed.ts";
import { Failure } from "../../../src/failures.ts";
import { createPromoGuard, type FailedAttemptGuard } from "../../../src/http/payment/client-guards.ts";
import { createPriceRoutes } from "../../../src/http/payment/price-routes.ts";
import { defaultRules, type PriceRules } from "../../../src/payment/prices/price-rules.ts";
import { type FeedPair, keyOf } from "../../../src/payment/prices/price-sources.ts";
import { createPrices } from "../../../src/payment/prices/prices.ts";
import { type Rational, readDecimal } from "../../../src/payment/prices/rational.ts";
import { createPromos, type Promos } from "../../../src/payment/top-ups/promo.ts";
import { promoRule, uploadRule } from "../../payment/prices/price-fixture.ts";
import { createTestClock, openTestPayment, type TestPayment, testAddress } from "../../support/payment.ts";
import { openPaymentServer, type PaymentServer } from "../../support/payment-server.ts";
import { ethereumWallet, signedHeaders } from "../../support/signed-headers.ts";

const gibibyte = 2 ** 30;
const winc10GiB = 10n * BigInt(gibibyte);
const address = testAddress("buyer");
const wallet = ethereumWallet(new Uint8Array(32).fill(0x11));

const rules: PriceRules = {
  ...defaultRules,
  uploads: [uploadRule("0.5", { name: "Half", description: "Half the price.", sizeMax: 100n })],
  promos: [
    promoRule("SPRING", "0.8", { name: "Spring", description: "A fifth less." }),
    promoRule("TENTH", "0.9"),
    promoRule("DEAR", "0.5", { usdCentsMin: 5_000n }),
  ],
};

/** Services that are down. */
let outage: "feed" | "network" | undefined;
let guard: FailedAttemptGuard;
const clock = createTestClock();
let payment: TestPayment;
let promos: Promos;
let server: PaymentServer;

beforeAll(async () => {
  payment = await openTestPayment();
  promos = createPromos({
    database: payment.database,
    rules: rules.promos,
    hasPaid: async () => false,
    clock: clock.now,
  });
  const prices = createPrices({
    rules,
    promos,
    clock: clock.now,
    network: {
      price: async () => {
        if (outage === "network") throw new Failure("pricing_oracle_unavailable");
        return winc10GiB;
      },
    },
    feed: {
      prices: async (pairs) => {
        if (outage === "feed") throw new Failure("fiat_oracle_unavailable");
        return pairs.map(priceOf);
      },
    },
  });
  const promoGuard: FailedAttemptGuard = { guarded: (request, work) => guard.guarded(request, work) };
  server = openPaymentServer(() => [createPriceRoutes({ prices, promoGuard })]);
});

beforeEach(() => {
  outage = undefined;
  guard = createPromoGuard(clock.now, 1);
});

afterAll(async () => {
  await server.close();
  await payment.close();
});

const ask = (path: string, init: RequestInit = {}) => fetch(`${server.url}${path}`, init);

const fee = (adjustmentAmount: string) => ({
  name: "Turbo Infrastructure Fee",
  description: "Inclusive usage fee on all payments to cover infrastructure costs and payment provider fees.",
  operatorMagnitude: "0.766",
  operator: "multiply",
  adjustmentAmount,
});

const promoRow = (promoCode: string, operatorMagnitude: string, adjustmentAmount: string) => ({
  name: "rule",
  description: "A rule.",
  ...(promoCode === "SPRING" ? { name: "Spring", description: "A fifth less." } : {}),
  operatorMagnitude,
  operator: "multiply",
  adjustmentAmount,
  promoCode,
});

const half = {
  name: "Half",
  description: "Half the price.",
  operatorMagnitude: "0.5",
  operator: "multiply",
  adjustmentAmount: "-50",
};

const fiat = (winc: string, amount: number, taken: string) => ({
  winc,
  adjustments: [],
  fees: [fee(taken)],
  actualPaymentAmount: amount,
  quotedPaymentAmount: amount,
});

const token = (winc: string, worth: number | string, taken: string) => ({
  winc,
  adjustments: [],
  fees: [fee(taken)],
  actualPaymentAmount: worth,
  quotedPaymentAmount: worth,
});

/** Path, and the whole body. An AR costs 7 dollars, 1050 yen; ETH 2800 dollars. */
const responses: readonly (readonly [string, unknown])[] = [
  ["/price/bytes/0", { winc: "0", adjustments: [{ ...half, adjustmentAmount: "0" }] }],
  ["/price/bytes/100", { winc: "50", adjustments: [half] }],
  ["/price/bytes/101", { winc: "101", adjustments: [] }],
  ["/price/101", { winc: "101", adjustments: [] }],
  ["/price/bytes/0000101", { winc: "101", adjustments: [] }],
  ["/price/bytes/9007199254740991", { winc: "9007199254740991", adjustments: [] }],
  ["/price/usd/1000", fiat("1094285714286", 1_000, "-234")],
  ["/price/fiat/1000", fiat("1094285714286", 1_000, "-234")],
  ["/price/USD/1e3", fiat("1094285714286", 1_000, "-234")],
  ["/price/jpy/1000", fiat("729523809524", 1_000, "-234")],
  ["/price/usd/0", fiat("0", 0, "0")],
  ["/price/usd/1000?destinationAddress=placeholder&", fiat("1094285714286", 1_000, "-234")],
  ["/price/usd/1000?promoCode=", fiat("1094285714286", 1_000, "-234")],
  ["/price/arweave/1000000000000", token("766000000000", 1_000_000_000_000, "-234000000000")],
  ["/price/native/1000000000000", token("766000000000", 1_000_000_000_000, "-234000000000")],
  ["/price/ethereum/1e+21", token("306400000000000000", "400000000000000000", "-93600000000000000")],
  ["/price/ethereum/1e%2B21", token("306400000000000000", "400000000000000000", "-93600000000000000")],
  ["/price/pol/1000000000000000000", token("38300000000", 50_000_000_000, "-11700000000")],
  ["/price/base-usdc/7000000", token("766000000000", 1_000_000_000_000, "-234000000000")],
  ["/price/ario/1000000", { ...token("1500000000", 1_500_000_000, ""), fees: [] }],
  ["/rates/usd", { currency: "usd", rate: 7 }],
  ["/rates/eur", { currency: "eur", rate: 6.3 }],
  ["/rates/JPY", { currency: "jpy", rate: 1_050 }],
];

describe("prices", () => {
  test.each(responses)("GET %s", async (path, body) => {
    for (const prefix of ["", "/v1"]) {
      const response = await ask(`${prefix}${path}`);
      expect([response.status, await response.json()]).toEqual([200, body]);
      expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
      expect(response.headers.get("cache-control")).toBe("public, max-age=60");
    }
  });

  test("GET /rates is the price of a gibibyte with the fee in it, digit by digit", async () => {
    const response = await ask("/v1/rates");
    expect(response.headers.get("cache-control")).toBe("public, max-age=60");
    const text = await response.text();
    // For each currency 2^30 × its price of an AR / 0.766, rounded down to a winc's worth.
    const fiatText =
      '"aud":0.014718393148,"brl":0.053967441545,"cad":0.013737166938,"eur":0.008831035889,"gbp":0.007359196574,' +
      '"hkd":0.076535644373,"inr":0.824230016334,"jpy":1.471839314882,"sgd":0.012755940728,"usd":0.009812262099';
    expect(text).toBe(`{"winc":${gibibyte},"adjustments":[],"fiat":{${fiatText}}}`);
  });

  test("GET /currencies has limits for ten currencies", async () => {
    const response = await ask("/v1/currencies");
    expect(response.headers.get("cache-control")).toBe("public, max-age=3600");
    const body = await response.json();
    expect(body.supportedCurrencies.toSorted()).toEqual(
      ["aud", "brl", "cad", "eur", "gbp", "hkd", "inr", "jpy", "sgd", "usd"].toSorted(),
    );
    expect(Object.keys(body.limits)).toEqual(body.supportedCurrencies);
    expect(body.limits.usd).toEqual({
      minimumPaymentAmount: 500,
      maximumPaymentAmount: 1_000_000,
      suggestedPaymentAmounts: [2_500, 5_000, 10_000],
      stripeMinimumPaymentAmount: 50,
      zeroDecimalCurrency: false,
    });
    expect(body.limits.jpy).toMatchObject({ minimumPaymentAmount: 750, zeroDecimalCurrency: true });
  });

  test.each(["/price/bytes/1", "/price/usd/1000", "/rates", "/rates/usd", "/currencies"])(
    "HEAD %s has the headers of GET",
    async (path) => {
      const [get, head] = await Promise.all([ask(path), ask(path, { method: "HEAD" })]);
      expect(head.status).toBe(200);
      for (const name of ["content-type", "cache-control", "content-length"])
        expect([name, head.headers.get(name)]).toEqual([name, get.headers.get(name)]);
      expect(await head.text()).toBe("");
      await get.text();
    },
  );

  test("the response to a signed request is not cached", async () => {
    const response = await ask("/price/usd/1000", { headers: signedHeaders(wallet, "nonce") });
    expect(response.status).toBe(200);
    expect(response.headers.get("cache-control")).toBe("no-store");
  });
});

const amountText = (text: string) =>
  `Payment Amount is Invalid: The provided payment amount (${text}) is invalid; ` +
  "it must be a positive non-decimal integer!";
const smallText =
  "Payment Amount is Invalid: Crypto payment amount is too small! Token value must convert to at least one winc";
const unnamedText = "Promo codes must be applied to a specific `destinationAddress` or to the request signer";

const rejections: readonly (readonly [string, number, string])[] = [
  ["/price/bytes/-1", 400, "Invalid byte count"],
  ["/price/bytes/1e3", 400, "Invalid byte count"],
  ["/price/bytes/1.5", 400, "Invalid byte count"],
  ["/price/bytes/abc", 400, "Invalid byte count"],
  ["/price/bytes/9007199254740992", 400, "Invalid byte count"],
  ["/price/abc", 400, "Invalid byte count"],
  ["/price/usd/1.5", 400, amountText("1.5")],
  ["/price/usd/-100", 400, amountText("-100")],
  ["/price/usd/abc", 400, amountText("abc")],
  ["/price/usd/NaN", 400, amountText("NaN")],
  ["/price/fiat/9007199254740992", 400, amountText("9007199254740992")],
  [`/price/usd/${"9".repeat(1_000)}`, 400, amountText("9".repeat(64))],
  ["/price/arweave/1.5", 400, amountText("1.5")],
  ["/price/arweave/0", 400, smallText],
  ["/price/ethereum/1", 400, smallText],
  ["/price/xyz/100", 400, "The currency type 'xyz' is currently not supported by this API!"],
  ["/rates/xyz", 404, "Invalid currency"],
  ["/price/usd/1000?promoCode=SPRING", 400, unnamedText],
  ["/price/usd/1000?promoCode=SPRING&destinationAddress=placeholder", 400, unnamedText],
  [`/price/usd/1000?promoCode=NOBODYS&destinationAddress=${address}`, 400, "No promo code found with code 'NOBODYS'"],
  [
    `/price/usd/4999?promoCode=DEAR&destinationAddress=${address}`,
    400,
    "The promo code 'DEAR' can only used on payments above '5000'",
  ],
];

describe("rejections", () => {
  test.each(rejections)("GET %.60s is %p", async (path, status, message) => {
    const response = await ask(`/v1${path}`);
    expect([response.status, await response.json()]).toEqual([status, message]);
  });

  test("without a feed every price in money is 503, and those of bytes and AR are not", async () => {
    outage = "feed";
    for (const path of ["/price/usd/1000", "/price/ethereum/1e18", "/rates", "/rates/usd", "/currencies"]) {
      const response = await ask(`/v1${path}`);
      expect([path, response.status, await response.json()]).toEqual([path, 503, "Fiat Oracle Unavailable"]);
      expect(response.headers.get("retry-after")).not.toBeNull();
      expect(response.headers.get("cache-control")).toBe("no-store");
    }
    for (const path of ["/price/bytes/1000", "/price/arweave/1000"]) expect((await ask(path)).status).toBe(200);
  });

  test("without the network's price every price of bytes is 503", async () => {
    outage = "network";
    for (const path of ["/price/bytes/1000", "/price/1000", "/rates"]) {
      const response = await ask(`/v1${path}`);
      expect([path, response.status, await response.json()]).toEqual([path, 503, "Pricing Oracle Unavailable"]);
    }
    expect((await ask("/price/usd/1000")).status).toBe(200);
  });

  test("a caller's own fault comes before an outage", async () => {
    outage = "feed";
    expect((await ask("/rates/xyz")).status).toBe(404);
    expect((await ask("/price/usd/abc")).status).toBe(400);
  });
});

describe("promo codes", () => {
  const discounted = {
    winc: "1094285714286",
    adjustments: [promoRow("SPRING", "0.8", "-200"), promoRow("TENTH", "0.9", "-80")],
    fees: [fee("-234")],
    actualPaymentAmount: 720,
    quotedPaymentAmount: 1_000,
  };

  test.each([
    `promoCode=SPRING,TENTH&destinationAddress=${address}`,
    `destinationAddress=${address}&promoCode=spring%2Ctenth`,
    `destinationAddress=${address}&promoCode=SPRING&promoCode=,TENTH,,SPRING`,
  ])("?%s lower what is charged", async (query) => {
    const response = await ask(`/v1/price/usd/1000?${query}`);
    expect([response.status, await response.json()]).toEqual([200, discounted]);
    expect(response.headers.get("cache-control")).toBe("no-store");
  });

  test("are for the signer where no address is named", async () => {
    const path = "/v1/price/usd/1000?promoCode=SPRING,TENTH";
    const response = await ask(path, { headers: signedHeaders(wallet, "a nonce") });
    expect([response.status, await response.json()]).toEqual([200, discounted]);
    const forged = { ...signedHeaders(wallet, "a nonce"), "x-nonce": "another" };
    const rejected = await ask(path, { headers: forged });
    expect([rejected.status, await rejected.json()]).toEqual([403, "Invalid signature or missing required headers"]);
    const named = await ask(`${path}&destinationAddress=${address}`, { headers: forged });
    expect(named.status).toBe(200); // the address takes precedence over the signer
  });

  test("are used up by paying only, and by the account that paid only, however it is spelled", async () => {
    const path = (of: string) => `/v1/price/usd/1000?promoCode=SPRING&destinationAddress=${of}`;
    for (let round = 0; round < 3; round += 1) expect((await ask(path(wallet.address))).status).toBe(200);
    const payer = testAddress("payer");
    await payment.database.write((tx) =>
      promos.count(tx, { address: payer, codes: ["SPRING"], paymentId: "p", at: 0n }),
    );
    const rejected = await ask(path(payer));
    expect([rejected.status, await rejected.json()]).toEqual([
      400,
      `The user '${payer}' is ineligible for the promo code 'SPRING'`,
    ]);
    expect((await ask(path(wallet.address.toLowerCase()))).status).toBe(200);
  });

  test("L5: cannot be guessed for long; who has guessed too often waits for codes, not for prices", async () => {
    const guess = async (code: string) =>
      (await ask(`/v1/price/usd/1000?promoCode=${code}&destinationAddress=${address}`)).status;
    const statuses: number[] = [];
    for (let round = 0; round < 200; round += 1) statuses.push(await guess(`GUESS${round}`));
    expect(statuses.slice(0, 20)).toEqual(Array(20).fill(400));
    expect(statuses.slice(20)).toEqual(Array(180).fill(429));
    expect(await guess("SPRING")).toBe(429); // no word on whether it would have been right
    expect((await ask("/v1/price/usd/1000")).status).toBe(200);
    clock.advance(20_000);
    expect(await guess("SPRING")).toBe(200);
    expect(await guess("GUESS")).toBe(400);
    expect(await guess("SPRING")).toBe(429);
  });

  test("that are right are no guesses", async () => {
    for (let round = 0; round < 50; round += 1)
      expect((await ask(`/price/usd/1000?promoCode=spring&destinationAddress=${address}`)).status).toBe(200);
  });
});

function priceOf(pair: FeedPair): Rational {
  const price = readDecimal(sandboxPrices[pair.coin]?.[pair.currency] ?? "");
  if (price === undefined) throw new Error(`the sandbox has no price of ${keyOf(pair)}`);
  return price;
}
