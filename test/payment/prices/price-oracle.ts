/**
 * The prices of docs/reference/payment.md, worked out once more: by long division on reduced fractions, from the
 * digits of the rules and rates, with nothing of the program.
 * @module
 */

/** A reduced fraction, the second part above 0. */
export type Fraction = readonly [bigint, bigint];

/** A rule as an operator writes it. */
export type WrittenRule = Readonly<{
  operator: "add" | "multiply";
  magnitude: string;
  /** Of promo codes: US cents. */
  discountMax?: bigint;
}>;

/** A decimal, by its digits. */
export function fractionOf(text: string): Fraction {
  const [mantissa = "", power = "0"] = text.toLowerCase().split("e");
  const [whole = "", places = ""] = mantissa.replace("-", "").split(".");
  let [over, under] = [BigInt(whole + places), 10n ** BigInt(places.length)];
  for (let left = Number(power); left > 0; left -= 1) over *= 10n;
  for (let left = Number(power); left < 0; left += 1) under *= 10n;
  return reduced(mantissa.startsWith("-") ? -over : over, under);
}

export const times = (a: Fraction, b: Fraction): Fraction => reduced(a[0] * b[0], a[1] * b[1]);
export const over = (a: Fraction, b: Fraction): Fraction => reduced(a[0] * b[1], a[1] * b[0]);

/** Rounds by what long division leaves over. */
export function rounded([a, b]: Fraction, way: "down" | "up" | "half up"): bigint {
  const negative = a < 0n;
  const [size, rest] = [(negative ? -a : a) / b, (negative ? -a : a) % b];
  if (rest === 0n) return negative ? -size : size;
  if (way === "half up") {
    const near = rest + rest >= b ? size + 1n : size;
    return negative ? -near : near;
  }
  if (way === "up") return negative ? -size : size + 1n;
  return negative ? -size - 1n : size;
}

/** Bytes → winc. */
export function bytesToWinc(
  tenGiB: bigint,
  size: bigint,
  rules: readonly (WrittenRule & Readonly<{ sizeMax: bigint }>)[],
): Readonly<{ winc: bigint; steps: readonly bigint[] }> {
  let winc = rounded(reduced(tenGiB * size, 10_737_418_240n), "up");
  const steps: bigint[] = [];
  for (const { operator, magnitude, sizeMax } of rules) {
    if (sizeMax !== 0n && sizeMax < size) continue;
    const before = winc;
    const value = fractionOf(magnitude);
    winc = operator === "add" ? winc + value[0] : rounded(times([winc, 1n], value), "down");
    if (winc < 0n) winc = 0n;
    steps.push(winc - before);
    if (winc === 0n) break;
  }
  return { winc, steps };
}

/** What a question about fiat money is. */
export type FiatQuestion = Readonly<{
  amount: bigint;
  isZeroDecimal: boolean;
  /** What one AR costs, in the currency and in dollars. */
  here: string;
  usd: string;
  discounts: readonly WrittenRule[];
  fees: readonly WrittenRule[];
}>;

/** Fiat → winc. */
export function fiatToWinc(question: FiatQuestion) {
  const { amount, here, usd, isZeroDecimal, discounts, fees } = question;
  const unit = isZeroDecimal ? 1n : 100n;
  const ofCents = (cents: Fraction) =>
    times(times(over(cents, [100n, 1n]), over(fractionOf(here), fractionOf(usd))), [unit, 1n]);
  const stepped = (before: bigint, { operator, magnitude, discountMax }: WrittenRule): bigint => {
    const value = fractionOf(magnitude);
    let after =
      operator === "add" ? before + rounded(ofCents(value), "half up") : rounded(times([before, 1n], value), "half up");
    if (after < 0n) after = 0n;
    if (discountMax === undefined) return after;
    const most = rounded(ofCents([discountMax, 1n]), "down");
    return before - after > most ? before - most : after;
  };
  const [charged, stored] = [discounts.reduce(stepped, amount), fees.reduce(stepped, amount)];
  const wholes = reduced(stored, unit);
  const winc = rounded(times(over(wholes, fractionOf(here)), [10n ** 12n, 1n]), "half up");
  return { winc, charged, stored };
}

/** Tokens → winc, before and after fees; undefined below one winc. @param prices - In dollars. */
export function tokenToWinc(
  amount: bigint,
  exponent: number,
  prices: Readonly<{ token: string; ar: string }>,
  fees: readonly WrittenRule[],
) {
  const tokens = over([amount, 1n], [10n ** BigInt(exponent), 1n]);
  const ars = times(tokens, over(fractionOf(prices.token), fractionOf(prices.ar)));
  const worth = rounded(times(ars, [10n ** 12n, 1n]), "down");
  if (worth < 1n) return undefined;
  const winc = fees.reduce((before, { operator, magnitude }) => {
    const value = fractionOf(magnitude);
    const dollars = over(value, [100n, 1n]);
    const added = rounded(times(over(dollars, fractionOf(prices.ar)), [10n ** 12n, 1n]), "half up");
    const after = operator === "add" ? before + added : rounded(times([before, 1n], value), "down");
    return after < 0n ? 0n : after;
  }, worth);
  return { worth, winc };
}

/** The rate of a gibibyte: 10⁻¹² whole units, rounded down. */
export function rateOf(winc: bigint, here: string, factors: readonly string[]): bigint {
  const perAr = factors.reduce((price, factor) => over(price, fractionOf(factor)), fractionOf(here));
  return rounded(times([winc, 1n], perAr), "down");
}

function reduced(over: bigint, under: bigint): Fraction {
  let [a, b] = [over < 0n ? -over : over, under];
  while (b !== 0n) [a, b] = [b, a % b];
  return a === 0n ? [0n, 1n] : [over / a, under / a];
}
