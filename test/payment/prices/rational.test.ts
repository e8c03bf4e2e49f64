/**
 * Exact fractions, the amounts that callers write, and the numbers of JSON that keep their digits.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { memberOf, numberText, readWrittenJson } from "../../../src/lib/json.ts";
import { readAmount, readByteCount } from "../../../src/payment/amounts.ts";
import {
  ceiling,
  compare,
  floor,
  nearest,
  rational,
  readDecimal,
  writeDecimal,
} from "../../../src/payment/prices/rational.ts";

const tooMany = "9".repeat(61);

describe("readDecimal", () => {
  const rows: readonly (readonly [string, bigint, bigint])[] = [
    ["7.02", 702n, 100n],
    ["0", 0n, 1n],
    ["-0.5", -5n, 10n],
    ["1e3", 1_000n, 1n],
    ["1.5E+2", 150n, 1n],
    ["1.25e-7", 125n, 10n ** 9n],
    ["1e60", 10n ** 60n, 1n],
    ["12345678901234567890.000000000000000001", 12345678901234567890000000000000000001n, 10n ** 18n],
  ];
  test.each(rows)("%s keeps every digit", (text, over, under) => {
    const read = readDecimal(text);
    expect(read !== undefined && compare(read, rational(over, under))).toBe(0);
  });

  test.each([
    "",
    " 1",
    "1 ",
    "+1",
    ".5",
    "5.",
    "01",
    "1e",
    "0x10",
    "1_0",
    "NaN",
    "Infinity",
    "-",
    "--1",
    "1,5",
    "1e61",
    "1e-61",
    "1e99999",
    "²",
    tooMany,
    `0.${tooMany}`,
    "null",
  ])("%p is not a valid number", (text) => expect(readDecimal(text)).toBeUndefined());
});

describe("rounding", () => {
  const rows: readonly (readonly [bigint, bigint, bigint, bigint, bigint])[] = [
    [7n, 2n, 3n, 4n, 4n],
    [5n, 2n, 2n, 3n, 3n],
    [9n, 4n, 2n, 3n, 2n],
    [11n, 4n, 2n, 3n, 3n],
    [6n, 3n, 2n, 2n, 2n],
    [0n, 3n, 0n, 0n, 0n],
    [-7n, 2n, -4n, -3n, -4n],
    [-9n, 4n, -3n, -2n, -2n],
    [-6n, 3n, -2n, -2n, -2n],
  ];
  test.each(rows)("%p/%p is %p down, %p up, %p to the nearest", (over, under, down, up, near) => {
    const value = rational(over, under);
    expect([floor(value), ceiling(value), nearest(value)]).toEqual([down, up, near]);
  });

  const decimals: readonly (readonly [bigint, bigint, bigint, string])[] = [
    [1n, 3n, 4n, "0.3333"],
    [2n, 3n, 4n, "0.6666"],
    [5n, 1n, 12n, "5"],
    [5n, 100n, 12n, "0.05"],
    [1n, 1_000n, 2n, "0"],
    [1_230n, 100n, 12n, "12.3"],
    [7n, 2n, 0n, "3"],
    [602261442083n, 10n ** 12n, 12n, "0.602261442083"],
  ];
  test.each(decimals)("%p/%p with %p places is written %s", (over, under, places, text) =>
    expect(writeDecimal(rational(over, under), places)).toBe(text),
  );
});

describe("readAmount", () => {
  const rows: readonly (readonly [string, bigint])[] = [
    ["0", 0n],
    ["1000", 1_000n],
    ["0001000", 1_000n],
    ["1e+21", 10n ** 21n],
    ["1E21", 10n ** 21n],
    ["1.5e3", 1_500n],
    ["1000.00", 1_000n],
    ["0e9", 0n],
    ["9007199254740993", 9_007_199_254_740_993n],
    ["1e39", 10n ** 39n],
    ["1.0e0", 1n],
  ];
  test.each(rows)("%p is %p", (text, amount) => expect(readAmount(text)).toBe(amount));
  test.each([
    "",
    "-1",
    "+1",
    "1.5",
    "1.55e1",
    "1e-1",
    "abc",
    "1e40",
    "1e9999",
    "0x1",
    " 1",
    "1 ",
    "1_000",
    "1,000",
    "NaN",
    "Infinity",
    "½",
    "١",
    "9".repeat(41),
    "1e",
  ])("%p is invalid", (text) => expect(readAmount(text)).toBeUndefined());
  test("a text that is too long is not parsed", () => expect(readAmount("0".repeat(1_000_000))).toBeUndefined());
});

describe("readByteCount", () => {
  const rows: readonly (readonly [string, bigint])[] = [
    ["0", 0n],
    ["1", 1n],
    ["00012", 12n],
    ["9007199254740991", 9_007_199_254_740_991n],
  ];
  test.each(rows)("%p is %p", (text, count) => expect(readByteCount(text)).toBe(count));
  test.each(["", "-1", "1.0", "1e3", "9007199254740992", "99999999999999999", "0x1", "a", "١٢"])(
    "%p is invalid",
    (text) => expect(readByteCount(text)).toBeUndefined(),
  );
});

describe("readWrittenJson", () => {
  test("keeps the digits of every number", () => {
    const read = readWrittenJson('{"a":0.1,"b":[1e30,-0,12345678901234567890.12345678901234567890],"c":"7.02"}');
    expect(numberText(memberOf(read, "a"))).toBe("0.1");
    const list = memberOf(read, "b");
    expect(Array.isArray(list) && list.map(numberText)).toEqual([
      "1e30",
      "-0",
      "12345678901234567890.12345678901234567890",
    ]);
    expect(numberText(memberOf(read, "c"))).toBeUndefined();
    expect(memberOf(read, "c")).toBe("7.02");
  });
  test("knows own keys only", () => {
    const read = readWrittenJson('{"__proto__":{"x":1}}');
    expect(memberOf(read, "toString")).toBeUndefined();
    expect(memberOf(read, "x")).toBeUndefined();
    expect(memberOf(readWrittenJson("[1]"), "0")).toBeUndefined();
    expect(memberOf(readWrittenJson("1"), "a number as it was written")).toBeUndefined();
  });
  test.each(["", "{", "NaN", "{a:1}", "[1,]"])("%p is no JSON", (text) =>
    expect(readWrittenJson(text)).toBeUndefined(),
  );
  test("rejects unbounded nesting as invalid JSON", () => expect(readWrittenJson("[".repeat(200_000))).toBeUndefined());
});
