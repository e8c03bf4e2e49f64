/**
 * QR codes, read back by a reader that shares no code with the writer: format, mask, order of the modules, blocks, and
 * Reed-Solomon syndromes by tables of logarithms.
 * Source: ISO/IEC 18004:2015 §7, §12.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { encodeQrCode, type QrCode, qrBytesMax } from "../../console/account/qr-code.ts";

/** Codewords of level M (table 9): all, of error correction, and blocks, by version. */
const tableM = [
  [26, 10, 1],
  [44, 16, 1],
  [70, 26, 1],
  [100, 36, 2],
  [134, 48, 2],
  [172, 64, 4],
  [196, 72, 4],
  [242, 88, 4],
  [292, 110, 5],
  [346, 130, 5],
] as const;

/** Bytes that each version holds at level M (table 7). */
const capacities = [14, 26, 42, 62, 84, 106, 122, 152, 180, 213];

/** The 15 bits of the format of level M, by mask (table C.1). */
const formats = [
  "101010000010010",
  "101000100100101",
  "101111001111100",
  "101101101001011",
  "100010111111001",
  "100000011001110",
  "100111110010111",
  "100101010100000",
];

/** The 18 bits of the versions from 7 on (table D.1). */
const versions = ["000111110010010100", "001000010110111100", "001001101010011001", "001010010011010011"];

/** Row and column of centers of alignment patterns (table E.1). */
const alignments = [
  [],
  [6, 18],
  [6, 22],
  [6, 26],
  [6, 30],
  [6, 34],
  [6, 22, 38],
  [6, 24, 42],
  [6, 26, 46],
  [6, 28, 50],
];

const maskRules: readonly ((row: number, column: number) => number)[] = [
  (i, j) => (i + j) % 2,
  (i) => i % 2,
  (_, j) => j % 3,
  (i, j) => (i + j) % 3,
  (i, j) => (Math.floor(i / 2) + Math.floor(j / 3)) % 2,
  (i, j) => ((i * j) % 2) + ((i * j) % 3),
  (i, j) => (((i * j) % 2) + ((i * j) % 3)) % 2,
  (i, j) => (((i * j) % 3) + ((i + j) % 2)) % 2,
];

const at = (code: QrCode, row: number, column: number) => (code[row]?.[column] ? "1" : "0");

/** The format bits beside the upper left finder, and their copy at the two others; the most significant first. */
function formatsOf(code: QrCode): readonly string[] {
  const size = code.length;
  const first = [0, 1, 2, 3, 4, 5, 7, 8].map((column) => at(code, 8, column));
  const rest = [7, 5, 4, 3, 2, 1, 0].map((row) => at(code, row, 8));
  const lower = Array.from({ length: 7 }, (_, index) => at(code, size - 1 - index, 8));
  const right = Array.from({ length: 8 }, (_, index) => at(code, 8, size - 8 + index));
  return [[...first, ...rest].join(""), [...lower, ...right].join("")];
}

function isFunction(row: number, column: number, version: number): boolean {
  const size = 17 + 4 * version;
  if (row === 6 || column === 6) return true;
  const isNear = (index: number) => index <= 8;
  const isFar = (index: number) => index >= size - 8;
  if ((isNear(row) && (isNear(column) || isFar(column))) || (isFar(row) && isNear(column))) return true;
  const isVersion = (one: number, other: number) => one < 6 && other >= size - 11;
  if (version >= 7 && (isVersion(row, column) || isVersion(column, row))) return true;
  const centers = alignments[version - 1] ?? [];
  const last = centers.at(-1);
  return centers.some((y) =>
    centers.some((x) => {
      const isFinder = (x === 6 && (y === 6 || y === last)) || (x === last && y === 6);
      return !isFinder && Math.abs(row - y) <= 2 && Math.abs(column - x) <= 2;
    }),
  );
}

function codewordsOf(code: QrCode, version: number, mask: number): number[] {
  const size = code.length;
  const columns = Array.from({ length: size }, (_, index) => size - 1 - index).filter((column) => column !== 6);
  let bits = "";
  for (let pair = 0; pair < columns.length; pair += 2) {
    for (let step = 0; step < size; step += 1) {
      const row = pair % 4 === 0 ? size - 1 - step : step;
      for (const column of columns.slice(pair, pair + 2)) {
        if (isFunction(row, column, version)) continue;
        const isInverted = maskRules[mask]?.(row, column) === 0;
        bits += (at(code, row, column) === "1") === isInverted ? "0" : "1";
      }
    }
  }
  return (bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2));
}

const exponents: number[] = [];
for (let power = 0, value = 1; power < 255; power += 1) {
  exponents.push(value);
  value = value >= 128 ? (value * 2) ^ 285 : value * 2;
}
const powers = (power: number) => exponents[power % 255] ?? 0;
const product = (left: number, right: number) =>
  left === 0 || right === 0 ? 0 : powers(exponents.indexOf(left) + exponents.indexOf(right));

