/**
 * CDB64 files and MessagePack values: what was written is found, and hostile ones end in a word, soon.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { type Cdb64File, cdb64Hash, cdb64HeaderSize, lookUpCdb64 } from "../../src/lib/cdb64.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { readMessagePack } from "../../src/lib/message-pack.ts";
import { type Packable, writeCdb64, writeMessagePack } from "../support/cdb64.ts";
import { createChance, mutationSeed } from "../support/mutate.ts";

type CountedFile = Cdb64File & { reads: number; bytes: number };

function fileOf(bytes: Uint8Array, size = bytes.length): CountedFile {
  const file: CountedFile = {
    size,
    header: bytes.subarray(0, cdb64HeaderSize),
    reads: 0,
    bytes: 0,
    read: async (start, end) => {
      file.reads += 1;
      file.bytes += end - start;
      if (start < 0 || end > bytes.length || start >= end) throw new Error(`read ${start} to ${end}`);
      return bytes.subarray(start, end);
    },
  };
  return file;
}

function keyOf(number: number): Uint8Array {
  return sha256(Buffer.from(`key ${number}`));
}

function numbersAt(bytes: Uint8Array, at: number, ...numbers: bigint[]): Uint8Array {
  const copy = bytes.slice();
  const view = new DataView(copy.buffer);
  for (const [index, number] of numbers.entries()) view.setBigUint64(at + index * 8, number, true);
  return copy;
}

describe("a CDB64 file", () => {
  test("has the hashes of its format", () => {
    const cases: readonly (readonly [string, bigint])[] = [
      ["", 5_381n],
      ["a", (5_381n * 33n) ^ 97n],
      ["ab", (((5_381n * 33n) ^ 97n) * 33n) ^ 98n],
    ];
    for (const [text, hash] of cases) expect(cdb64Hash(Buffer.from(text))).toBe(hash);
    expect(cdb64Hash(new Uint8Array(32).fill(255)) < 2n ** 64n).toBe(true);
  });

  test("returns each of 5,000 values, and nothing for 5,000 other keys, in few reads", async () => {
    const records = Array.from({ length: 5_000 }, (_, index) => {
      const value = new Uint8Array(index % 700).fill(index % 251);
      return [keyOf(index), value] as const;
    });
    const bytes = writeCdb64(records);
    let [readsMost, absentReadsMost] = [0, 0];
    for (const [key, value] of records) {
      const file = fileOf(bytes);
      const response = await lookUpCdb64(file, key);
      expect(response.kind === "value" && Buffer.compare(response.value, value) === 0).toBe(true);
      readsMost = Math.max(readsMost, file.reads);
    }
    for (let index = 5_000; index < 10_000; index += 1) {
      const file = fileOf(bytes);
      expect(await lookUpCdb64(file, keyOf(index))).toEqual({ kind: "absent" });
      absentReadsMost = Math.max(absentReadsMost, file.reads);
    }
    // Slots, the record, the rest of a long one; a search that reaches its table's end goes on at its beginning.
    expect(readsMost).toBeLessThanOrEqual(4);
    expect(absentReadsMost).toBeLessThanOrEqual(2);
  });

  test("without records has no values", async () => {
    expect(await lookUpCdb64(fileOf(writeCdb64([])), keyOf(1))).toEqual({ kind: "absent" });
  });

  const key = keyOf(1);
  const good = writeCdb64([[key, new Uint8Array(10)]]);
  const at = Number(cdb64Hash(key) % 256n) * 16;
  const record = cdb64HeaderSize;
  const hash = cdb64Hash(key);
  const slots = (count: number, place: bigint) => {
    const body = Array.from({ length: count }, () => [hash, place]).flat();
    const table = good.length;
    const long = Buffer.concat([good, Buffer.alloc(count * 16)]);
    return numbersAt(numbersAt(long, table, ...body), at, BigInt(table), BigInt(count));
  };
  const hostile: readonly (readonly [string, Uint8Array, RegExp])[] = [
    ["a table before the records", numbersAt(good, at, 0n, 2n), /table is beyond/],
    ["a table beyond the end", numbersAt(good, at, BigInt(good.length), 1n), /table is beyond/],
    ["a table of 2^60 slots", numbersAt(good, at, 4_200n, 2n ** 60n), /table is beyond/],
    ["a table of 2^64 - 1 slots", numbersAt(good, at, 4_200n, 2n ** 64n - 1n), /table is beyond/],
    ["a record in the header", slots(1, 16n), /record is beyond/],
    ["a record beyond the end", slots(1, 2n ** 63n), /record is beyond/],
    ["a record without space for its head", slots(1, BigInt(good.length + 1)), /record is beyond/],
    ["a key of 2^63 bytes", numbersAt(good, record, 2n ** 63n), /extends beyond/],
    ["a value of 2^63 bytes", numbersAt(good, record, 32n, 2n ** 63n), /extends beyond/],
    ["a value of 5,000 bytes", writeCdb64([[key, new Uint8Array(5_000)]]), /more than 4096 bytes/],
    ["10,000 slots of its hash", slots(10_000, BigInt(good.length)), /more than 16 reads/],
  ];
  test.each(hostile)("with %s is malformed, after few reads", async (_name, bytes, reason) => {
    const file = fileOf(bytes);
    const response = await lookUpCdb64(file, key);
    expect(response).toEqual({ kind: "malformed", reason: expect.stringMatching(reason) });
    expect(file.reads).toBeLessThanOrEqual(16);
    expect(file.bytes).toBeLessThan(20_000);
  });

  test("of random bytes is never read beyond its end, or often", async () => {
    const chance = createChance(mutationSeed);
    console.log(`seed ${mutationSeed}`);
    for (let round = 0; round < 2_000; round += 1) {
      const bytes = good.slice();
      for (let flips = 1 + chance.below(20); flips > 0; flips -= 1)
        bytes[chance.below(bytes.length)] = chance.below(256);
      const file = fileOf(bytes);
      const response = await lookUpCdb64(file, key);
      expect(response.kind).toBeOneOf(["value", "absent", "malformed"]);
      expect(file.reads).toBeLessThanOrEqual(17);
    }
  });
});

describe("a MessagePack value", () => {
  const bytes32 = new Uint8Array(32).fill(9);
  const values: readonly Packable[] = [
    { r: bytes32 },
    { r: bytes32, i: 1_000, d: 2_000 },
    { p: [bytes32, bytes32, bytes32] },
    { p: [bytes32], i: 0, d: 2 ** 40 },
    { r: bytes32, i: 2 ** 31, d: 2 ** 32 },
    [1, "two", [3, [4]]],
    127,
    "text",
  ];
  test("is parsed as written", () => {
    const plain = (value: unknown): unknown => {
      if (value instanceof Map) return Object.fromEntries([...value].map(([key, part]) => [key, plain(part)]));
      return Array.isArray(value) ? value.map(plain) : value;
    };
    for (const value of values) expect(plain(readMessagePack(writeMessagePack(value)))).toEqual(value);
    expect(readMessagePack(Uint8Array.of(0xcf, 0, 0, 0, 1, 0, 0, 0, 0))).toBe(2 ** 32);
  });

  const bad: readonly (readonly [string, number[]])[] = [
    ["nothing", []],
    ["an unused type", [0xc1]],
    ["nil", [0xc0]],
    ["a negative number", [0xff]],
    ["a number beyond 2^53", [0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]],
    ["a broken number", [0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0]],
    ["a cut text", [0xa5, 0x61]],
    ["a text that is not UTF-8", [0xa1, 0xff]],
    ["a cut byte string", [0xc4, 0x20, 1]],
    ["a map of 65,535", [0xde, 0xff, 0xff]],
    ["a list of 65,535", [0xdc, 0xff, 0xff]],
    ["a list of 2^32 - 1", [0xdd, 0xff, 0xff, 0xff, 0xff]],
    ["a map with a key twice", [0x82, 0xa1, 0x61, 1, 0xa1, 0x61, 2]],
    ["a map with a key that is not text", [0x81, 1, 1]],
    ["100,000 lists in lists", Array.from({ length: 100_000 }, () => 0x91)],
    ["something after it", [1, 1]],
  ];
  test.each(bad)("that is %s is rejected", (_name, bytes) => {
    expect(readMessagePack(Uint8Array.from(bytes))).toBeUndefined();
  });
});
