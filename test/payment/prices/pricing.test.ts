/**
 * Prices against worked examples of docs/reference/payment.md.
 * @module
 */
import { describe, expect, test } from "bun:test";
import type { Token } from "../../../src/payment/addresses.ts";
import { defaultRules, type FeeRule } from "../../../src/payment/prices/price-rules.ts";
import { keyOf } from "../../../src/payment/prices/price-sources.ts";
import { feedPairsOf } from "../../../src/payment/prices/prices.ts";
import { testAddress } from "../../support/payment.ts";
import { arAt, failureOf, feeRule, pricesIn, priceTime, promoRule, uploadRule } from "./price-fixture.ts";

const signal = new AbortController().signal;
const buyer = testAddress("buyer");

describe("bytes", () => {
  const gibibyte = 2n ** 30n;
  const rows: readonly (readonly [string, bigint, bigint, bigint])[] = [
    ["nothing costs nothing", 1_000n, 0n, 0n],
    ["a part of a winc is a whole one", 1n, 1n, 1n],
    ["the tenth part is exact", 857_922_282_170n, gibibyte, 85_792_228_217n],
    ["a rest is rounded up", 857_922_282_171n, gibibyte, 85_792_228_218n],
    ["all of it is exact", 857_922_282_171n, 10n * gibibyte, 857_922_282_171n],
    ["the largest count is exact", 10n ** 19n, 2n ** 53n - 1n, 8_388_607_999_999_999_068_677_426n],
  ];
  test.each(rows)("%s", async (_name, network, size, winc) => {
    const price = await pricesIn({ network }).bytes(size, signal);
    expect<bigint>(price.winc).toBe(winc);
    expect<bigint>(price.networkWinc).toBe(winc);
    expect(price.adjustments).toEqual([]);
  });

  test("adjustments apply in order, rounded down, up to their size and within their time", async () => {
    const uploads = [
      uploadRule("0.55", { name: "a" }),
      uploadRule("0.5", { name: "too large for it", sizeMax: 999n }),
      uploadRule("0.5", { name: "ended", endsAt: BigInt(priceTime) }),
      uploadRule("0.5", { name: "to come", startsAt: BigInt(priceTime) + 1n }),
      uploadRule("-3", { name: "b", operator: "add" }),
      uploadRule("0.999", {
        name: "c",
        startsAt: BigInt(priceTime),
        endsAt: BigInt(priceTime) + 1n,
        sizeMax: 1_000n,
      }),
    ];
    const price = await pricesIn({ network: 10n * gibibyte, rules: { uploads } }).bytes(1_000n, signal);
    expect(price.adjustments.map(({ name, adjustmentAmount }) => [name, adjustmentAmount])).toEqual([
      ["a", -450n],
      ["b", -3n],
      ["c", -1n], // 547 × 0.999 = 546.453
    ]);
    expect<bigint>(price.winc).toBe(546n);
    expect<bigint>(price.networkWinc).toBe(1_000n);
  });

  test("a price of 0 is not adjusted further", async () => {
    const uploads = [uploadRule("-5000", { operator: "add" }), uploadRule("7", { operator: "add" })];
    const price = await pricesIn({ network: 10n * gibibyte, rules: { uploads } }).bytes(1_000n, signal);
    expect<bigint>(price.winc).toBe(0n);
    expect(price.adjustments.map(({ adjustmentAmount }) => adjustmentAmount)).toEqual([-1_000n]);
  });
});

