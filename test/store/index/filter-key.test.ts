/**
 * Keys of filters: deterministic for one secret, and unpredictable without it.
 * @module
 */
import { heapStats } from "bun:jsc";
import { describe, expect, test } from "bun:test";
import { createFilterKeys, createFilterSecret, filterSecretBytes } from "../../../src/store/index/filter-key.ts";

const keys = createFilterKeys(new Uint8Array(filterSecretBytes).fill(1));
const bytes = new Uint8Array(32).fill(9);

describe("filter keys", () => {
  test("the same filter has the same key in every process with the same secret", () => {
    const again = createFilterKeys(new Uint8Array(filterSecretBytes).fill(1));
    expect(again.tag("App-Name", "x")).toBe(keys.tag("App-Name", "x"));
    // The keys of files on disk depend on it: it may never change.
    expect(keys.tag("App-Name", "x")).toBe(131_487_903_126_326);
    expect(keys.id(bytes)).toBe(78_852_959_459_150);
  });

  test("kinds, names, values and secrets yield different keys", () => {
    const other = createFilterKeys(new Uint8Array(filterSecretBytes).fill(2));
    const found = [
      keys.id(bytes),
      keys.owner(bytes),
      keys.recipient(bytes),
      keys.tag("ab", "c"),
      keys.tag("a", "bc"),
      keys.tag("", "abc"),
      keys.tag("abc", ""),
      keys.tag("c", "ab"),
      other.tag("ab", "c"),
      keys.tag("é", "c"),
      keys.tag("e", "c"),
      keys.id(bytes.subarray(0, 31)),
    ];
    expect(new Set(found).size).toBe(found.length);
  });

  test("a key is a whole number below 2^47", () => {
    const found = Array.from({ length: 2_000 }, (_, index) => keys.tag("n", String(index)));
    expect(found.every((key) => Number.isSafeInteger(key) && key >= 0 && key < 2 ** 47)).toBe(true);
    expect(found.some((key) => key >= 2 ** 46)).toBe(true);
    expect(new Set(found).size).toBe(found.length);
  });

  test("a value longer than the buffer does not disturb the next key", () => {
    const before = keys.tag("n", "v");
    expect(keys.tag("n", "é".repeat(100_000))).not.toBe(keys.tag("n", "é".repeat(99_999)));
    expect(keys.tag("n", "v")).toBe(before);
  });

  test("every database has a different secret", () => {
    expect(createFilterSecret()).not.toEqual(createFilterSecret());
    expect(() => createFilterKeys(new Uint8Array(16))).toThrow("invariant broken");
  });
});

test("what is remembered of tags is bounded, also when one name has all the values", () => {
  const secret = new Uint8Array(filterSecretBytes).fill(1);
  const own = createFilterKeys(secret);
  const strings = () => {
    Bun.gc(true);
    return heapStats().objectTypeCounts["string"] ?? 0;
  };
  const before = strings();
  for (let time = 0; time < 400_000; time += 1) own.tag("Unix-Time", String(1_600_000_000 + time));
  // At most 30,000 values are remembered.
  expect(strings() - before).toBeLessThan(100_000);
  expect(own.tag("Unix-Time", "1600000000")).toBe(createFilterKeys(secret).tag("Unix-Time", "1600000000"));
});
