/**
 * Parses amounts: integers, also with an exponent.
 * Source: docs/reference/payment.md#units.
 * @module
 */
import { stringSchema, type TextParser, textParser } from "../lib/value-schema.ts";

/** Digits of the largest amount; a trillion tokens of 18 places have 30. */
const digitsMax = 40n;

/** Longer texts are not parsed. */
const lengthMax = 200;

const decimal = "^0*(\\d+)(?:\\.(\\d+))?(?:[eE]\\+?(\\d{1,3}))?$";
const decimalPattern = new RegExp(decimal);

/** 2^53 − 1, the largest exact JSON number: the limit of a card payment and of an item's size. */
export const safeMax = 9_007_199_254_740_991n;

/**
 * Reads a whole number, 0 or more: `1000`, `1e+21`, `1.5e3`.
 * @returns `undefined` for other text, fractions, signs, and numbers of more than 40 digits.
 */
export function readAmount(text: string): bigint | undefined {
  const read = readDecimal(text);
  return read === undefined || read.shift < 0n ? undefined : scaled(read);
}

/**
 * Reads a number, 1 or more, and rounds it up to a whole one: `1.2` is 2.
 * @returns `undefined` for other text, signs, numbers below 1, and numbers of more than 40 digits.
 */
export function readAmountUp(text: string): bigint | undefined {
  const read = readDecimal(text);
  if (read === undefined || read.digits === 0n) return undefined;
  if (read.shift >= 0n) return scaled(read);
  const unit = 10n ** -read.shift;
  if (read.digits < unit) return undefined;
  const whole = (read.digits + unit - 1n) / unit;
  return scaled({ digits: whole, shift: 0n });
}

/** Amounts, parsed by `readAmount`. */
export const amountText: TextParser<bigint> = textParser(
  stringSchema({ pattern: decimal, maxLength: lengthMax, description: "A whole number, of at most 40 digits." }),
  readAmount,
);

/** Quantities, parsed by `readAmountUp`. */
export const amountUpText: TextParser<bigint> = textParser(
  stringSchema({ pattern: decimal, maxLength: lengthMax, description: "At least 1; it is rounded up." }),
  readAmountUp,
);

/** The message for an invalid amount; it echoes a bounded part of the text. */
export function invalidAmountText(text: string): string {
  const said = text.slice(0, echoedMax);
  return `The provided payment amount (${said}) is invalid; it must be a positive non-decimal integer!`;
}

/** Characters of a client's text that a message echoes. */
const echoedMax = 64;

/** Digits, and the power of ten of their factor. */
type Decimal = Readonly<{ digits: bigint; shift: bigint }>;

function readDecimal(text: string): Decimal | undefined {
  if (text.length > lengthMax) return undefined;
  const [, whole, part = "", power = "0"] = decimalPattern.exec(text) ?? [];
  if (whole === undefined) return undefined;
  const places = part.replace(/0+$/, "");
  return { digits: BigInt(whole + places), shift: BigInt(power) - BigInt(places.length) };
}

function scaled({ digits, shift }: Decimal): bigint | undefined {
  if (digits !== 0n && BigInt(digits.toString().length) + shift > digitsMax) return undefined;
  return digits * 10n ** (digits === 0n ? 0n : shift);
}

const countPattern = /^0*(\d{1,16})$/;

/** Reads a number of bytes: digits only, 0 to 2^53 − 1. */
export function readByteCount(text: string): bigint | undefined {
  const digits = text.length > lengthMax ? undefined : countPattern.exec(text)?.[1];
  if (digits === undefined) return undefined;
  const count = BigInt(digits);
  return count <= safeMax ? count : undefined;
}

/** Numbers of bytes, parsed by `readByteCount`. */
export const byteCountText: TextParser<bigint> = textParser(
  stringSchema({ pattern: "^[0-9]+$", maxLength: lengthMax, description: "To 2^53 − 1." }),
  readByteCount,
);
