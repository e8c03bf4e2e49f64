/**
 * Pure and exact calculation of prices from rules and rates, with one rounding per step.
 *
 * Source: docs/reference/payment.md#prices-of-storage; docs/reference/payment.md#prices-of-payments-in-fiat-money.
 * @module
 */
import { type Winc, winc, winstonPerAr } from "../../arweave/winston.ts";
import { assert } from "../../lib/assert.ts";
import type { PromoRule, Rule, UploadRule } from "./price-rules.ts";
import type { Adjustment, BytesPrice, PaymentPrice } from "./price-types.ts";
import {
  ceiling,
  compare,
  divide,
  floor,
  larger,
  multiply,
  nearest,
  type Rational,
  rational,
  subtract,
} from "./rational.ts";

/** The size of the network's price, of which prices of items are a part. */
const networkPriceSize = 10n * 2n ** 30n;

/** The price of one AR. */
type ArRates = Readonly<{
  /** In the payment's currency, whole units. */
  here: Rational;
  /** In US dollars. */
  usd: Rational;
}>;

/** The unit and the rates of a currency. */
export type Money = Readonly<{ isZeroDecimal: boolean; rates: ArRates }>;

/**
 * The price of storing bytes.
 *
 * @param network - Winston for {@link networkPriceSize} bytes.
 * @param size - Bytes, 0 or more.
 * @param rules - In force, in order.
 */
export function bytesPrice(network: bigint, size: bigint, rules: readonly UploadRule[]): BytesPrice {
  const networkWinc = ceiling(rational(network * size, networkPriceSize));
  let amount = networkWinc;
  const adjustments: Adjustment[] = [];
  for (const rule of rules) {
    if (rule.sizeMax > 0n && size > rule.sizeMax) continue;
    // A factor is rounded down, in favour of the uploader.
    const next = step(amount, rule, rule.magnitude.value, floor);
    adjustments.push(adjustmentOf(rule, next - amount));
    amount = next;
    if (amount === 0n) break;
  }
  return { winc: winc(amount), networkWinc: winc(networkWinc), adjustments };
}

/**
 * The credits for a payment in fiat money.
 *
 * Discounts lower the charged amount, one after the other. Fees are deducted from the amount before discounts, because
 * the buyer receives credits for that amount. The rest is converted to winc and rounded once more.
 * @param amount - Smallest unit.
 * @param discounts - In force and in order; promo codes last.
 * @param fees - In force and in order.
 */
export function fiatPrice(
  amount: bigint,
  money: Money,
  discounts: readonly (Rule | PromoRule)[],
  fees: readonly Rule[],
): PaymentPrice {
  const discounted = walk(amount, discounts, (before, rule) => {
    const after = step(
      before,
      rule,
      addend(rule, (cents) => smallestOf(cents, money)),
      nearest,
    );
    if (!("discountUsdCentsMax" in rule) || rule.discountUsdCentsMax === undefined) return after;
    const least = before - floor(smallestOf(rational(rule.discountUsdCentsMax), money));
    return larger(after, least);
  });
  const stored = walk(amount, fees, (before, rule) =>
    step(
      before,
      rule,
      addend(rule, (cents) => smallestOf(cents, money)),
      nearest,
    ),
  );
  const whole = rational(stored.amount, unitsOf(money));
  return {
    winc: winc(nearest(multiply(divide(whole, money.rates.here), rational(winstonPerAr)))),
    adjustments: discounted.adjustments,
    fees: stored.adjustments,
    actualPaymentAmount: discounted.amount,
    quotedPaymentAmount: amount,
  };
}

/** Whether a payment is large enough for a promo code. @param amount - Before discounts. */
export function isEnoughFor(rule: PromoRule, amount: bigint, money: Money): boolean {
  return compare(rational(amount), smallestOf(rational(rule.usdCentsMin), money)) >= 0;
}

/**
 * The price of an amount of winc in fiat money, fees included, in whole units. The amount is rounded down to the price
 * of one winc.
 * @param fees - In force and in order.
 */
export function storagePrice(amount: Winc, money: Money, fees: readonly Rule[]): Rational {
  // Inverts each fee, the last one first.
  const perAr = fees.toReversed().reduce((after: Rational, rule) => {
    if (rule.operator === "multiply") return divide(after, rule.magnitude.value);
    return positive(subtract(after, divide(smallestOf(rule.magnitude.value, money), rational(unitsOf(money)))));
  }, money.rates.here);
  return rational(floor(multiply(rational(amount), perAr)), winstonPerAr);
}

