/**
 * Deep hash: against its definition written out, and in pieces.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import fc from "fast-check";
import {
  createBlobHash,
  type DeepHashChunk,
  deepHash,
  deepHashBlob,
  deepHashList,
} from "../../src/arweave/deep-hash.ts";

/** The definition, word for word, with another implementation of SHA-384. */
function defined(chunk: DeepHashChunk): Buffer {
  const hash = (...parts: Uint8Array[]) => createHash("sha384").update(Buffer.concat(parts)).digest();
  if (chunk instanceof Uint8Array) return hash(hash(Buffer.from(`blob${chunk.length}`)), hash(chunk));
  return chunk.reduce<Buffer>((soFar, item) => hash(soFar, defined(item)), hash(Buffer.from(`list${chunk.length}`)));
}

const { chunk } = fc.letrec<{ chunk: DeepHashChunk }>((tie) => ({
  chunk: fc.oneof({ depthSize: "small" }, fc.uint8Array({ maxLength: 40 }), fc.array(tie("chunk"), { maxLength: 5 })),
}));

describe("deepHash", () => {
  test("is as defined, for blobs, lists, and lists of lists", () => {
    fc.assert(
      fc.property(chunk, (whole) => {
        expect(Buffer.from(deepHash(whole)).equals(defined(whole))).toBe(true);
      }),
      { examples: [[[]], [new Uint8Array(0)], [[[], [new Uint8Array(1_024)]]], [new Uint8Array(1_023)]] },
    );
  });

  test("tells apart what joins to the same bytes", () => {
    const [a, b, ab] = ["a", "b", "ab"].map((text) => Buffer.from(text));
    if (a === undefined || b === undefined || ab === undefined) throw new Error("three texts");
    const hashes = [ab, [ab], [a, b], [[a], b], [[a, b]], [a, b, Buffer.alloc(0)]].map((part) =>
      Buffer.from(deepHash(part)).toString("hex"),
    );
    expect(new Set(hashes).size).toBe(6);
  });

  test("a list of hashed items has the hash of the list", () => {
    const items = [new Uint8Array(3), new Uint8Array(2_000)];
    expect(deepHashList(items.map(deepHashBlob))).toEqual(deepHash(items));
  });
});

describe("createBlobHash", () => {
  test("pieces of any size give the hash of the whole", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 2_000 }), { maxLength: 6 }), (pieces) => {
        const whole = new Uint8Array(Buffer.concat(pieces));
        const hash = createBlobHash(whole.length);
        for (const piece of pieces) hash.update(piece);
        expect(hash.digest()).toEqual(deepHashBlob(whole));
      }),
      { numRuns: 50 },
    );
  });

  test("another number of bytes than announced is a defect of the caller", () => {
    const hash = createBlobHash(2);
    hash.update(new Uint8Array(1));
    expect(() => hash.digest()).toThrow("invariant broken");
  });
});
