/**
 * Base58, bech32 and base32 against published pairs, and texts that are not valid.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  decodeBase32,
  decodeBase58,
  decodeBech32,
  encodeBase32,
  encodeBase58,
  encodeBech32,
} from "../../src/lib/base-encodings.ts";

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
  test("decodes encoded bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
        expect(decodeBase58(encodeBase58(bytes))?.toHex()).toBe(bytes.toHex());
      }),
    );
  });

  test.each(["0", "O", "I", "l", "a b", "é", "2NEpo7TZRRrLZSi2U\n"])("rejects %p", (text) => {
    expect(decodeBase58(text)).toBeUndefined();
  });
});

describe("encodeBech32", () => {
  test.each([
    ["a", "", "a12uel5l"],
    ["cosmos", "4fea76427b8345861e80a3540a8a9d936fd39391", "cosmos1fl48vsnmsdzcv85q5d2q4z5ajdha8yu34mf0eh"],
  ])("writes %p and %p as %p", (prefix, hex, text) => {
    expect(encodeBech32(prefix, Uint8Array.fromHex(hex))).toBe(text);
  });
});

describe("decodeBech32", () => {
  test("decodes encoded bytes, in either case", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        const text = encodeBech32("kyve", bytes);
        expect(decodeBech32("kyve", text)?.toHex()).toBe(bytes.toHex());
        expect(decodeBech32("kyve", text.toUpperCase())?.toHex()).toBe(bytes.toHex());
      }),
    );
  });

  test("rejects a text with any one character changed", () => {
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
    ["a spare bit that is set", "kyve1lyk3n43"],
    ["91 characters", `kyve1${"q".repeat(86)}`],
  ])("rejects %s", (_what, text) => {
    expect(decodeBech32("kyve", text)).toBeUndefined();
  });
});

describe("base32", () => {
  // RFC 4648 §10, without padding.
  test.each([
    ["", ""],
    ["66", "my"],
    ["666f", "mzxq"],
    ["666f6f", "mzxw6"],
    ["666f6f62", "mzxw6yq"],
    ["666f6f626172", "mzxw6ytboi"],
  ])("writes %p as %p and reads it again", (hex, text) => {
    expect(encodeBase32(Uint8Array.fromHex(hex))).toBe(text);
    expect(decodeBase32(text)?.toHex()).toBe(hex);
  });

  test.each(["MY", "my======", "m", "mz", "m1", "\u0131a", "\u017fa"])("rejects %p", (text) => {
    expect(decodeBase32(text)).toBeUndefined();
  });
});
