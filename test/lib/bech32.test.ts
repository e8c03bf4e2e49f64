/**
 * Bech32 against published pairs.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { decodeBech32, encodeBech32 } from "../../src/lib/bech32.ts";

describe("encodeBech32", () => {
  test.each([
    ["a", "", "a12uel5l"],
    ["cosmos", "4fea76427b8345861e80a3540a8a9d936fd39391", "cosmos1fl48vsnmsdzcv85q5d2q4z5ajdha8yu34mf0eh"],
  ])("writes %p and %p as %p", (prefix, hex, text) => {
    expect(encodeBech32(prefix, Uint8Array.fromHex(hex))).toBe(text);
  });
});

describe("decodeBech32", () => {
  test("reads what was written, in either case", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        const text = encodeBech32("kyve", bytes);
        expect(decodeBech32("kyve", text)?.toHex()).toBe(bytes.toHex());
        expect(decodeBech32("kyve", text.toUpperCase())?.toHex()).toBe(bytes.toHex());
      }),
    );
  });

  test("refuses a text with any one letter changed", () => {
    const text = encodeBech32(
      "kyve",
      Uint8Array.from({ length: 20 }, (_, index) => index),
    );
    for (let at = 0; at < text.length; at++) {
      const other = text[at] === "q" ? "p" : "q";
      expect(decodeBech32("kyve", text.slice(0, at) + other + text.slice(at + 1))).toBeUndefined();
    }
  });

  test.each([
    ["another prefix", "cosmos1fl48vsnmsdzcv85q5d2q4z5ajdha8yu34mf0eh"],
    ["a checksum alone that is cut off", "kyve1qqq"],
    ["nothing", ""],
    ["a left-over bit that is set", "kyve1lyk3n43"],
    ["91 letters", `kyve1${"q".repeat(86)}`],
  ])("refuses %s", (_what, text) => {
    expect(decodeBech32("kyve", text)).toBeUndefined();
  });
});
