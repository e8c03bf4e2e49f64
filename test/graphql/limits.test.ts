/**
 * What a document may ask for, at each limit and one beyond.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { getIntrospectionQuery, parse } from "graphql";
import { exceededLimits } from "../../src/graphql/document-size.ts";
import { aliasesMax, aliasLengthMax, depthMax, fieldsMax, rootFieldsMax } from "../../src/graphql/query-limits.ts";

const messages = (query: string) => exceededLimits(parse(query)).map(({ message }) => message);

const nested = (depth: number) => `${"{ a ".repeat(depth)}${"}".repeat(depth)}`;
const aliased = (count: number) =>
  `{ t { ${Array.from({ length: count }, (_, index) => `a${index}: id`).join(" ")} } }`;
const rooted = (count: number) => `{ ${"a ".repeat(count)} }`;
/** Fragments that each use the next one twice: 2^count fields. */
const doubled = (count: number) =>
  `{ ...f0 } ${Array.from({ length: count }, (_, index) => `fragment f${index} on Query { b { ...f${index + 1} ...f${index + 1} } }`).join(" ")} fragment f${count} on Query { a }`;

const rows: [string, string, string[]][] = [
  ["the depth that is allowed", nested(depthMax), []],
  ["one level more", nested(depthMax + 1), ["The query's depth is 13; at most 12 is allowed."]],
  [
    "depth within fragments",
    `${nested(11).replace("{ a }", "{ ...f }")} fragment f on X { a { b { c } } }`,
    ["The query's depth is 13; at most 12 is allowed."],
  ],
  ["the aliases that are allowed", aliased(aliasesMax), []],
  ["one alias more", aliased(aliasesMax + 1), ["The query's count of aliases is 31; at most 30 is allowed."]],
  [
    "a fragment's aliases, as often as it is used",
    "{ a { ...f } b { ...f } } fragment f on X { x1: i x2: i x3: i x4: i x5: i x6: i x7: i x8: i x9: i x10: i x11: i x12: i x13: i x14: i x15: i x16: i }",
    ["The query's count of aliases is 32; at most 30 is allowed."],
  ],
  ["the longest alias that is allowed", `{ a { ${"x".repeat(aliasLengthMax)}: b } }`, []],
  [
    "an alias that is longer, within a fragment",
    `{ a { ...f } } fragment f on X { b { ${"x".repeat(aliasLengthMax + 1)}: c } }`,
    ["The query's longest alias is 65; at most 64 is allowed."],
  ],
  ["the root fields that are allowed", rooted(rootFieldsMax), []],
  [
    "one root field more",
    rooted(rootFieldsMax + 1),
    ["The query's count of root fields is 31; at most 30 is allowed."],
  ],
  [
    "root fields of fragments",
    `{ ...f ... { ${"a ".repeat(15)} } } fragment f on Query { ${"a ".repeat(16)} }`,
    ["The query's count of root fields is 31; at most 30 is allowed."],
  ],
  ["the fields that are allowed", `{ t { ${"a ".repeat(fieldsMax - 1)} } }`, []],
  [
    "one field more",
    `{ t { ${"a ".repeat(fieldsMax)} } }`,
    ["The query's count of fields is 1001; at most 1000 is allowed."],
  ],
  ["introspection as GraphiQL sends it", getIntrospectionQuery(), []],
  ["introspection's names beside root fields", `{ ${"__typename ".repeat(100)} }`, []],
  [
    "a fragment that uses itself (graphql-js says that it is a cycle)",
    "{ ...f } fragment f on Query { a { ...f } }",
    [],
  ],
  [
    "fragments that use each other",
    "{ ...f } fragment f on Query { a { ...g } } fragment g on Query { b { ...f } }",
    [],
  ],
  ["a fragment that is not there (graphql-js says so)", "{ ...f }", []],
];

describe("a document's limits", () => {
  test.each(rows)("count %s", (_name, query, expected) => {
    expect(messages(query)).toEqual(expected);
  });

  test("count the fields of nested fragments, without expanding them", () => {
    expect(messages(doubled(10)).at(-1)).toBe("The query's count of fields is 2047; at most 1000 is allowed.");
    // Expanding 2^300 fields would never end.
    expect(messages(doubled(300)).at(-1)).toMatch(/count of fields is 90071992547409\d\d/);
  });

  test("count every operation of a document", () => {
    expect(messages(`query A ${nested(1)} query B ${nested(13)}`)).toHaveLength(1);
  });
});
