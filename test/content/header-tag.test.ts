/**
 * Tags of content that become headers of responses.
 * @module
 */
import { expect, test } from "bun:test";
import { headerTag } from "../../src/content/header-tag.ts";

test.each([
  [undefined, undefined],
  ["", ""],
  ["text/plain", "text/plain"],
  ["x".repeat(1_024), "x".repeat(1_024)],
  ["x".repeat(1_025), "x".repeat(1_024)],
  ["x".repeat(2 ** 20), "x".repeat(1_024)],
])("at most 1,024 characters of a value are used", (value, used) => {
  expect(headerTag(value)).toBe(used);
});