describe("fiat money", () => {
  test("one dollar at 7.02 dollars for an AR buys 109686609687 winc", async () => {
    const price = await pricesIn({ feed: arAt("7.02") }).fiat("usd", "100", {}, signal);
    expect(price).toEqual({
      winc: price.winc,
      adjustments: [],
      fees: [
        {
          name: "Turbo Infrastructure Fee",
          description: "Inclusive usage fee on all payments to cover infrastructure costs and payment provider fees.",
          operator: "multiply",
          operatorMagnitude: "0.766",
          adjustmentAmount: -23n, // 100 × 0.766 is rounded to 77
        },
      ],
      actualPaymentAmount: 100n,
      quotedPaymentAmount: 100n,
    });
    expect<bigint>(price.winc).toBe(109_686_609_687n);
  });

  const rows: readonly (readonly [string, string, string, bigint])[] = [
    ["usd", "0", "7.02", 0n],
    ["usd", "1000", "7.02", 1_091_168_091_168n], // 766 cents
    ["usd", "9007199254740991", "7.02", 9_828_368_417_566_380_341_880_342n],
    ["jpy", "1000", "1050", 729_523_809_524n], // no smaller unit: 766 yen
    ["jpy", "1", "1050", 952_380_952n], // 0.766 is rounded to 1
  ];
  test.each(rows)("of %s, %s at %s buys %p winc", async (currency, amount, price, winc) => {
    const prices = pricesIn({ feed: { ...arAt("7.02"), [`arweave ${currency}`]: price } });
    expect<bigint>((await prices.fiat(currency, amount, {}, signal)).winc).toBe(winc);
  });

  test("promo codes lower the charge, one after the other, and not the credits", async () => {
    const promos = [promoRule("A", "0.8"), promoRule("B", "0.33")];
    const prices = pricesIn({ feed: arAt("7.02"), rules: { promos } });
    const plain = await prices.fiat("usd", "999", {}, signal);
    const price = await prices.fiat("usd", "999", { address: buyer, promoCodes: ["A", "B"] }, signal);
    expect(price.winc).toBe(plain.winc);
    expect(price.fees).toEqual(plain.fees);
    expect(price.quotedPaymentAmount).toBe(999n);
    expect(price.actualPaymentAmount).toBe(264n); // 999 × 0.8 = 799.2; 799 × 0.33 = 263.67
    expect(price.adjustments.map(({ promoCode, adjustmentAmount }) => [promoCode, adjustmentAmount])).toEqual([
      ["A", -200n],
      ["B", -535n],
    ]);
  });

  test("a code's largest discount is in dollars, in every currency", async () => {
    const promos = [promoRule("HALF", "0.5", { discountUsdCentsMax: 1_000n })];
    const feed = { "arweave usd": "7", "arweave jpy": "1050", "arweave eur": "6.3" };
    const prices = pricesIn({ feed, rules: { promos } });
    const ask = async (currency: string, amount: string) =>
      (await prices.fiat(currency, amount, { address: buyer, promoCodes: ["half"] }, signal)).actualPaymentAmount;
    expect(await ask("usd", "1500")).toBe(750n);
    expect(await ask("usd", "2000")).toBe(1_000n);
    expect(await ask("usd", "5000")).toBe(4_000n);
    expect(await ask("eur", "5000")).toBe(4_100n); // 10 dollars are 9 euros
    expect(await ask("jpy", "10000")).toBe(8_500n); // and 1500 yen
  });

  test("a code's least payment is in dollars, in every currency", async () => {
    const promos = [promoRule("TEN", "0.5", { usdCentsMin: 1_000n })];
    const feed = { "arweave usd": "7", "arweave jpy": "1050", "arweave eur": "6.3" };
    const prices = pricesIn({ feed, rules: { promos } });
    const ask = (currency: string, amount: string) =>
      prices.fiat(currency, amount, { address: buyer, promoCodes: ["TEN"] }, signal);
    for (const [currency, amount] of [
      ["usd", 1_000],
      ["eur", 900],
      ["jpy", 1_500],
    ] as const) {
      expect((await ask(currency, `${amount}`)).adjustments).toHaveLength(1);
      const rejection = await failureOf(ask(currency, `${amount - 1}`));
      expect([rejection.code, rejection.context["reason"]]).toEqual([
        "payment_rejected",
        "The promo code 'TEN' can only used on payments above '1000'",
      ]);
    }
  });

  const rejections: readonly (readonly [string, string, readonly string[], string, string])[] = [
    ["xyz", "100", [], "payment_rejected", "The currency type 'xyz' is currently not supported by this API!"],
    ["usd", "1.5", [], "price_amount_invalid", invalid("1.5")],
    ["usd", "-1", [], "price_amount_invalid", invalid("-1")],
    ["usd", "abc", [], "price_amount_invalid", invalid("abc")],
    ["usd", "9007199254740992", [], "price_amount_invalid", invalid("9007199254740992")],
    [
      "xyz",
      "abc",
      ["A"],
      "payment_rejected",
      "Promo codes must be applied to a specific `destinationAddress` or to the request signer",
    ],
  ];
  test.each(rejections)(
    "of %s, %p with codes %p is rejected as %s",
    async (currency, amount, promoCodes, code, reason) => {
      const failure = await failureOf(pricesIn({}).fiat(currency, amount, { promoCodes }, signal));
      expect([failure.code, failure.context["reason"]]).toEqual([code as "payment_rejected", reason]);
    },
  );
});

