/**
 * Pages of the console's lists.
 * @module
 */
import { expect, test } from "bun:test";
import { withNextPage } from "../../console/operator/operator-client.ts";

test("a second click on More, before the page is read, adds no page", () => {
  const once = withNextPage([], "first");
  expect([once, withNextPage(once, "first")]).toEqual([["first"], ["first"]]);
  expect(withNextPage(once, "second")).toEqual(["first", "second"]);
});
