/**
 * Base64url: one text for one value.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { decodeBase64url, encodeBase64url } from "../../src/lib/base64url.ts";

describe("decodeBase64url", () => {
  const sound: [text: string, hex: string][] = [
    ["", ""],
    ["AA", "00"],
    ["AAA", "0000"],
    ["AAAA", "000000"],
    ["_-8", "ffef"],
    ["SGk", "4869"],
  ];
  test.each(sound)("%p is %p, and is written so", (text, hex) => {
    expect(decodeBase64url(text)?.toHex()).toBe(hex);
    expect(encodeBase64url(Uint8Array.fromHex(hex))).toBe(text);
  });

  const invalid: [text: string, why: string][] = [
    ["A", "one character is less than a byte"],
    ["AAAAA", "five characters are no bytes"],
    ["AB", "the last four bits are not zero"],
    ["AAB", "the last two bits are not zero"],
    ["AA==", "padding"],
    ["/+8", "the other alphabet"],
    ["AA ", "white space"],
    ["A\nA", "white space"],
    ["\u0141A", "a character that ends in the same byte as A"],
    ["A\u0000", "a zero character"],
    ["ÄÄ", "characters above ASCII"],
  ];
  test.each(invalid)("%p is rejected: %s", (text) => {
    expect(decodeBase64url(text)).toBeUndefined();
  });

  test("any bytes are decoded unchanged, also from the middle of a buffer", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(20), (bytes, start) => {
        const part = bytes.subarray(Math.min(start, bytes.length));
        expect(decodeBase64url(encodeBase64url(part))?.toHex()).toBe(part.toHex());
      }),
    );
  });

  test("any text is rejected or is the canonical text of its bytes", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(..."ABz09-_+/= \u0141") }), (text) => {
        const bytes = decodeBase64url(text);
        expect(bytes === undefined || encodeBase64url(bytes) === text).toBe(true);
      }),
    );
  });
});
