/**
 * Data roots: how data is split into chunks, and the tree over them.
 *
 * Two rules are in use for the tail. "plain" steps by 256 KiB, as nodes split what is attached to a transaction.
 * "halved" is what client libraries do: when the last step would be under 32 KiB, the last two are made equal. Both
 * leave an empty last chunk when the size is a multiple of 256 KiB; it stands in the tree but is never stored.
 * Source: docs/reference/formats.md#data-trees-and-chunks.
 * @module
 */
import { assert } from "../lib/assert.ts";
import { sha256 } from "../lib/hash.ts";
import { buildTree, chunkSize, type MerkleTree } from "./merkle.ts";

/** How the last chunks are cut. */
export type TailRule = "halved" | "plain";

/** A chunk's place in its data: bytes, half-open. */
export type ChunkSpan = Readonly<{ start: number; end: number }>;

/** A data root in the making. */
export type DataRootHash = Readonly<{
  /** Takes in the next bytes. */
  update(piece: Uint8Array): void;
  /** The finished tree; to be asked once, when exactly the announced number of bytes has come. */
  finish(): MerkleTree;
}>;

/** Under this, a last chunk takes half of its predecessor (rule "halved"). */
const lastChunkSizeMin = 32_768;

/**
 * Cuts data into chunks.
 *
 * @param size - Bytes of data, 0 or more.
 * @returns In order, covering the data; the last span is empty when `size` is a multiple of 256 KiB.
 */
export function chunkSpans(size: number, rule: TailRule): ChunkSpan[] {
  assert(Number.isSafeInteger(size) && size >= 0, "a data size is a whole number of bytes");
  const spans: ChunkSpan[] = [];
  let start = 0;
  while (size - start >= chunkSize) {
    const after = size - start - chunkSize;
    const halves = rule === "halved" && after > 0 && after < lastChunkSizeMin;
    const end = halves ? start + Math.ceil((size - start) / 2) : start + chunkSize;
    spans.push({ start, end });
    start = end;
  }
  spans.push({ start, end: size });
  return spans;
}

/** The tree over data at hand. */
export function dataTreeOf(data: Uint8Array, rule: TailRule): MerkleTree {
  const spans = chunkSpans(data.length, rule);
  return buildTree(spans.map(({ start, end }) => ({ hash: sha256(data.subarray(start, end)), end })));
}

/** The data root (32 bytes) of data at hand. Format 2 states no root for no data; this gives one all the same. */
export function dataRootOf(data: Uint8Array, rule: TailRule): Uint8Array {
  return dataTreeOf(data, rule).root;
}

/**
 * Begins a data root whose bytes arrive in pieces of any size.
 *
 * @param size - Bytes that will come, exactly. The tree takes about 100 bytes of memory for each chunk.
 */
export function createDataRoot(size: number, rule: TailRule): DataRootHash {
  const spans = chunkSpans(size, rule);
  const hashes: Uint8Array[] = [];
  let hasher = new Bun.CryptoHasher("sha256");
  let at = 0;
  const endChunk = () => {
    hashes.push(hasher.digest());
    hasher = new Bun.CryptoHasher("sha256");
  };
  return {
    update(piece) {
      assert(at + piece.length <= size, "a data root gets no more bytes than it was told");
      let taken = 0;
      while (taken < piece.length) {
        const end = spans[hashes.length]?.end ?? size;
        const step = Math.min(piece.length - taken, end - at);
        hasher.update(piece.subarray(taken, taken + step));
        taken += step;
        at += step;
        if (at === end) endChunk();
      }
    },
    finish() {
      assert(at === size, "a data root gets as many bytes as it was told");
      if (hashes.length < spans.length) endChunk(); // the empty last chunk
      const none = new Uint8Array(0);
      return buildTree(spans.map(({ end }, index) => ({ hash: hashes[index] ?? none, end })));
    },
  };
}
