/**
 * What one payment in a currency may be, after today's rates: the dollar's limits, turned into the currency and
 * made round, unless the rules' own are about the same.
 * Source: docs/reference/payment.md#limits-of-payments.
 * @module
 */
import type { CurrencyLimits } from "./prices.ts";
import { larger, multiply, nearest, type Rational, rational } from "./rational.ts";

/** The card provider takes no more digits than eight; this is the most that has so many and is round. */
const providerDigitsMax = 8;
const providerMaximum = 99_000_000n;

/**
 * Limits of one currency.
 *
 * @param own - As the rules have them. @param usd - The dollar's, as the rules have them.
 * @param perDollar - What one dollar costs in the currency, whole units.
 */
export function currencyLimits(own: CurrencyLimits, usd: CurrencyLimits, perDollar: Rational): CurrencyLimits {
  const cent = rational(1n, own.isZeroDecimal ? 100n : 1n);
  // Nothing is sold for less than the smallest unit, however dear that is.
  const ofUsdCents = (cents: bigint) => larger(nearest(multiply(multiply(rational(cents), cent), perDollar)), 1n);
  const minimum = preferred(own.minimum, roundUp(ofUsdCents(usd.minimum)));
  const maximum = preferred(own.maximum, roundDown(ofUsdCents(usd.maximum)), providerMaximum);
  const fit = own.suggested.every((amount) => amount >= minimum && amount <= maximum);
  const suggested = fit ? own.suggested : [minimum, 2n * minimum, 4n * minimum];
  return { ...own, minimum, maximum, suggested };
}

/** The rules' value while today's is within a tenth of it; else today's, or the provider's bound in its place. */
function preferred(own: bigint, today: bigint, bound?: bigint): bigint {
  const difference = today > own ? today - own : own - today;
  if (difference * 10n <= own) return own;
  return bound !== undefined && today.toString().length > providerDigitsMax ? bound : today;
}

/** To two digits, up. */
function roundUp(amount: bigint): bigint {
  const grid = gridOf(amount);
  return ((amount + grid - 1n) / grid) * grid;
}

/** To two digits, down. */
function roundDown(amount: bigint): bigint {
  const grid = gridOf(amount);
  return (amount / grid) * grid;
}

function gridOf(amount: bigint): bigint {
  const digits = BigInt(amount.toString().length);
  return digits > 2n ? 10n ** (digits - 2n) : 1n;
}
