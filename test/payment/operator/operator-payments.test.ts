/**
 * What was paid, as operators read it: money in its own decimals, tokens in whole ones.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { paidText } from "../../../src/payment/operator/operator-payments.ts";
import { defaultRules } from "../../../src/payment/prices/price-rules.ts";

describe("a payment of", () => {
  test.each([
    ["card", 2_500n, "usd", "25.00 USD"],
    ["card", 5n, "eur", "0.05 EUR"],
    ["card", 2_500n, "jpy", "2500 JPY"],
    ["token", 500_000_000_000n, "native", "0.5 native"],
    ["token", 3_000_000_000_000_000_000n, "ethereum", "3 ethereum"],
    ["token", 1n, "usdc", "0.000001 usdc"],
    ["x402", 10_000n, "base-usdc", "0.01 base-usdc"],
    ["x402", 10_000n, "0x1234", "10000 of the smallest unit of 0x1234"],
    ["token", 10_000n, "base-unlisted", "10000 of the smallest unit of base-unlisted"],
  ] as const)("%s %p %s is %s", (method, amount, currency, text) => {
    expect(paidText({ method, currency }, amount, defaultRules)).toBe(text);
  });
});