describe("tokens", () => {
  const feed = {
    ...arAt("7.02"),
    "ethereum usd": "2800",
    "solana usd": "140.25",
    "kyve-network usd": "0.0137",
    "ar-io-network usd": "0.0105",
    "usd-coin usd": "1",
  };
  const rows: readonly (readonly [Token, bigint, bigint, bigint])[] = [
    ["native", 10n ** 12n, 10n ** 12n, 766_000_000_000n],
    ["native", 1n, 1n, 0n],
    ["ethereum", 10n ** 21n, 398_860_398_860_398_860n, 305_527_065_527_065_526n],
    ["solana", 1n, 19_978n, 15_303n],
    ["kyve", 10n ** 6n, 1_951_566_951n, 975_783_475n],
    ["ario", 10n ** 6n, 1_495_726_495n, 1_495_726_495n],
    ["base-usdc", 1_000n, 142_450_142n, 109_116_808n],
  ];
  test.each(rows)("of %s, %p are worth %p winc and buy %p", async (token, amount, worth, winc) => {
    const price = await pricesIn({ feed }).token(token, amount, signal);
    expect<bigint>(price.winc).toBe(winc);
    expect([price.actualPaymentAmount, price.quotedPaymentAmount]).toEqual([worth, worth]);
    expect(price.adjustments).toEqual([]);
    const taken = price.fees.reduce((sum, fee) => sum + fee.adjustmentAmount, 0n);
    expect(worth + taken).toBe(winc);
  });

  test("the value of AR does not depend on the feed", async () =>
    expect<bigint>((await pricesIn({ feed: {} }).token("native", 1_000n, signal)).winc).toBe(766n));

  test("an amount below one winc is rejected", async () => {
    for (const [token, amount] of [
      ["native", 0n],
      ["ethereum", 1n],
    ] as const) {
      const failure = await failureOf(pricesIn({ feed }).token(token, amount, signal));
      expect([failure.code, failure.context["reason"]]).toEqual([
        "price_amount_invalid",
        "Crypto payment amount is too small! Token value must convert to at least one winc",
      ]);
    }
  });
});

describe("rates", () => {
  const network = 857_922_282_170n;
  const feed = Object.fromEntries([...defaultRules.currencies.keys()].map((each) => [`arweave ${each}`, "7.02"]));

  test("the price of a gibibyte without a fee, and with one of a fifth", async () => {
    const rate = async (fees: readonly FeeRule[]) =>
      (await pricesIn({ network, feed, rules: { fees } }).rates(signal)).fiat.get("usd");
    expect(await rate([])).toBe("0.602261442083");
    expect(await rate([feeRule("0.8")])).toBe("0.752826802604");
  });

  test("has ten currencies, the price in winc, and adjustments", async () => {
    const uploads = [uploadRule("0.5")];
    const rates = await pricesIn({ network, feed, rules: { uploads } }).rates(signal);
    expect([...rates.fiat.keys()].toSorted()).toEqual(
      ["aud", "brl", "cad", "eur", "gbp", "hkd", "inr", "jpy", "sgd", "usd"].toSorted(),
    );
    expect<bigint>(rates.winc).toBe(42_896_114_108n);
    expect(rates.adjustments).toHaveLength(1);
  });

  test("of one AR is the feed's price, digit by digit", async () => {
    const prices = pricesIn({ feed: { "arweave usd": "7.020000000000000001", "arweave jpy": "1.05e3" } });
    expect(await prices.rate("usd", signal)).toBe("7.020000000000000001");
    expect(await prices.rate("jpy", signal)).toBe("1050");
    expect((await failureOf(prices.rate("xyz", signal))).code).toBe("invalid_currency");
    expect((await failureOf(prices.rate("eur", signal))).code).toBe("fiat_oracle_unavailable");
  });
});

