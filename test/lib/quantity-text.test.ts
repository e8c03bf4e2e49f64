/**
 * Quantities as text: no sign for what rounds to nothing, and all decimals of an amount.
 * @module
 */
import { expect, test } from "bun:test";
import { arText, decimalText } from "../../src/lib/quantity-text.ts";

test.each([
  [1_500_000_000_000n, "1.5000"],
  [-1_500_000_000_000n, "-1.5000"],
  [-1_234_000_000_000_000n, "-1,234.0000"],
  [-500n, "0.0000"],
  [0n, "0.0000"],
])("%p winston are %s AR", (winston, text) => {
  expect(arText(winston)).toBe(text);
});

test.each([
  [2_500n, 2, "25.00"],
  [5n, 2, "0.05"],
  [2_500n, 0, "2500"],
])("%p with %p places is %s", (amount, places, text) => {
  expect(decimalText(amount, places)).toBe(text);
});
