/**
 * Token buckets: what fills, what is owed, and how much of it is remembered.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { createTokenBuckets } from "../../src/lib/token-buckets.ts";

let now = 1_000_000;
const bucketsOf = (capacity: number, refillPerSecond: number, countMax = 10) =>
  createTokenBuckets({ capacity, refillPerSecond, countMax, seed: 7, clock: () => now });

describe("a bucket", () => {
  test("allows its capacity, and then requires a wait", () => {
    const buckets = bucketsOf(3, 2);
    for (let taken = 0; taken < 3; taken += 1) {
      expect(buckets.waitMs("a")).toBe(0);
      buckets.take("a", 1);
    }
    expect(buckets.waitMs("a")).toBe(500);
    now += 499;
    expect(buckets.waitMs("a")).toBeGreaterThan(0);
    now += 1;
    expect(buckets.waitMs("a")).toBe(0);
  });

  test("never exceeds its capacity, however long it is idle", () => {
    const buckets = bucketsOf(2, 1);
    buckets.take("a", 2);
    now += 3_600_000;
    buckets.take("a", 2);
    expect(buckets.waitMs("a")).toBe(1_000);
  });

  test("gets tokens back, never beyond its capacity", () => {
    const buckets = bucketsOf(2, 1);
    buckets.take("a", 3);
    buckets.give("a", 1);
    expect(buckets.waitMs("a")).toBe(1_000);
    buckets.give("a", 5);
    buckets.take("a", 2);
    expect(buckets.waitMs("a")).toBe(1_000);
  });

  test("owes at most its capacity", () => {
    const buckets = bucketsOf(10, 1);
    buckets.take("a", 1_000_000);
    expect(buckets.waitMs("a")).toBe(11_000);
  });

  test("is not changed by a clock that is set back", () => {
    const buckets = bucketsOf(1, 1);
    buckets.take("a", 1);
    now -= 60_000;
    expect(buckets.waitMs("a")).toBe(1_000);
  });

  test("belongs to one key", () => {
    const buckets = bucketsOf(1, 1);
    buckets.take("a", 1);
    expect([buckets.waitMs("a"), buckets.waitMs("b")]).toEqual([1_000, 0]);
  });
});

test("a hundred thousand keys of any length stay within the maximum, and the key in use is stored", () => {
  const buckets = bucketsOf(1, 0.001, 1_000);
  const long = "x".repeat(10_000);
  for (let key = 0; key < 100_000; key += 1) {
    buckets.take(`${long}${key}`, 1);
    if (key % 500 === 0) buckets.take("in use", 1);
  }
  expect(buckets.count()).toBe(1_000);
  expect(buckets.waitMs("in use")).toBeGreaterThan(0);
});