/** Values of a block's polynomial at the roots of the generator: zeros for a block without a fault. */
function syndromes(block: readonly number[], count: number): number[] {
  return Array.from({ length: count }, (_, root) =>
    block.reduce((value, word) => product(value, powers(root)) ^ word, 0),
  );
}

type Read = Readonly<{ text: string; version: number; mask: number; faults: number }>;

function readQrCode(code: QrCode): Read {
  const version = (code.length - 17) / 4;
  const [format = "", copy] = formatsOf(code);
  expect(copy).toBe(format);
  const mask = formats.indexOf(format);
  const [all, correction, count] = tableM[version - 1] ?? [0, 0, 1];
  const words = codewordsOf(code, version, mask).slice(0, all);
  const short = Math.floor((all - correction) / count);
  const longs = (all - correction) % count;
  const blocks = Array.from({ length: count }, (): number[] => []);
  let next = 0;
  for (let column = 0; column <= short; column += 1)
    for (const [index, block] of blocks.entries())
      if (column < short || index >= count - longs) block.push(words[next++] ?? 0);
  const data = blocks.flat();
  for (let column = 0; column < correction / count; column += 1)
    for (const block of blocks) block.push(words[next++] ?? 0);
  const faults = blocks.flatMap((block) => syndromes(block, correction / count)).filter((value) => value !== 0);
  const bits = data.map((word) => word.toString(2).padStart(8, "0")).join("");
  const countBits = version < 10 ? 8 : 16;
  expect(bits.slice(0, 4)).toBe("0100");
  const size = Number.parseInt(bits.slice(4, 4 + countBits), 2);
  const start = 4 + countBits;
  const bytes = Array.from({ length: size }, (_, index) =>
    Number.parseInt(bits.slice(start + 8 * index, start + 8 * index + 8), 2),
  );
  return { text: new TextDecoder().decode(Uint8Array.from(bytes)), version, mask, faults: faults.length };
}

describe("a QR code", () => {
  test.each(
    capacities.flatMap((size, index) => [
      [index + 1, size] as const,
      [index + 1, (capacities[index - 1] ?? 0) + 1] as const,
    ]),
  )("of version %d holds %d bytes, without faults", (version, size) => {
    const text = Array.from({ length: size }, (_, index) => String.fromCharCode(33 + ((index * 31 + size) % 90))).join(
      "",
    );
    const read = readQrCode(encodeQrCode(text));
    expect(read).toMatchObject({ text, version, faults: 0 });
    expect(read.mask).toBeGreaterThanOrEqual(0);
  });

  test("holds the address and the amount of a payment, and text beyond ASCII", () => {
    for (const text of ["", "solana:9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin?amount=0.25", "Grüße, 世界"])
      expect(readQrCode(encodeQrCode(text))).toMatchObject({ text, faults: 0 });
  });

  test("uses different masks for different texts", () => {
    const found = Array.from({ length: 40 }, (_, index) => readQrCode(encodeQrCode(`text ${index}`)).mask);
    expect(new Set(found).size).toBeGreaterThan(3);
  });

  test("has finders, timing patterns and the dark module in their places", () => {
    const finder = ["1111111", "1000001", "1011101", "1011101", "1011101", "1000001", "1111111"];
    for (const size of [1, 60, 200]) {
      const code = encodeQrCode("x".repeat(size));
      const rows = code.map((_, row) => code.map((_, column) => at(code, row, column)).join(""));
      const last = code.length - 7;
      expect(rows.slice(0, 7).map((row) => row.slice(0, 7))).toEqual(finder);
      expect(rows.slice(0, 7).map((row) => row.slice(last))).toEqual(finder);
      expect(rows.slice(last).map((row) => row.slice(0, 7))).toEqual(finder);
      expect(rows[6]?.slice(7, last)).toMatch(/^0(10)+$/);
      expect(
        rows
          .map((row) => row[6])
          .join("")
          .slice(7, last),
      ).toMatch(/^0(10)+$/);
      expect(at(code, code.length - 8, 8)).toBe("1");
    }
  });

  test.each(versions.map((bits, index) => [index + 7, bits] as const))("states version %d twice", (version, bits) => {
    const code = encodeQrCode("x".repeat(capacities[version - 1] ?? 0));
    const places = Array.from({ length: 18 }, (_, index) => 17 - index);
    const far = (place: number) => code.length - 11 + (place % 3);
    const upper = places.map((place) => at(code, Math.floor(place / 3), far(place))).join("");
    const lower = places.map((place) => at(code, far(place), Math.floor(place / 3))).join("");
    expect([upper, lower]).toEqual([bits, bits]);
  });

  test("cannot hold more than the largest version", () => {
    expect(() => encodeQrCode("x".repeat(qrBytesMax + 1))).toThrow("a QR code holds at most 213 bytes: 214");
  });
});
