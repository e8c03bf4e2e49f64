/**
 * Base58 against published pairs.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { decodeBase58, encodeBase58 } from "../../src/lib/base58.ts";

describe("encodeBase58", () => {
  test.each([
    ["", ""],
    ["00", "1"],
    ["0000", "11"],
    ["48656c6c6f20576f726c6421", "2NEpo7TZRRrLZSi2U"],
    ["0000287fb4cd", "11233QC4"],
    ["516b6fcd0f", "ABnLTmg"],
    ["ff", "5Q"],
  ])("writes %p as %p", (hex, text) => {
    expect(encodeBase58(Uint8Array.fromHex(hex))).toBe(text);
  });
});

describe("decodeBase58", () => {
  test("reads what was written", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
        expect(decodeBase58(encodeBase58(bytes))?.toHex()).toBe(bytes.toHex());
      }),
    );
  });

  test.each(["0", "O", "I", "l", "a b", "é", "2NEpo7TZRRrLZSi2U\n"])("refuses %p", (text) => {
    expect(decodeBase58(text)).toBeUndefined();
  });
});
