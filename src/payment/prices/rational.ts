/**
 * Exact fractions of integers, and the three roundings of money.
 *
 * Prices are never floating-point numbers: text is parsed to a fraction, fractions are multiplied and divided, and one
 * named rounding at the end returns an integer.
 * @module
 */
import { assert } from "../../lib/assert.ts";

/** A fraction; `under` is above 0. Not reduced: two fractions are compared with {@link compare}, never by parts. */
export type Rational = Readonly<{ over: bigint; under: bigint }>;

export const one: Rational = { over: 1n, under: 1n };

/** Limits of a decimal text: its digits and its exponent. */
const digitsMax = 60;
const exponentMax = 60n;

const decimalPattern = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d{1,4}))?$/;

/** A fraction of two whole numbers. @param under - not 0. */
export function rational(over: bigint, under = 1n): Rational {
  assert(under !== 0n, "nothing is divided by zero");
  return under < 0n ? { over: -over, under: -under } : { over, under };
}

/**
 * Reads a number as JSON writes it, exactly.
 * @returns The fraction; `undefined` for other text, more than 60 digits, and exponents beyond 60 either way.
 */
export function readDecimal(text: string): Rational | undefined {
  if (text.length > 2 * digitsMax) return undefined;
  const [, sign, whole, part = "", power = "0"] = decimalPattern.exec(text) ?? [];
  if (whole === undefined || whole.length + part.length > digitsMax) return undefined;
  const exponent = BigInt(power);
  if (exponent > exponentMax || exponent < -exponentMax) return undefined;
  const digits = BigInt(whole + part);
  const shift = exponent - BigInt(part.length);
  const over = sign === "-" ? -digits : digits;
  return shift >= 0n ? rational(over * 10n ** shift) : rational(over, 10n ** -shift);
}

export function multiply(a: Rational, b: Rational): Rational {
  return { over: a.over * b.over, under: a.under * b.under };
}

export function subtract(a: Rational, b: Rational): Rational {
  return { over: a.over * b.under - b.over * a.under, under: a.under * b.under };
}

/** @param b - not 0. */
export function divide(a: Rational, b: Rational): Rational {
  return rational(a.over * b.under, a.under * b.over);
}

/** Below 0, 0 or above 0 as `a` is less than, equal to or more than `b`. */
export function compare(a: Rational, b: Rational): -1 | 0 | 1 {
  const difference = a.over * b.under - b.over * a.under;
  if (difference === 0n) return 0;
  return difference < 0n ? -1 : 1;
}

/** The next whole number towards −∞. */
export function floor({ over, under }: Rational): bigint {
  const whole = over / under;
  return over < 0n && whole * under !== over ? whole - 1n : whole;
}

/** The next whole number towards +∞. */
export function ceiling({ over, under }: Rational): bigint {
  return -floor({ over: -over, under });
}

/** The nearest whole number; a half goes away from zero. */
export function nearest({ over, under }: Rational): bigint {
  const half = (2n * (over < 0n ? -over : over) + under) / (2n * under);
  return over < 0n ? -half : half;
}

/** The larger of two integers; `Math.max` does not accept bigint. */
export function larger(a: bigint, b: bigint): bigint {
  if (a > b) return a;
  return b;
}

/** The smaller of two whole numbers. */
export function smaller(a: bigint, b: bigint): bigint {
  if (a < b) return a;
  return b;
}

/**
 * Writes a fraction as decimal text: rounded down to a number of places, without trailing zeros.
 * @param value - 0 or more. @param places - 0 or more.
 */
export function writeDecimal(value: Rational, places: bigint): string {
  assert(value.over >= 0n && places >= 0n, "a decimal text is of a value that is not below zero");
  const scale = 10n ** places;
  const scaled = floor(multiply(value, rational(scale)));
  // Adding the scale keeps the leading zeros of the part, after a digit 1 that is cut off.
  const part = ((scaled % scale) + scale).toString().slice(1).replace(/0+$/, "");
  return part === "" ? `${scaled / scale}` : `${scaled / scale}.${part}`;
}
