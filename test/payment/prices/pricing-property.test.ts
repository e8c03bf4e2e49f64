/**
 * Prices against the oracle, for chance questions; RUNS sets how many of each kind.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { Failure } from "../../../src/failures.ts";
import { type Token, tokens } from "../../../src/payment/addresses.ts";
import { defaultRules } from "../../../src/payment/prices/price-rules.ts";
import type { Adjustment, Prices } from "../../../src/payment/prices/price-types.ts";
import { testAddress } from "../../support/payment.ts";
import { createRandom, type Random } from "../../support/random.ts";
import { newSeed } from "../../support/seed.ts";
import { arAt, feeRule, pricesIn, promoRule, ruleOf, uploadRule } from "./price-fixture.ts";
import { bytesToWinc, fiatToWinc, rateOf, tokenToWinc, type WrittenRule } from "./price-oracle.ts";

const { RUNS = "2000" } = process.env;
const runs = Number(RUNS);

const signal = new AbortController().signal;
const buyer = testAddress("buyer");

describe("random requests agree with the oracle to the last digit", () => {
  const seed = newSeed();
  const random = createRandom(seed);
  const times = { timeout: 3_600_000 };

  test(
    `${runs} about bytes`,
    async () => {
      for (let run = 0; run < runs; run += 1) {
        const [network, size] = [amountBelow(random, 20n) + 1n, amountBelow(random, 16n)];
        const rules = listOf(random, 4, () => ({
          ...writtenRule(random, "winc"),
          sizeMax: random.chance(0.5) ? 0n : amountBelow(random, 16n),
        }));
        const uploads = rules.map((rule) => uploadRule(rule.magnitude, { ...rule }));
        const price = await pricesIn({ network, rules: { uploads } }).bytes(size, signal);
        const expected = bytesToWinc(network, size, rules);
        expect<unknown>({ run, winc: price.winc, steps: amountsOf(price.adjustments) }).toEqual({
          run,
          ...expected,
        });
      }
    },
    times,
  );

  test(
    `${runs} about fiat money`,
    async () => {
      for (let run = 0; run < runs; run += 1) {
        const isZeroDecimal = random.chance(0.3);
        const currency = isZeroDecimal ? "jpy" : random.pick(["usd", "eur", "inr"]);
        const usd = priceText(random);
        const here = currency === "usd" ? usd : priceText(random);
        const amount = amountBelow(random, 15n);
        const codes = listOf(random, 3, () => lowering(random));
        const own = listOf(random, 2, () => lowering(random));
        const fees = listOf(random, 3, () => writtenRule(random, "fee"));
        const prices = pricesIn({
          feed: { ...arAt(usd), [`arweave ${currency}`]: here },
          rules: {
            discounts: own.map(({ operator, magnitude: text }) => ruleOf(text, { operator })),
            promos: codes.map(({ operator, magnitude: text, discountMax }, index) =>
              promoRule(`C${index}`, text, { operator, discountUsdCentsMax: discountMax }),
            ),
            fees: fees.map(({ operator, magnitude: text }) => feeRule(text, { operator })),
          },
        });
        const promoCodes = codes.map((_, index) => `C${index}`);
        const price = await prices.fiat(currency, `${amount}`, { promoCodes, address: buyer }, signal);
        const discounts = [...own.map(({ discountMax: _, ...rule }) => rule), ...codes];
        const expected = fiatToWinc({ amount, isZeroDecimal, here, usd, discounts, fees });
        expect<unknown>({
          run,
          winc: price.winc,
          charged: price.actualPaymentAmount,
          stored: amount + sumOf(price.fees),
        }).toEqual({ run, ...expected });
        expect(price.quotedPaymentAmount + sumOf(price.adjustments)).toBe(price.actualPaymentAmount);
      }
    },
    times,
  );

  test(
    `${runs} about tokens, and the least amount that buys as much`,
    async () => {
      for (let run = 0; run < runs; run += 1) {
        const token = random.pick(["ethereum", "solana", "kyve", "usdc"] as const);
        const texts = { token: priceText(random), ar: priceText(random) };
        const feedId = defaultRules.tokens.get(token)?.feedId ?? "";
        const fees = listOf(random, 3, () => writtenRule(random, "fee"));
        const prices = pricesIn({
          feed: { ...arAt(texts.ar), [`${feedId} usd`]: texts.token },
          rules: { fees: fees.map(({ operator, magnitude: text }) => feeRule(text, { operator })) },
        });
        const amount = amountBelow(random, 24n);
        const expected = tokenToWinc(amount, tokens[token].exponent, texts, fees);
        const given = await prices.token(token, amount, signal).catch((error: unknown) => {
          if (error instanceof Failure && error.code === "price_amount_invalid") return undefined;
          throw error;
        });
        expect<unknown>([run, given?.winc, given?.actualPaymentAmount]).toEqual([run, expected?.winc, expected?.worth]);
        await checkLeast(random, prices, token, expected?.winc ?? 0n);
      }
    },
    times,
  );

  test(
    `${runs} about rates`,
    async () => {
      for (let run = 0; run < runs; run += 1) {
        const network = amountBelow(random, 18n) * 10n;
        const text = priceText(random);
        const factors = listOf(random, 2, () => factorText(random));
        const feed = Object.fromEntries([...defaultRules.currencies.keys()].map((each) => [`arweave ${each}`, text]));
        const fees = factors.map((factor) => feeRule(factor));
        const rates = await pricesIn({ network, feed, rules: { fees } }).rates(signal);
        const digits = rateOf(network / 10n, text, factors)
          .toString()
          .padStart(13, "0");
        const expected = `${digits.slice(0, -12)}.${digits.slice(-12)}`.replace(/\.?0+$/, "");
        expect([run, rates.fiat.get("eur")]).toEqual([run, expected === "" ? "0" : expected]);
      }
    },
    times,
  );
});

/** Whether the least amount that is said to buy so much does, and one less does not. */
async function checkLeast(random: Random, prices: Prices, token: Token, bought: bigint): Promise<void> {
  const wanted = bought > 0n ? bought : amountBelow(random, 15n) + 1n;
  const least = await prices.tokenFor(token, wanted, signal);
  const wincOf = (amount: bigint) =>
    prices.token(token, amount, signal).then(
      ({ winc }) => winc as bigint,
      () => -1n,
    );
  expect(await wincOf(least)).toBeGreaterThanOrEqual(wanted);
  expect(await wincOf(least - 1n)).toBeLessThan(wanted);
}