/** The conversion of a token's smallest unit to winc. */
export type TokenRate = Readonly<{
  /** Winc for one smallest unit. */
  wincEach: Rational;
  /** Winc for a US cent; only additive fees call it. */
  wincPerUsdCent: () => Rational;
}>;

/** The rate of a token. @param inAr - AR for one whole token. @param exponent - Its places. */
export function tokenRate(inAr: Rational, exponent: bigint, wincPerUsdCent: () => Rational): TokenRate {
  return { wincEach: multiply(inAr, rational(winstonPerAr, 10n ** exponent)), wincPerUsdCent };
}

/** Winc for a US cent. @param usd - The price of one AR in US dollars. */
export function wincOfUsdCent(usd: Rational): Rational {
  return divide(rational(winstonPerAr, 100n), usd);
}

/**
 * The credits for a token payment: its value in winc, rounded down, less fees, rounded down.
 *
 * @param amount - Smallest unit.
 * @returns `undefined` when the value is below one winc.
 */
export function tokenPrice(amount: bigint, rate: TokenRate, fees: readonly Rule[]): PaymentPrice | undefined {
  const worth = floor(multiply(rational(amount), rate.wincEach));
  if (worth < 1n) return undefined;
  const stored = walk(worth, fees, (before, rule) => step(before, rule, tokenAddend(rule, rate), floor));
  return {
    winc: winc(stored.amount),
    adjustments: [],
    fees: stored.adjustments,
    actualPaymentAmount: worth,
    quotedPaymentAmount: worth,
  };
}

/** The least amount of a token with at least `wanted` credits. @param wanted - Winc, 1 or more. */
export function tokenAmountFor(wanted: Winc, rate: TokenRate, fees: readonly Rule[]): bigint {
  assert(wanted >= 1n, "at least one winc is bought");
  // Inverts each fee, the last one first, to the least amount that leaves enough.
  const worth = fees.toReversed().reduce((after: bigint, rule) => {
    if (after === 0n) return 0n; // amounts are never below 0, so 0 is enough
    const value = tokenAddend(rule, rate);
    if (rule.operator === "multiply") return ceiling(divide(rational(after), value));
    return larger(after - floor(value), 0n);
  }, wanted);
  return ceiling(divide(rational(larger(worth, 1n)), rate.wincEach));
}

/** The amount after all rules, and the change by each rule. */
type Walked = Readonly<{ amount: bigint; adjustments: readonly Adjustment[] }>;

function walk<Kind extends Rule>(
  amount: bigint,
  rules: readonly Kind[],
  apply: (before: bigint, rule: Kind) => bigint,
): Walked {
  const adjustments: Adjustment[] = [];
  let now = amount;
  for (const rule of rules) {
    const next = apply(now, rule);
    adjustments.push(adjustmentOf(rule, next - now));
    now = next;
  }
  return { amount: now, adjustments };
}

/** Applies one rule to an amount; the result is never below 0. */
function step(amount: bigint, { operator }: Rule, value: Rational, round: (exact: Rational) => bigint): bigint {
  const next = operator === "multiply" ? round(multiply(rational(amount), value)) : amount + round(value);
  return larger(next, 0n);
}

/** The factor or the amount of a rule; an amount is in US cents. */
function addend({ operator, magnitude }: Rule, ofUsdCents: (cents: Rational) => Rational): Rational {
  return operator === "multiply" ? magnitude.value : ofUsdCents(magnitude.value);
}

function tokenAddend(rule: Rule, rate: TokenRate): Rational {
  // Rounded before the addition, as every amount of winc from dollars.
  return addend(rule, (cents) => rational(nearest(multiply(cents, rate.wincPerUsdCent()))));
}

/** US cents in the smallest unit of a currency, by the price of one AR in both. */
function smallestOf(usdCents: Rational, money: Money): Rational {
  const { here, usd } = money.rates;
  return multiply(multiply(usdCents, divide(here, usd)), rational(unitsOf(money), 100n));
}

function positive(value: Rational): Rational {
  return value.over < 0n ? rational(0n) : value;
}

function unitsOf({ isZeroDecimal }: Money): bigint {
  return isZeroDecimal ? 1n : 100n;
}

function adjustmentOf(rule: Rule | PromoRule, adjustmentAmount: bigint): Adjustment {
  const { name, description, operator, magnitude } = rule;
  const row = { name, description, operator, operatorMagnitude: magnitude.text, adjustmentAmount };
  return "code" in rule ? { ...row, promoCode: rule.code } : row;
}
