/**
 * Buckets of entries: every one comes back as it was written, plain and packed.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  type BucketForm,
  bucketsFor,
  createEntryList,
  inBuckets,
  keyOfWords,
  readBucket,
  wordsOf,
  writeBucket,
} from "../../../../src/store/index/parts/part-entries.ts";
import { createRandom } from "../../../support/random.ts";
import { seedOr } from "../../../support/seed.ts";

const keyMax = 2 ** 40 - 1;
const ordinalMax = 2 ** 24 - 1;

type Entry = Readonly<{ key: number; ordinal: number }>;

function wordsFor(entries: readonly Entry[]): Uint32Array {
  const list = createEntryList(entries.length);
  for (const { key, ordinal } of entries) list.add(key, ordinal);
  return wordsOf(list.sorted());
}

const forms: BucketForm[] = ["plain", "packed"];

describe.each(forms)("a bucket, %s,", (form) => {
  const expectSame = (entries: readonly Entry[]): void => {
    const words = wordsFor(entries);
    expect(readBucket(writeBucket(words, form))).toEqual(words);
  };

  test.each<[string, readonly Entry[]]>([
    ["no entry", []],
    ["the lowest", [{ key: 0, ordinal: 0 }]],
    ["the highest", [{ key: keyMax, ordinal: ordinalMax }]],
    ["the lowest and the highest", [0, keyMax].map((key) => ({ key, ordinal: ordinalMax }))],
    ["one key of many rows", Array.from({ length: 200 }, (_, ordinal) => ({ key: 5, ordinal }))],
    ["neighbours", Array.from({ length: 300 }, (_, key) => ({ key: keyMax - key, ordinal: key % 3 }))],
    ["near ones and a distant one", [...Array(2_000).keys(), keyMax].map((key) => ({ key, ordinal: 7 }))],
  ])("restores %s", (_what, entries) => {
    expectSame(entries);
  });

  test("restores any entries", () => {
    const entry = fc.record({
      key: fc.oneof(
        fc.nat({ max: 500 }),
        fc.maxSafeInteger().map((number) => Math.abs(number) % (keyMax + 1)),
      ),
      ordinal: fc.oneof(fc.nat({ max: 3 }), fc.nat({ max: ordinalMax })),
    });
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 300 }), (entries) => expectSame(entries)),
      { numRuns: 500 },
    );
  });
});

describe("a packed bucket", () => {
  const random = createRandom(seedOr(41));
  /** The entries of a bucket of a part of four million rows with five keys each. */
  const share = 2 ** 40 / bucketsFor(20_000_000);
  const words = wordsFor(
    Array.from({ length: 120 }, () => ({
      key: 10 ** 9 + random.below(Math.floor(share)),
      ordinal: random.below(2 ** 22),
    })),
  );

  test("of an earlier release has no steps, and is read", () => {
    const body = "012504000000060000000005010000004004000000001200000000e42000000030010000000001e6feffffff03";
    const rows = [
      [5, 1],
      [5, 2],
      [5, 9],
      [70, 3],
      [70, 4],
      [keyMax, 7],
    ].map(([key = 0, ordinal = 0]) => ({ key, ordinal }));
    expect(readBucket(new Uint8Array(Buffer.from(body, "hex")))).toEqual(wordsFor(rows));
  });

  test("takes five bytes an entry in a large part", () => {
    expect(writeBucket(words, "packed").length / 120).toBeLessThan(5.2);
  });

  test("takes a byte an entry where each key has twenty rows that follow each other", () => {
    const rows = Array.from({ length: 1_000 }, (_, ordinal) => ({ key: 10 ** 9 * Math.floor(ordinal / 20), ordinal }));
    expect(writeBucket(wordsFor(rows), "packed").length / 1_000).toBeLessThan(1.1);
  });

  test.each([
    ["a step of no bits", 0],
    ["a step of too many bits", 25],
  ])("whose repeated key has %s is damaged", (_what, stepBits) => {
    const repeated = writeBucket(wordsFor([1, 2].map((ordinal) => ({ key: 0, ordinal }))), "packed");
    // After the first entry (a bit, a difference of one bit, an ordinal of two), and the bit of a repeated key.
    expect([repeated[0], (repeated[12] ?? 0) >> 5, (repeated[13] ?? 0) & 3]).toEqual([2, 1, 0]);
    const damaged = repeated.with(12, ((repeated[12] ?? 0) & 31) | ((stepBits & 7) << 5)).with(13, stepBits >> 3);
    expect(() => readBucket(damaged)).toThrow("a step has one bit or more");
  });

  test("whose ordinals exceed 24 bits is damaged", () => {
    const repeated = writeBucket(
      wordsFor([2 ** 24 - 2, 2 ** 24 - 1].map((ordinal) => ({ key: 0, ordinal }))),
      "packed",
    );
    // The number of bits of the step is one. It follows 27 other bits.
    expect((repeated[15] ?? 0) >> 3).toBe(1);
    expect(() => readBucket(repeated.with(15, ((repeated[15] ?? 0) & 7) | (2 << 3)))).toThrow("an ordinal has 24 bits");
  });

  test.each([
    ["cut in its head", (body: Uint8Array) => body.subarray(0, 8)],
    ["cut in its entries", (body: Uint8Array) => body.subarray(0, body.length - 9)],
    ["with too many entries", (body: Uint8Array) => body.with(3, 255)],
    ["with ordinals of too many bits", (body: Uint8Array) => body.with(2, 25)],
    ["of an unknown form", (body: Uint8Array) => body.with(0, 3)],
    ["without ones", (body: Uint8Array) => body.fill(0, 12)],
  ])("that is damaged is detected: %s", (_what, damage) => {
    expect(() => readBucket(damage(writeBucket(words, "packed")))).toThrow("invariant broken");
  });
});

test("entries are in the buckets of their keys, in order, and empty buckets are left out", () => {
  const words = wordsFor([0, 1, 2 ** 38, 2 ** 39, 2 ** 39 + 1, keyMax].map((key) => ({ key, ordinal: 1 })));
  const found = Array.from(inBuckets(words, 8), ([bucket, own]) => [bucket, keyOfWords(own[0] ?? 0, own[1] ?? 0)]);
  expect(found).toEqual([
    [0, 0],
    [2, 2 ** 38],
    [4, 2 ** 39],
    [7, keyMax],
  ]);
  expect([...inBuckets(new Uint32Array(0), 8)]).toEqual([]);
});
