/**
 * Cursors: each place has a cursor, and invalid cursors are rejected.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readBlockCursor, readTransactionCursor, writeBlockCursor } from "../../src/graphql/cursor.ts";
import { itemOffsetEnd, type Place, pendingHeight } from "../../src/store/index/place.ts";
import { writeTransactionCursor } from "../support/transaction-cursor.ts";

const places = fc.record({
  height: fc.integer({ min: 0, max: pendingHeight }),
  txIndex: fc.integer({ min: 0, max: 1_023 }),
  offset: fc.oneof(fc.constant(-1), fc.integer({ min: 64, max: itemOffsetEnd - 1 })),
});

describe("a transaction's cursor", () => {
  test("decodes to the place that it was written for", () => {
    fc.assert(
      fc.property(places, (place) => {
        expect(readTransactionCursor(writeTransactionCursor(place))).toEqual(place);
      }),
    );
  });

  const edges: Place[] = [
    { height: 0, txIndex: 0, offset: -1 },
    { height: pendingHeight, txIndex: 1_023, offset: itemOffsetEnd - 1 },
  ];
  test.each(edges)("covers %p", (place) => {
    expect(readTransactionCursor(writeTransactionCursor(place))).toEqual(place);
  });

  const one = writeTransactionCursor({ height: 1, txIndex: 1, offset: -1 });
  const spelled = (...bytes: number[]) => Buffer.from(bytes).toString("base64url");
  const rejected: [string, string][] = [
    ["nothing", ""],
    ["a word", "garbage"],
    ["the peer's form", "WzEsMiwzXQ"],
    ["one with padding", `${one}=`],
    ["a piece of one", one.slice(1)],
    ["one with a foreign character", one.replace("d", "!")],
    ["a block's", writeBlockCursor(7)],
    ["a height beyond 22 bits", spelled(0x74, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)],
    ["an index beyond 10 bits", spelled(0x74, 0, 0, 0, 1, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0)],
    ["an offset at which nothing begins", spelled(0x74, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5)],
    ["a long text", "A".repeat(60_000)],
  ];
  test.each(rejected)("is not %s", (_name, text) => {
    expect(readTransactionCursor(text)).toBeUndefined();
  });
});

describe("a block's cursor", () => {
  test("decodes to the height that it was written for", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 40 - 1 }), (height) => {
        expect(readBlockCursor(writeBlockCursor(height))).toBe(height);
      }),
    );
  });

  test.each(["", "garbage", writeTransactionCursor({ height: 7, txIndex: 0, offset: -1 })])("is not %p", (text) => {
    expect(readBlockCursor(text)).toBeUndefined();
  });
});
