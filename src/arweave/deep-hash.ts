/**
 * Deep hash: the hash of a nested list of byte strings. Different structures have different hashes.
 *
 * A blob is H(H("blob" + size) ‖ H(bytes)); a list starts with H("list" + count) and adds each item's deep hash
 * one after the other, H(so far ‖ item). H is SHA-384, numbers are decimal text.
 * Source: docs/reference/formats.md#deep-hash.
 * @module
 */
import { assert } from "../lib/assert.ts";
import { utf8Bytes } from "../lib/bytes.ts";
import { sha384 } from "../lib/hash.ts";

/** A value to hash: bytes, or a list of values. */
export type DeepHashChunk = Uint8Array | readonly DeepHashChunk[];

/** The deep hash of one blob whose bytes arrive in pieces. */
export type BlobHash = Readonly<{
  /** Adds the next bytes. */
  update(piece: Uint8Array): void;
  /** Returns the 48 bytes. Call it once, after exactly the announced number of bytes. */
  digest(): Uint8Array;
}>;

/** Bytes of a deep hash. */
const deepHashSize = 48;

/** Hashes of tags for sizes and counts below this are cached: nearly every field is shorter. */
const rememberedTags = 1_024;

/** A buffer for two joined hashes; each use is synchronous. */
const pair = new Uint8Array(2 * deepHashSize);

const blobTags: (Uint8Array | undefined)[] = new Array(rememberedTags);
const listTags: (Uint8Array | undefined)[] = new Array(rememberedTags);

/** Most targets and anchors are empty: hashed once. */
const emptyBlob = join(tagHash("blob", 0), sha384(new Uint8Array(0)));

/** The deep hash (48 bytes) of a chunk. The caller bounds how deep lists nest. */
export function deepHash(chunk: DeepHashChunk): Uint8Array {
  return chunk instanceof Uint8Array ? deepHashBlob(chunk) : deepHashList(chunk.map(deepHash));
}

/** The deep hash of one blob. */
export function deepHashBlob(bytes: Uint8Array): Uint8Array {
  return bytes.length === 0 ? emptyBlob : join(tagHash("blob", bytes.length), sha384(bytes));
}

/**
 * The deep hash of a list whose items are hashed already.
 *
 * @param items - The deep hash of each item, in order.
 */
export function deepHashList(items: readonly Uint8Array[]): Uint8Array {
  return items.reduce(extendDeepHash, beginDeepHash(items.length));
}

/** The deep hash of a list of `count` items before its first item. */
export function beginDeepHash(count: number): Uint8Array {
  return tagHash("list", count);
}

/** The deep hash of a list after its next item. @param item - The item's deep hash. */
export function extendDeepHash(soFar: Uint8Array, item: Uint8Array): Uint8Array {
  return join(soFar, item);
}

/**
 * Begins the deep hash of a blob that arrives in pieces.
 *
 * @param size - The exact number of bytes; `undefined` when it is not known before the end.
 */
export function createBlobHash(size: number | undefined): BlobHash {
  const hasher = new Bun.CryptoHasher("sha384");
  let come = 0;
  return {
    update(piece) {
      come += piece.length;
      hasher.update(piece);
    },
    digest() {
      assert(size === undefined || come === size, "a blob hash gets as many bytes as were announced");
      return join(tagHash("blob", come), hasher.digest());
    },
  };
}

function tagHash(kind: "blob" | "list", size: number): Uint8Array {
  const remembered = kind === "blob" ? blobTags : listTags;
  const known = remembered[size];
  if (known !== undefined) return known;
  const made = sha384(utf8Bytes(kind + size));
  if (size < rememberedTags) remembered[size] = made;
  return made;
}

function join(left: Uint8Array, right: Uint8Array): Uint8Array {
  pair.set(left, 0);
  pair.set(right, deepHashSize);
  return sha384(pair);
}
