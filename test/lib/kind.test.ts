/**
 * Schemas of requests validate as the API reference states, and parsers reject texts of other schemas.
 * @module
 */
import { describe, expect, test } from "bun:test";
import {
  countKind,
  digitsReading,
  type Kind,
  listKind,
  objectKind,
  orNull,
  reading,
  recordKind,
  textKind,
  wordKind,
} from "../../src/lib/kind.ts";

const text = textKind({ pattern: "^a*$", minLength: 1, maxLength: 2 });
const item = objectKind({ name: text, count: countKind(1, 3) }, { note: orNull(text) });

const rows: [name: string, kind: Kind<unknown>, right: unknown[], wrong: unknown[]][] = [
  ["texts", text, ["a", "aa"], ["", "aaa", "b", 1, null, undefined]],
  ["words", wordKind(["one", "two"]), ["one", "two"], ["", "One", "onetwo", 1, undefined]],
  ["counts", countKind(1, 3), [1, 3], [0, 4, 1.5, "1", Number.NaN, null, undefined]],
  ["objects, whatever is in them", recordKind, [{}, { a: 1 }], [null, [], "a", undefined]],
  ["lists", listKind(text, 1, 2), [["a"], ["a", "aa"]], [[], ["a", "a", "a"], ["b"], "a", { 0: "a" }, null]],
  [
    "objects",
    item,
    [
      { name: "a", count: 1 },
      { name: "a", count: 3, note: null, more: 1 },
    ],
    [{ name: "a" }, { name: "a", count: 4 }, { name: "a", count: 1, note: "b" }, ["a", 1], null],
  ],
];

describe("a schema", () => {
  test.each(rows)("of %s accepts only valid values", (_name, kind, right, wrong) => {
    for (const value of right) expect(kind.is(value), Bun.inspect(value)).toBeTrue();
    for (const value of wrong) expect(kind.is(value), Bun.inspect(value)).toBeFalse();
  });

  test("of objects returns the first invalid field, in its own order", () => {
    expect(item.validate({ note: "b" })).toEqual({ wrongField: "name" });
    expect(item.validate({ note: "b", count: 0, name: "a" })).toEqual({ wrongField: "count" });
    expect(item.validate({ note: "b", count: 1, name: "a" })).toEqual({ wrongField: "note" });
    expect(item.validate({ count: 1, name: "a" })).toEqual({
      wrongField: undefined,
      value: { count: 1, name: "a" },
    });
  });

  test("of objects ignores inherited names", () => {
    const needsMethod = objectKind({ toString: text }, {});
    expect(needsMethod.is({})).toBeFalse();
    expect(item.is({ name: "a", count: 1, constructor: 1 })).toBeTrue();
  });
});

describe("a parser", () => {
  const shown: [text: string, value: number | undefined][] = [
    ["1", 1],
    ["007", 7],
    ["100", 100],
    ["0", undefined],
    ["101", undefined],
    ["0100", undefined],
    ["1e2", undefined],
    [" 1", undefined],
    ["-1", undefined],
    ["", undefined],
  ];
  test.each(shown)("of digits from 1 to 100 parses %p as %p", (given, value) => {
    expect(digitsReading(1, 100, 3).read(given)).toBe(value);
  });

  test("is not called for a text that is not valid", () => {
    const asked: string[] = [];
    const { read } = reading(text, (given) => asked.push(given));
    expect([read("aaa"), read("b"), read("a")]).toEqual([undefined, undefined, 1]);
    expect(asked).toEqual(["a"]);
  });
});
