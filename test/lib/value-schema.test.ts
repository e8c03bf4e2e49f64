/**
 * Values are valid exactly when their schemas say so, and readings read no text that is not of their kind.
 * @module
 */
import { describe, expect, test } from "bun:test";
import {
  anyObjectSchema,
  enumSchema,
  integerParser,
  integerSchema,
  listSchema,
  nullable,
  objectSchema,
  stringSchema,
  textParser,
  type ValueSchema,
} from "../../src/lib/value-schema.ts";

const text = stringSchema({ pattern: "^a*$", minLength: 1, maxLength: 2 });
const item = objectSchema({ name: text, count: integerSchema(1, 3) }, { note: nullable(text) });

const rows: [name: string, kind: ValueSchema<unknown>, right: unknown[], wrong: unknown[]][] = [
  ["texts", text, ["a", "aa"], ["", "aaa", "b", 1, null, undefined]],
  ["words", enumSchema(["one", "two"]), ["one", "two"], ["", "One", "onetwo", 1, undefined]],
  ["counts", integerSchema(1, 3), [1, 3], [0, 4, 1.5, "1", Number.NaN, null, undefined]],
  ["objects, whatever is in them", anyObjectSchema, [{}, { a: 1 }], [null, [], "a", undefined]],
  ["lists", listSchema(text, 1, 2), [["a"], ["a", "aa"]], [[], ["a", "a", "a"], ["b"], "a", { 0: "a" }, null]],
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

describe("a kind", () => {
  test.each(rows)("of %s takes what is of it, and nothing else", (_name, kind, right, wrong) => {
    for (const value of right) expect(kind.is(value), Bun.inspect(value)).toBeTrue();
    for (const value of wrong) expect(kind.is(value), Bun.inspect(value)).toBeFalse();
  });

  test("of objects names the first field that is wrong, in its own order", () => {
    expect(item.parse({ note: "b" })).toEqual({ wrongField: "name" });
    expect(item.parse({ note: "b", count: 0, name: "a" })).toEqual({ wrongField: "count" });
    expect(item.parse({ note: "b", count: 1, name: "a" })).toEqual({ wrongField: "note" });
    expect(item.parse({ count: 1, name: "a" })).toEqual({
      wrongField: undefined,
      value: { count: 1, name: "a" },
    });
  });

  test("of objects is not deceived by names that every object has", () => {
    const needsMethod = objectSchema({ toString: text }, {});
    expect(needsMethod.is({})).toBeFalse();
    expect(item.is({ name: "a", count: 1, constructor: 1 })).toBeTrue();
  });
});

describe("a reading", () => {
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
  test.each(shown)("of digits from 1 to 100 makes %p to %p", (given, value) => {
    expect(integerParser(1, 100, 3).read(given)).toBe(value);
  });

  test("asks nothing about a text that is not of its kind", () => {
    const asked: string[] = [];
    const { read } = textParser(text, (given) => asked.push(given));
    expect([read("aaa"), read("b"), read("a")]).toEqual([undefined, undefined, 1]);
    expect(asked).toEqual(["a"]);
  });
});