function amountsOf(adjustments: readonly Adjustment[]): bigint[] {
  return adjustments.map(({ adjustmentAmount }) => adjustmentAmount);
}

function sumOf(adjustments: readonly Adjustment[]): bigint {
  return amountsOf(adjustments).reduce((sum, each) => sum + each, 0n);
}

/** At most so many. */
function listOf<Item>(random: Random, most: number, make: () => Item): Item[] {
  return Array.from({ length: random.below(most + 1) }, make);
}

/** Amounts of all lengths up to so many digits. */
function amountBelow(random: Random, digits: bigint): bigint {
  const length = random.below(Number(digits)) + 1;
  return BigInt(Array.from({ length }, () => random.below(10)).join(""));
}

/** A price between a millionth and a million, with up to twelve places; sometimes with an exponent. */
function priceText(random: Random): string {
  const places = Array.from({ length: random.below(13) }, () => random.below(10)).join("");
  const whole = random.below(10 ** random.below(6));
  if (whole === 0) return `0.0${places}1`;
  if (random.chance(0.1)) return `${whole}e${random.below(5) - 2}`;
  return places === "" ? `${whole}` : `${whole}.${places}`;
}

function factorText(random: Random): string {
  return random.pick(["0.766", "0.5", "0.8", "1", "0.999999", "0.000001", `0.${random.below(1_000) + 1}`, "1.25"]);
}

/** A rule of an upload (`add` is winc) or of a fee (`add` is US cents, and takes something away). */
function writtenRule(random: Random, kind: "winc" | "fee"): WrittenRule {
  if (random.chance(0.7)) return { operator: "multiply", magnitude: factorText(random) };
  const size = amountBelow(random, 6n);
  const places = kind === "fee" && random.chance(0.5) ? `.${random.below(100)}` : "";
  return { operator: "add", magnitude: `${random.chance(0.8) ? "-" : ""}${size}${places}` };
}

/** A rule that lowers what is charged. */
function lowering(random: Random): WrittenRule {
  const capped = random.chance(0.3) ? { discountMax: amountBelow(random, 8n) } : {};
  if (random.chance(0.8)) {
    const factor = random.pick(["0", "0.1", "0.33", "0.5", "0.8", "0.999", "1"]);
    return { operator: "multiply", magnitude: factor, ...capped };
  }
  return { operator: "add", magnitude: `-${amountBelow(random, 5n)}.${random.below(100)}`, ...capped };
}
