/**
 * Requests that depend on an entity tag.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { contentTag, effectiveRange, matchesTag } from "../../src/http/conditional-requests.ts";

const id = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ";

test("verified bytes have the id as their tag, others a tag that will not stay", () => {
  expect([contentTag(id, true), contentTag(id, false)]).toEqual([`"${id}"`, `"${id}.u"`]);
});

describe("If-None-Match against %s", () => {
  test.each([
    [null, false],
    ["", false],
    ["*", true],
    [" * ", true],
    ['"x"', true],
    ['W/"x"', true],
    ['w/"x"', false],
    ["x", false],
    ['"X"', false],
    ['"x.u"', false],
    ['"a", "x"', true],
    ['"a","b",W/"x"', true],
    ['"a" , "b"', false],
    ['  "x"  ', true],
    [',,"x"', true],
    ['"a,\\"x\\""', false],
    ['"a, "x"', false],
    ['"a", garbage, "x"', false],
    ['"a" "x"', false],
    [`${'"a",'.repeat(63)}"x"`, true],
    [`${'"a",'.repeat(10_000)}"x"`, false],
    ['"', false],
  ])("%p matches: %p", (header, matches) => {
    expect(matchesTag(header, '"x"')).toBe(matches);
  });
});

describe("If-Range", () => {
  test.each([
    [null, "bytes=0-1"],
    ['"x"', "bytes=0-1"],
    [' "x" ', "bytes=0-1"],
    ['W/"x"', null],
    ['"y"', null],
    ["x", null],
    ["*", null],
    ['"x", "y"', null],
    ["Sat, 21 Nov 2026 12:00:00 GMT", null],
    ["", null],
  ])("%p leaves the range %p", (ifRange, range) => {
    expect(effectiveRange("bytes=0-1", ifRange, '"x"')).toBe(range);
  });
});
