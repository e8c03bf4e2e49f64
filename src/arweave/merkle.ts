/**
 * Merkle trees over offsets: how a data root commits to chunks, how a tx root commits to data roots, and proofs.
 *
 * A leaf is H(H(hash) ‖ H(end)), a branch H(H(left) ‖ H(right) ‖ H(end of left)); H is SHA-256 and an offset
 * ("note") 32 bytes big-endian. Rows pair from left to right and an odd node moves up as it is. A path lists, from
 * the root down, left ‖ right ‖ note of each branch and at last hash ‖ note of the leaf.
 *
 * A marker (32 zero bytes before a branch) means that offsets in the chosen half count from zero. In a half that
 * begins at zero the marker changes nothing, so paths with and without it prove the same place. Both are accepted: the
 * reference node writes the marker for a subtree that was built separately, which the root does not show.
 *
 * A data root is the root of a tree over the chunks of the data. Two rules split the tail. "plain" splits every
 * 256 KiB, as nodes split data in a transaction. "halved" is the rule of client libraries: when the last chunk would be
 * under 32 KiB, the last two are made equal. With both, data of a multiple of 256 KiB has an empty last chunk. That
 * chunk is in the tree but is never stored.
 * Source: docs/reference/formats.md#data-trees-and-chunks; results of the reference node
 * (test/arweave/merkle.test.ts).
 * @module
 */
import { assert } from "../lib/assert.ts";
import { concatBytes, equalBytes, readUnsigned, writeUnsignedFixed } from "../lib/bytes.ts";
import { sha256 } from "../lib/hash.ts";

/** A leaf: its hash (32 bytes; empty for padding and empty data), and its end offset. */
export type MerkleLeaf = Readonly<{ hash: Uint8Array; end: number | bigint }>;

/** A tree that can prove each of its leaves. */
export type MerkleTree = Readonly<{
  /** 32 bytes; empty for a tree without leaves. */
  root: Uint8Array;
  leafCount: number;
  /** Hashes of all leaves, in order. */
  hashes: Uint8Array;
  /** The path of one leaf. @param index - From 0 to `leafCount` − 1. */
  path(index: number): Uint8Array;
}>;

/**
 * How strictly a path is validated. The start of the block determines the rules of data paths (`rulesetAt`).
 * "basic" checks hashes only and is for tx paths.
 */
export type Ruleset = "basic" | "strict-borders" | "strict-split" | "relaxed";

/** A leaf that a path leads to. Offsets are half-open, from the start of the tree's data. */
export type ProvenLeaf = Readonly<{ hash: Uint8Array; start: bigint; end: bigint }>;

/** Bytes of a full chunk, and the grid that data and padding follow. */
export const chunkSize = 262_144;

/** Longest path: 2,730 branches of 96 bytes, each with a marker of 32, and the leaf. */
export const pathSizeMax = 349_504;

const hashSize = 32;
const noteSize = hashSize;
const leafSize = hashSize + noteSize;
const branchSize = 2 * hashSize + noteSize;
const chunkBig = BigInt(chunkSize);
const noHash = new Uint8Array(0);

/**
 * Builds a tree. It takes about 132 bytes of memory for each leaf, and one to three kilobytes; 256 leaves take 0.4 ms.
 *
 * @param leaves - In order; `end` never falls.
 */
export function buildTree(leaves: readonly MerkleLeaf[]): MerkleTree {
  const count = leaves.length;
  // One array for all: an object for each hash would take five times the memory (measured).
  const notes = concatBytes(leaves.map(({ end }) => noteOf(end)));
  const hashes = concatBytes(leaves.map(({ hash }) => hash));
  const hashEnds = endsOf(leaves);
  const hashOf = (index: number) => hashes.subarray(hashEnds[index - 1] ?? 0, hashEnds[index]);
  const rows = [concatBytes(leaves.map(({ hash }, index) => leafId(hash, wordAt(notes, index))))];
  for (let row = rows[0]; row !== undefined && row.length > hashSize; row = rows.at(-1))
    rows.push(rowAbove(row, notes, rows.length - 1));
  return {
    root: rows.at(-1) ?? noHash,
    leafCount: count,
    hashes,
    path(index) {
      assert(index >= 0 && index < count, "a path belongs to a leaf of the tree");
      const parts: Uint8Array[] = [];
      for (const [level, row] of [...rows.entries()].slice(0, -1).reverse()) {
        const left = (index >> level) & ~1;
        if ((left + 1) * hashSize >= row.length) continue; // an odd node has no branch of its own on this level
        parts.push(wordAt(row, left), wordAt(row, left + 1), wordAt(notes, ((left + 1) << level) - 1));
      }
      return concatBytes([...parts, hashOf(index), wordAt(notes, index)]);
    },
  };
}

/** The hash or note of a number in an array of them. */
function wordAt(words: Uint8Array, index: number): Uint8Array {
  return words.subarray(index * hashSize, (index + 1) * hashSize);
}

