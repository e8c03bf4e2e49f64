/**
 * Ids, amounts and tags: the small words of the chain.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  type Address,
  addressKey,
  addressOf,
  addressOfKey,
  blockHashBytes,
  blockHashFromBytes,
  idBytes,
  idFromBytes,
  idOfSignature,
  isAddress,
  isBlockHash,
  isId,
  isOwnerAddress,
  readAddress,
  readBlockHash,
  readId,
} from "../../src/arweave/id.ts";
import { decodeTags, encodeTags, tagValue } from "../../src/arweave/tags.ts";
import { readWinc, winc, winston, winstonPerAr } from "../../src/arweave/winston.ts";
import { decodeBase64url, encodeBase64url } from "../../src/lib/base64url.ts";
import { utf8Bytes } from "../../src/lib/bytes.ts";

const zeros = "A".repeat(43);

describe("ids", () => {
  const rejected: [text: string, why: string][] = [
    ["", "no text"],
    ["A".repeat(42), "42 characters"],
    ["A".repeat(44), "44 characters"],
    [`${"A".repeat(42)}+`, "the other alphabet"],
    [`${"A".repeat(42)}\n`, "a line end"],
    [`${"A".repeat(42)}\u0141`, "a character whose low byte is that of A"],
  ];
  test.each(rejected)("%p is not a valid id: %s", (text) => {
    expect([isId(text), readId(text), isAddress(text), readAddress(text)]).toEqual([
      false,
      undefined,
      false,
      undefined,
    ]);
  });

  test("a last character with bits that are left out is of an address, not of an id or an owner", () => {
    const text = `${"A".repeat(42)}B`;
    expect([isId(text), readId(text), isOwnerAddress(text)]).toEqual([false, undefined, false]);
    expect([isAddress(text), readAddress(text) as string | undefined]).toEqual([true, text]);
    const keys = [zeros, text].map((address) => addressKey(address as Address));
    expect(keys.map((key) => key.length)).toEqual([32, 43]);
    expect(keys.map(addressOfKey)).toEqual([zeros, text]);
  });

  test("32 zero bytes have an id", () => {
    expect(readId(zeros)).toBe(zeros as never);
    expect(idBytes(idFromBytes(new Uint8Array(32))).toHex()).toBe("00".repeat(32));
  });

  test("any 32 bytes come back, and exactly the canonical texts of 43 characters are ids", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), fc.constantFrom(..."AEIB1_"), (bytes, last) => {
        const id = idFromBytes(bytes);
        expect(isId(id) && idBytes(id).toHex()).toBe(bytes.toHex());
        const other = id.slice(0, 42) + last;
        expect(isId(other)).toBe(decodeBase64url(other)?.length === 32);
      }),
    );
  });

  test("other lengths are a defect of ours", () => {
    expect(() => idFromBytes(new Uint8Array(31))).toThrow("invariant broken");
    expect(() => blockHashFromBytes(new Uint8Array(32))).toThrow("invariant broken");
  });

  test("the id of a signature and the address of a key are their SHA-256", () => {
    const known = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";
    expect([String(idOfSignature(new Uint8Array(0))), String(addressOf(new Uint8Array(0)))]).toEqual([known, known]);
  });

  test("a block hash has 64 characters", () => {
    const hash = readBlockHash("A".repeat(64));
    expect(hash && blockHashBytes(hash)).toHaveLength(48);
    for (const text of ["", "A".repeat(63), "A".repeat(65), `${"A".repeat(63)}=`]) {
      expect([isBlockHash(text), readBlockHash(text)]).toEqual([false, undefined]);
    }
  });
});

describe("amounts", () => {
  const rows: [text: string, amount: bigint | undefined][] = [
    ["0", 0n],
    ["1", 1n],
    ["1000000000000", 1_000_000_000_000n],
    ["9".repeat(120), BigInt("9".repeat(120))],
    ["9".repeat(121), undefined],
    ["", undefined],
    ["00", undefined],
    ["01", undefined],
    ["-1", undefined],
    ["+1", undefined],
    ["1.0", undefined],
    ["1e3", undefined],
    [" 1", undefined],
    ["0x10", undefined],
    ["١", undefined],
  ];
  test.each(rows)("%p is %p winc", (text, amount) => {
    expect(readWinc(text) as unknown).toEqual(amount);
  });

  test("one AR is 10^12 winston, and an amount is never negative", () => {
    expect(winston(winstonPerAr)).toBe((10n ** 12n) as never);
    expect(() => winston(-1n)).toThrow("invariant broken");
    expect(() => winc(-1n)).toThrow("invariant broken");
  });
});

describe("tags", () => {
  test("text comes back, a leading byte order mark and empty parts too", () => {
    const tags = [
      { name: "App", value: "\ufeffx" },
      { name: "", value: "" },
      { name: "Grüße", value: "☃\u{1f600}" },
    ];
    expect(decodeTags(encodeTags(tags))).toEqual(tags);
  });

  test("bytes that are not UTF-8 are as U+FFFD", () => {
    expect(decodeTags([{ name: utf8Bytes("a"), value: Uint8Array.of(0xff, 0x41) }])).toEqual([
      { name: "a", value: "\ufffdA" },
    ]);
  });

  test("the first tag of a name counts, and case counts", () => {
    const tags = [
      { name: "a", value: "1" },
      { name: "A", value: "2" },
      { name: "a", value: "3" },
    ];
    expect(["a", "A", "b"].map((name) => tagValue(tags, name))).toEqual(["1", "2", undefined]);
  });
});

test("texts of addresses and bytes are one", () => {
  expect(encodeBase64url(new Uint8Array(32))).toBe(zeros);
});
