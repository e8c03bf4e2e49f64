/**
 * Repeated keys are found wherever they are, and nothing else is taken for one.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { repeatedKey } from "../../src/lib/json.ts";

describe("repeatedKey", () => {
  test.each([
    ['{"a":1,"a":2}', "$.a"],
    ['{"a":1,"b":{"c":1,"c":2}}', "$.b.c"],
    ['{"and":[{"x":1},{"tags":[],"tags":[]}]}', "$.and[1].tags"],
    ['{"a":1,"\\u0061":2}', "$.a"],
    ['{ "a" : 1 , "a" : 2 }', "$.a"],
    ['[[0,0],[{"k":"{","k":"}"}]]', "$[1][0].k"],
  ])("finds in %p the repeated key %p", (text, path) => {
    expect(repeatedKey(text)).toBe(path);
  });

  test.each([
    '{"a":1,"b":{"a":1}}',
    '[{"a":1},{"a":1}]',
    '{"a":"a\\":1,\\"a","b":["a","a"]}',
    '{"__proto__":1,"constructor":2}',
    '"a"',
    "[]",
  ])("finds no repeated key in %p", (text) => {
    expect(repeatedKey(text)).toBeUndefined();
  });
});
