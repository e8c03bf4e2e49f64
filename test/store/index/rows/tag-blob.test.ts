/**
 * Tags are restored exactly from their compact form, and the form has the stated size.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { decodeTagBlob, encodeTagBlob, knownNames, knownPairs } from "../../../../src/store/index/rows/tag-blob.ts";

const id = "l1eHvgSI1AbY7Z6lWqJiBHyqyGUpeTgwpr2b8UKWbPg";

describe("encodeTagBlob", () => {
  test.each([
    ["a known pair", "Content-Type", "image/png", 1],
    ["a known name with a text", "App-Name", "x", 1 + 1 + 1],
    ["an id", "Drive-Id", id, 1 + 2 + 32],
    ["a block hash", "Type", "A".repeat(64), 1 + 2 + 48],
    ["lower-case hex", "Type", "00ff".repeat(16), 1 + 2 + 32],
    ["an address in hex", "Sender", `0x${"ab".repeat(20)}`, 1 + 2 + 20],
    ["a UUID", "File-Id", "123e4567-e89b-12d3-a456-426614174000", 1 + 2 + 16],
    ["Unix seconds", "Unix-Time", "1700000000", 1 + 1 + 4],
    ["Unix milliseconds", "Unix-Time", "1700000000000", 1 + 1 + 6],
    ["an unknown name", "Zzz", "v", 1 + 1 + 3 + 1 + 1],
    ["nothing", "", "", 1 + 1 + 1],
  ])("%s: %p = %p takes %d bytes", (_what, name, value, size) => {
    const blob = encodeTagBlob([{ name, value }]);
    expect(blob.length).toBe(size);
    expect(decodeTagBlob(blob)).toEqual([{ name, value }]);
  });

  test.each([
    ["leading zero", "0012345678"],
    ["more than 48 bits", "281474976710656"],
    ["the most of 48 bits", "281474976710655"],
    ["a power of 256", "1099511627776"],
    ["one below a power of 256", "1099511627775"],
    ["base64url that is not canonical", `${"A".repeat(42)}B`],
    ["a quantity of 30 digits", "123456789012345678901234567890"],
    ["upper-case hex", "00FF".repeat(16)],
    ["an odd number of hex digits", "abc".repeat(11)],
    ["upper-case UUID", "123E4567-E89B-12D3-A456-426614174000"],
    ["0x alone", "0x"],
    ["a byte order mark", "\uFEFFvalue"],
    ["a replacement character", "\uFFFD\uFFFD"],
    ["a zero character", "a\0b"],
    ["beyond the basic plane", "𝕬𝖗".repeat(50)],
    ["four kilobytes", "é".repeat(2_048)],
  ])("keeps %s as it is", (_what, value) => {
    expect(decodeTagBlob(encodeTagBlob([{ name: "n", value }]))).toEqual([{ name: "n", value }]);
  });

  test("any tags are restored in order, including repeated names", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom(...knownNames, id, "1700000000", ""),
      fc.stringMatching(/^[0-9a-f]{0,64}$/),
      fc.stringMatching(/^[1-9][0-9]{0,17}$/),
      fc.stringMatching(/^[A-Za-z0-9_-]{43}$/),
    );
    const tag = fc.oneof(
      fc.record({ name: text, value: text }),
      fc.constantFrom(...knownPairs.map(([name, value]) => ({ name, value }))),
    );
    fc.assert(
      fc.property(fc.array(tag, { maxLength: 20 }), (tags) => {
        expect(decodeTagBlob(encodeTagBlob(tags))).toEqual(tags);
      }),
      { numRuns: 500 },
    );
  });

  test("a truncated blob, or one with an unknown number, is a defect", () => {
    expect(() => decodeTagBlob(Uint8Array.of(0x80))).toThrow("invariant broken");
    expect(() => decodeTagBlob(Uint8Array.of(0xff, 0xff, 0x03))).toThrow("invariant broken");
  });

  test("known tags are distinct and keep their numbers", () => {
    expect(new Set(knownNames).size).toBe(knownNames.length);
    expect(new Set(knownPairs.map((pair) => pair.join("\0"))).size).toBe(knownPairs.length);
    // Stored blobs name these by number: an entry may be added at the end, never moved.
    const digest = (names: readonly string[]): string => Bun.SHA256.hash(names.join("\n"), "hex").slice(0, 16);
    expect(digest(knownNames.slice(0, 121))).toBe("d2c95ae4256a55f6");
    expect(digest(knownPairs.slice(0, 73).map((pair) => pair.join("=")))).toBe("5b67806096bead20");
  });
});
