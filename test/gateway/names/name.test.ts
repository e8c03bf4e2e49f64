/**
 * Names taken apart.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { readName } from "../../../src/gateway/names/name.ts";

describe("a name", () => {
  test.each([
    ["ardrive", "ardrive", "@"],
    ["docs_ardrive", "ardrive", "docs"],
    ["a_b_ardrive", "ardrive", "a_b"],
    ["_ardrive", "ardrive", "@"],
    ["__ardrive", "ardrive", "_"],
    ["Docs_ArDrive", "ardrive", "docs"],
    ["xn--nxasmq6b", "xn--nxasmq6b", "@"],
    ["a".repeat(63), "a".repeat(63), "@"],
    ["1_2", "2", "1"],
    ["-_-", "-", "-"],
  ])("%s has the base %s and the record %s", (text, base, record) => {
    expect(readName(text)).toEqual({ text: text.toLowerCase(), base, record });
  });

  test.each([
    "",
    "_",
    "docs_",
    "a".repeat(64),
    "a.b",
    "a b",
    "a/b",
    "a@b",
    "a:1",
    "é",
    "a%2e",
    "a\n",
    "__NAME__\u0000",
    "../x",
  ])("%p is not a valid name", (text) => {
    expect(readName(text)).toBeUndefined();
  });
});