/** Where each leaf's hash ends in an array of all: some have none. */
function endsOf(leaves: readonly MerkleLeaf[]): Uint32Array {
  let end = 0;
  return Uint32Array.from(leaves, ({ hash }) => {
    end += hash.length;
    return end;
  });
}

/** The 32 bytes of an offset inside of trees and paths. */
export function noteOf(offset: number | bigint): Uint8Array {
  if (typeof offset === "bigint") return writeUnsignedFixed(offset, noteSize);
  assert(Number.isSafeInteger(offset) && offset >= 0, "an offset is a whole number of bytes");
  const note = new Uint8Array(noteSize);
  const view = new DataView(note.buffer);
  view.setUint32(24, Math.floor(offset / 2 ** 32));
  view.setUint32(28, offset >>> 0);
  return note;
}

/** The id of a leaf. */
export function leafId(hash: Uint8Array, note: Uint8Array): Uint8Array {
  return sha256Pair(sha256(hash), sha256(note));
}

/** The id of a branch; `note` is the offset at which its left half ends. */
export function branchId(left: Uint8Array, right: Uint8Array, note: Uint8Array): Uint8Array {
  return sha256(concatBytes([sha256(left), sha256(right), sha256(note)]));
}

/**
 * Follows a path from the root to the leaf at an offset, and verifies every hash.
 *
 * @param question.size - Bytes of the tree's data, above 0.
 * @param question.target - The offset of a byte, from 0 to `size` − 1; other offsets count as the nearest byte.
 * @returns The leaf, or `undefined` when the path does not lead from this root to that byte under these rules.
 */
export function validatePath(question: {
  root: Uint8Array;
  path: Uint8Array;
  target: number | bigint;
  size: number | bigint;
  ruleset: Ruleset;
}): ProvenLeaf | undefined {
  const { path, ruleset } = question;
  const size = BigInt(question.size);
  if (size <= 0n || path.length > pathSizeMax) return undefined;
  const step: Step = {
    id: question.root,
    target: clamp(BigInt(question.target), size),
    left: 0n,
    right: size,
    shift: 0n,
    rightmost: undefined,
  };
  let at = 0;
  while (path.length - at !== leafSize) {
    const marked = ruleset === "relaxed" && hasMarker(path, at);
    if (marked) at += hashSize;
    if (path.length - at < branchSize || !descend(step, path.subarray(at, at + branchSize), marked)) return undefined;
    at += branchSize;
  }
  return readLeaf(step, path.subarray(at), size, ruleset);
}

/**
 * The rules for chunks of a block.
 *
 * @param blockStart - Weave offset at which the block's data begins.
 * @param thresholds - From the block; `undefined` means that these rules do not apply.
 */
export function rulesetAt(
  blockStart: bigint,
  thresholds: { strictSplitThreshold: bigint | undefined; rebaseThreshold: bigint | undefined },
): "strict-borders" | "strict-split" | "relaxed" {
  const { strictSplitThreshold: strict, rebaseThreshold: rebase } = thresholds;
  if (rebase !== undefined && blockStart >= rebase) return "relaxed";
  return strict !== undefined && blockStart >= strict ? "strict-split" : "strict-borders";
}

/** The position in a path. Bounds are half-open, relative to `shift`. */
type Step = {
  id: Uint8Array;
  target: bigint;
  left: bigint;
  right: bigint;
  /** Offset of the current rebased subtree. */
  shift: bigint;
  /** Whether all branches since the root of the subtree were right ones; `undefined` before the first branch. */
  rightmost: boolean | undefined;
};

/** Takes one branch; false when its hashes are not those of the node above. */
function descend(step: Step, branch: Uint8Array, rebased: boolean): boolean {
  const [leftId, rightId, noteBytes] = branchParts(branch);
  if (!equalBytes(branchId(leftId, rightId, noteBytes), step.id)) return false;
  const note = readUnsigned(noteBytes);
  const goesLeft = step.target < note;
  const left = goesLeft ? step.left : larger(step.left, note);
  const right = goesLeft ? smaller(step.right, note) : step.right;
  step.id = goesLeft ? leftId : rightId;
  if (!rebased) {
    step.left = left;
    step.right = right;
    step.rightmost = goesLeft ? false : (step.rightmost ?? true);
    return true;
  }
  // Offsets of a rebased subtree count from zero, and its rules apply to it alone.
  step.left = 0n;
  step.right = right - left;
  step.target -= left;
  step.shift += left;
  step.rightmost = undefined;
  return true;
}

function readLeaf(step: Step, leaf: Uint8Array, size: bigint, ruleset: Ruleset): ProvenLeaf | undefined {
  const hash = leaf.subarray(0, hashSize);
  const noteBytes = leaf.subarray(hashSize);
  const end = readUnsigned(noteBytes);
  if (ruleset !== "basic" && (end - step.left > chunkBig || step.right - step.left > chunkBig)) return undefined;
  if (ruleset === "strict-split" && !isSplitStrictly(step, end, size)) return undefined;
  if (ruleset === "relaxed" && !isSplitRelaxed(step, end)) return undefined;
  if (!equalBytes(leafId(hash, noteBytes), step.id)) return undefined;
  const covered = larger(smaller(step.right, end), step.left + 1n);
  return { hash, start: step.shift + step.left, end: step.shift + covered };
}

