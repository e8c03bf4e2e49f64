/**
 * Packed places sort in chain order.
 * @module
 */
import { describe, expect, test } from "bun:test";
import {
  isPlace,
  itemOffsetEnd,
  type Place,
  packHeight,
  packPlace,
  pendingHeight,
  pendingPlace,
  placeHigh,
  placeLow,
  placeOfHalves,
} from "../../../src/store/index/place.ts";
import { comparePlaces } from "../../support/places.ts";
import { createRandom } from "../../support/random.ts";

const place = (height: number, txIndex: number, offset: number): Place => ({ height, txIndex, offset });

describe("packPlace", () => {
  test.each([
    [place(0, 0, -1), 0n],
    [place(0, 0, 96), 1n],
    [place(0, 0, 128), 2n],
    [place(0, 1, -1), 1n << 31n],
    [place(1, 0, -1), 1n << 41n],
    [place(pendingHeight, 1023, itemOffsetEnd - 1), (1n << 63n) - 1n],
  ])("%p is %p", (given, packed) => {
    expect(packPlace(given)).toBe(packed);
  });

  test("a transaction comes before its items, and items in the order of their bytes", () => {
    const random = createRandom(7);
    const places = Array.from({ length: 2_000 }, () =>
      place(random.below(3), random.below(3), random.chance(0.1) ? -1 : 64 * (1 + random.below(50))),
    );
    for (const a of places)
      for (const b of places.slice(0, 20)) {
        const order = packPlace(a) < packPlace(b) ? -1 : packPlace(a) > packPlace(b) ? 1 : 0;
        expect(Math.sign(comparePlaces(a, b))).toBe(order);
      }
  });

  test("halves and the exact offset restore the place", () => {
    const given = place(1_800_000, 999, 136_000_000_123);
    expect(placeOfHalves(placeHigh(given), given.offset)).toEqual(given);
    expect((BigInt(placeHigh(given)) << 31n) | BigInt(placeLow(given))).toBe(packPlace(given));
  });
});

describe("isPlace", () => {
  test.each([
    [place(0, 0, -1), true],
    [place(0, 0, 96), true],
    [place(0, 0, 0), false], // the bundle's own header is there
    [place(0, 0, 63), false],
    [place(0, 0, itemOffsetEnd), false], // an item beyond 137 GB
    [place(0, 0, 96.5), false],
    [place(pendingHeight, 0, 64), true],
    [place(pendingHeight + 1, 0, -1), false],
    [place(-1, 0, -1), false],
    [place(0, 1_024, -1), false],
    [place(0, -1, -1), false],
    [place(Number.NaN, 0, -1), false],
  ])("%p: %p", (given, expected) => {
    expect(isPlace(given)).toBe(expected);
    if (!expected) expect(() => packPlace(given)).toThrow("invariant broken");
  });
});

describe("pendingPlace", () => {
  test("is after every block, in the order of the numbers", () => {
    const places = [1, 2, 2 ** 31 - 1, 2 ** 31 + 1, 2 ** 41 - 1].map(pendingPlace);
    expect(places.map(packPlace)).toEqual(places.map(packPlace).sort((a, b) => (a < b ? -1 : 1)));
    expect(places.every((given) => packPlace(given) >= packHeight(pendingHeight))).toBe(true);
    expect(places.every(isPlace)).toBe(true);
  });

  test("is bounded", () => {
    expect(() => pendingPlace(2 ** 41)).toThrow("invariant broken");
    expect(() => pendingPlace(0)).toThrow("invariant broken");
  });
});
