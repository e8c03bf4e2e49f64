/**
 * Bech32 against published pairs.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { encodeBech32 } from "../../src/lib/bech32.ts";

describe("encodeBech32", () => {
  test.each([
    ["a", "", "a12uel5l"],
    ["cosmos", "4fea76427b8345861e80a3540a8a9d936fd39391", "cosmos1fl48vsnmsdzcv85q5d2q4z5ajdha8yu34mf0eh"],
  ])("writes %p and %p as %p", (prefix, hex, text) => {
    expect(encodeBech32(prefix, Uint8Array.fromHex(hex))).toBe(text);
  });
});