/** Every chunk starts on the grid, except the last, which may start where a halved chunk ended. */
function isSplitStrictly({ left, right }: Step, end: bigint, size: bigint): boolean {
  const onGrid = left % chunkBig === 0n;
  if (end - left === chunkBig) return onGrid;
  if (end === size) return right % chunkBig > 0n && left <= right - (right % chunkBig);
  return onGrid && size - left > chunkBig && size - left < 2n * chunkBig;
}

/** Only the last chunk of a subtree may start off the grid; it must then end in the next grid step. */
function isSplitRelaxed({ left, shift, rightmost }: Step, end: bigint): boolean {
  const from = shift + left;
  const to = shift + end;
  if (from % chunkBig === 0n) return true;
  return rightmost === true && from / chunkBig + 1n === to / chunkBig && to % chunkBig !== 0n;
}

function rowAbove(row: Uint8Array, notes: Uint8Array, level: number): Uint8Array {
  const count = row.length / hashSize;
  const above = new Uint8Array(Math.ceil(count / 2) * hashSize);
  for (let index = 0; index < count; index += 2) {
    const left = wordAt(row, index);
    const isOdd = index + 1 === count;
    const id = isOdd ? left : branchId(left, wordAt(row, index + 1), wordAt(notes, ((index + 1) << level) - 1));
    above.set(id, (index / 2) * hashSize);
  }
  return above;
}

function hasMarker(path: Uint8Array, at: number): boolean {
  if (path.length - at < hashSize + branchSize) return false;
  for (let index = at; index < at + hashSize; index++) if (path[index] !== 0) return false;
  return true;
}

function branchParts(branch: Uint8Array): [Uint8Array, Uint8Array, Uint8Array] {
  return [branch.subarray(0, hashSize), branch.subarray(hashSize, 2 * hashSize), branch.subarray(2 * hashSize)];
}

function clamp(target: bigint, size: bigint): bigint {
  return smaller(larger(target, 0n), size - 1n);
}

function smaller(left: bigint, right: bigint): bigint {
  return left < right ? left : right;
}

function larger(left: bigint, right: bigint): bigint {
  return left > right ? left : right;
}

function sha256Pair(left: Uint8Array, right: Uint8Array): Uint8Array {
  const pair = new Uint8Array(2 * hashSize);
  pair.set(left, 0);
  pair.set(right, hashSize);
  return sha256(pair);
}

/** How the last chunks are split. */
export type TailRule = "halved" | "plain";

/** A chunk's place in its data: bytes, half-open. */
export type ChunkSpan = Readonly<{ start: number; end: number }>;

/** Computes a data root of data that arrives in pieces. */
export type DataRootHash = Readonly<{
  /** Adds the next bytes. */
  update(piece: Uint8Array): void;
  /** Returns the tree. Call it once, after exactly the announced number of bytes. */
  finish(): MerkleTree;
}>;

/** A shorter last chunk is balanced with the one before (rule "halved"). */
const lastChunkSizeMin = 32_768;

/**
 * Splits data into chunks.
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

/** The tree over data in memory. */
export function dataTreeOf(data: Uint8Array, rule: TailRule): MerkleTree {
  const spans = chunkSpans(data.length, rule);
  return buildTree(spans.map(({ start, end }) => ({ hash: sha256(data.subarray(start, end)), end })));
}

/**
 * The tree over data whose chunks have these hashes.
 *
 * @param size - Bytes of the data.
 * @param hashes - The `hashes` of such a tree: 32 bytes for each of `chunkSpans(size, rule)`.
 */
export function dataTreeOfHashes(hashes: Uint8Array, size: number, rule: TailRule): MerkleTree {
  const spans = chunkSpans(size, rule);
  assert(hashes.length === spans.length * hashSize, "each chunk has a hash");
  return buildTree(spans.map(({ end }, index) => ({ hash: wordAt(hashes, index), end })));
}

/** The data root (32 bytes) of data in memory. Also for empty data, although format 2 then states no root. */
export function dataRootOf(data: Uint8Array, rule: TailRule): Uint8Array {
  return dataTreeOf(data, rule).root;
}

/**
 * Begins a data root of data that arrives in pieces of any size.
 *
 * @param size - The exact number of bytes.
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
      assert(at + piece.length <= size, "a data root gets no more bytes than were announced");
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
      assert(at === size, "a data root gets as many bytes as were announced");
      if (hashes.length < spans.length) endChunk(); // the empty last chunk
      const none = new Uint8Array(0);
      return buildTree(spans.map(({ end }, index) => ({ hash: hashes[index] ?? none, end })));
    },
  };
}