describe("limits", () => {
  const usual = {
    aud: "10.5",
    brl: "38.5",
    cad: "9.8",
    eur: "6.3",
    gbp: "5.25",
    hkd: "54.6",
    inr: "588",
    jpy: "1050",
    sgd: "9.1",
    usd: "7",
  };
  const limitsAt = async (changed: Readonly<Record<string, string>> = {}) => {
    const feed = Object.fromEntries(
      Object.entries({ ...usual, ...changed }).map(([currency, price]) => [`arweave ${currency}`, price]),
    );
    const limits = await pricesIn({ feed }).limits(signal);
    return Object.fromEntries(
      [...limits].map(([currency, { minimum, maximum, suggested }]) => [currency, [minimum, maximum, suggested]]),
    );
  };

  const rows: readonly (readonly [string, string, bigint, bigint, readonly bigint[]])[] = [
    ["usd", "7", 500n, 1_000_000n, [2_500n, 5_000n, 10_000n]],
    // Ten percent off is about the same.
    ["eur", "6.3", 500n, 1_000_000n, [2_500n, 5_000n, 10_000n]],
    ["eur", "7.7", 500n, 1_000_000n, [2_500n, 5_000n, 10_000n]],
    // A little more is not: 555 becomes 560. 1110000 becomes 1100000, which is about the same still.
    ["eur", "7.77", 560n, 1_000_000n, [2_500n, 5_000n, 10_000n]],
    ["eur", "8.4", 600n, 1_200_000n, [2_500n, 5_000n, 10_000n]],
    // Suggestions must be within.
    ["gbp", "70", 5_000n, 10_000_000n, [5_000n, 10_000n, 20_000n]],
    ["aud", "10.5", 750n, 1_500_000n, [2_500n, 7_500n, 15_000n]],
    // Yen have no hundredths.
    ["jpy", "1050", 750n, 1_500_000n, [3_500n, 6_500n, 15_000n]],
    ["jpy", "2100", 1_500n, 3_000_000n, [3_500n, 6_500n, 15_000n]],
    // The card provider takes eight digits.
    ["inr", "5880", 420_000n, 99_000_000n, [420_000n, 840_000n, 1_680_000n]],
    ["inr", "0.00007", 1n, 10n, [1n, 2n, 4n]],
  ];
  test.each(rows)("of %s at %s are %p to %p", async (currency, price, minimum, maximum, suggested) =>
    expect((await limitsAt({ [currency]: price }))[currency]).toEqual([minimum, maximum, suggested]),
  );

  test("apply to a top-up, at both ends", async () => {
    const prices = pricesIn({
      feed: Object.fromEntries(Object.entries(usual).map(([c, p]) => [`arweave ${c}`, p])),
    });
    const ask = (amount: string) => prices.topUp("usd", amount, {}, signal);
    expect((await ask("500")).quotedPaymentAmount).toBe(500n);
    expect((await ask("1000000")).quotedPaymentAmount).toBe(1_000_000n);
    const reasons = await Promise.all(["499", "1000001", "1.5"].map(async (each) => await failureOf(ask(each))));
    expect(reasons.map(({ code, context }) => [code, context["reason"]])).toEqual([
      [
        "top_up_amount_invalid",
        'The provided payment amount (499) is too small for the currency type "usd"; it must be above 500!',
      ],
      [
        "top_up_amount_invalid",
        'The provided payment amount (1000001) is too large for the currency type "usd"; ' +
          "it must be below or equal to 1000000!",
      ],
      ["top_up_amount_invalid", invalid("1.5")],
    ]);
  });

  test("a discounted amount must reach the card provider's minimum", async () => {
    const feed = Object.fromEntries(Object.entries(usual).map(([c, p]) => [`arweave ${c}`, p]));
    const prices = pricesIn({ feed, rules: { promos: [promoRule("ALMOST", "0.09")] } });
    const ask = (amount: string) => prices.topUp("usd", amount, { promoCodes: ["ALMOST"], address: buyer }, signal);
    expect((await ask("556")).actualPaymentAmount).toBe(50n);
    expect((await failureOf(ask("500"))).context["reason"]).toBe(
      'The provided payment amount (45) is too small for the currency type "usd"; it must be above 50!',
    );
  });
});

test("the feed is requested for every needed pair, once", () => {
  const keys = feedPairsOf(defaultRules).map(keyOf);
  expect(new Set(keys).size).toBe(keys.length);
  expect(keys).toHaveLength(10 + 7);
  expect(keys).toContain("arweave jpy");
  expect(keys).toContain("usd-coin usd");
});

function invalid(text: string): string {
  return `The provided payment amount (${text}) is invalid; it must be a positive non-decimal integer!`;
}
