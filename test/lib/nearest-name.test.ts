/**
 * The known name that a mistyped name probably means.
 * @module
 */
import { expect, test } from "bun:test";
import { nearestName } from "../../src/lib/nearest-name.ts";

test.each([
  ["serve", 2, "serve"],
  ["sevre", 2, "serve"], // an exchange of two neighbours is two edits
  ["sevre", 1, undefined],
  ["serv", 1, "serve"],
  ["server", 1, "serve"],
  ["sarve", 1, "serve"],
  ["", 2, "to"],
  ["", 1, undefined],
  ["statu", 2, "status"],
  ["entirely", 2, undefined],
])("the nearest to %p within %p edits is %p", (name, editsMax, nearest) => {
  expect(nearestName(name, ["serve", "status", "to"], editsMax)).toBe(nearest);
});

test("the closest name wins over an earlier one, and the first of equals wins", () => {
  expect(nearestName("block", ["blocks", "block"], 2)).toBe("block");
  expect(nearestName("car", ["cat", "bar"], 2)).toBe("cat");
});
