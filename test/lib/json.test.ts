/**
 * JSON without loss of digits.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isJsonArray, isJsonObject, type JsonValue, readJson, writeJson } from "../../src/lib/json.ts";

describe("readJson", () => {
  const rows: [text: string, value: JsonValue | undefined][] = [
    ["9007199254740991", 9_007_199_254_740_991],
    ["9007199254740992", 9_007_199_254_740_992n],
    ["-9007199254740993", -9_007_199_254_740_993n],
    ["11636689895910311", 11_636_689_895_910_311n],
    ["[1,12345678901234567890]", [1, 12_345_678_901_234_567_890n]],
    ['{"a":{"b": 99999999999999999999}}', { a: { b: 99_999_999_999_999_999_999n } }],
    ['"12345678901234567890"', "12345678901234567890"],
    ["1234567890123456.5", 1_234_567_890_123_456.5],
    ["1e30", 1e30],
    ["12345678901234567890e1", Number("12345678901234567890e1")],
    ["0", 0],
    ["null", null],
    ["9".repeat(1_000), BigInt("9".repeat(1_000))],
    ["9".repeat(1_001), undefined],
    ["", undefined],
    ["{", undefined],
    ["01", undefined],
    ["[1,]", undefined],
    ["NaN", undefined],
  ];
  test.each(rows)("%p means %p", (text, value) => {
    expect(readJson(text)).toEqual(value as never);
  });

  test("a million open brackets are not JSON, without an error", () => {
    expect(readJson("[".repeat(1_000_000))).toBeUndefined();
  });

  test("an integer of ten million digits is rejected", () => {
    expect(readJson(`[${"9".repeat(10_000_000)}]`)).toBeUndefined();
  });

  test("a written value is read again, with integers of any size", () => {
    const value = fc.letrec<{ value: JsonValue }>((tie) => ({
      value: fc.oneof(
        fc.constant(null),
        fc.boolean(),
        fc.string(),
        fc.maxSafeInteger(),
        fc.bigInt({ min: 2n ** 53n, max: 2n ** 300n }),
        fc.bigInt({ min: -(2n ** 300n), max: -(2n ** 53n) }),
        fc.array(tie("value"), { maxLength: 4 }),
        fc.dictionary(fc.string(), tie("value"), { maxKeys: 4 }),
      ),
    })).value;
    fc.assert(
      fc.property(value, (whole) => {
        expect(writeJson(readJson(writeJson(whole)) ?? null)).toBe(writeJson(whole));
      }),
    );
  });

  test("keys are in order, and __proto__ is an ordinary key", () => {
    const text = '{"b":1,"__proto__":{"polluted":true},"a":2}';
    expect(writeJson(readJson(text) ?? null)).toBe(text);
    expect(Reflect.get({}, "polluted")).toBeUndefined();
  });
});

describe("isJsonObject and isJsonArray", () => {
  const rows: [JsonValue | undefined, boolean, boolean][] = [
    [{}, true, false],
    [[], false, true],
    [null, false, false],
    ["{}", false, false],
    [undefined, false, false],
  ];
  test.each(rows)("%p is an object: %p, a list: %p", (value, isObject, isArray) => {
    expect([isJsonObject(value), isJsonArray(value)]).toEqual([isObject, isArray]);
  });
});
