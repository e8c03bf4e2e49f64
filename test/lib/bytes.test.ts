/**
 * Joining, comparing, and integers in big-endian bytes.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  compareBytes,
  concatBytes,
  equalBytes,
  readUnsigned,
  utf8Bytes,
  withSize,
  writeUnsigned,
  writeUnsignedFixed,
} from "../../src/lib/bytes.ts";

describe("integers in bytes", () => {
  const rows: [value: bigint, hex: string][] = [
    [0n, "00"],
    [1n, "01"],
    [255n, "ff"],
    [256n, "0100"],
    [2n ** 64n, "010000000000000000"],
  ];
  test.each(rows)("%p is %p", (value, hex) => {
    expect(writeUnsigned(value).toHex()).toBe(hex);
    expect(readUnsigned(Uint8Array.fromHex(hex))).toBe(value);
  });

  test("no bytes are 0", () => {
    expect(readUnsigned(new Uint8Array(0))).toBe(0n);
  });

  test("any integer is read again from its fewest bytes and from 40", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 320n - 1n }), (value) => {
        expect(readUnsigned(writeUnsigned(value))).toBe(value);
        expect(readUnsigned(writeUnsignedFixed(value, 40))).toBe(value);
        expect(writeUnsignedFixed(value, 40)).toHaveLength(40);
      }),
    );
  });

  test("an integer that does not fit, or is negative, is a defect", () => {
    expect(() => writeUnsignedFixed(256n, 1)).toThrow("invariant broken");
    expect(() => writeUnsigned(-1n)).toThrow("invariant broken");
    expect(writeUnsignedFixed(0n, 0)).toHaveLength(0);
  });
});

test("bytes follow their size, which must fit", () => {
  expect(withSize(Uint8Array.of(7, 8), 3).toHex()).toBe("0000020708");
  expect(withSize(new Uint8Array(0), 1).toHex()).toBe("00");
  expect(withSize(new Uint8Array(255), 1)).toHaveLength(256);
  expect(() => withSize(new Uint8Array(256), 1)).toThrow("invariant broken");
});

describe("byte strings", () => {
  test("join in order", () => {
    expect(concatBytes([utf8Bytes("a"), new Uint8Array(0), utf8Bytes("bä")]).toHex()).toBe("6162c3a4");
    expect(concatBytes([])).toHaveLength(0);
  });

  const rows: [left: string, right: string, order: number][] = [
    ["", "", 0],
    ["00", "", 1],
    ["7f", "80", -1],
    ["ff", "00ff", 1],
    ["0102", "0103", -1],
    ["01", "0100", -1],
  ];
  test.each(rows)("%p compared with %p gives %p", (left, right, order) => {
    const [one, other] = [Uint8Array.fromHex(left), Uint8Array.fromHex(right)];
    expect(Math.sign(compareBytes(one, other))).toBe(order);
    expect(equalBytes(one, other)).toBe(order === 0);
  });
});
