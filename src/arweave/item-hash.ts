/**
 * What a data item's signature signs, computed in one walk over the payload together with its SHA-256.
 *
 * The message is the deep hash of ["dataitem", "1", type, owner, target, anchor, tags, data]. The head of that
 * list depends on the type alone and is computed once; most targets and anchors are empty and cost nothing.
 * Source: ANS-104 §3 (signature), deep hash: `deep-hash.ts`.
 * @module
 */
import { assert } from "../lib/assert.ts";
import { sha256, sha384 } from "../lib/hash.ts";
import { signatureSchemes } from "./signature.ts";

/** What of an item is signed besides its payload; an absent target or anchor is empty. */
export type SignedFields = Readonly<{
  signatureType: number;
  owner: Uint8Array;
  targetBytes: Uint8Array;
  anchorBytes: Uint8Array;
  /** The tag section as it stands on the wire. */
  rawTags: Uint8Array;
}>;

/** The two hashes of an item: the 48-byte message that is signed, the payload's 32-byte SHA-256. */
export type ItemDigests = Readonly<{ message: Uint8Array; digest: Uint8Array }>;

/** A payload on its way through both hashes. */
export type ItemHash = Readonly<{
  update(piece: Uint8Array): void;
  /** Ends the walk. The pieces must have come to exactly the size that was said. */
  finish(): ItemDigests;
}>;

const hashSize = 48;
const digestSize = 32;
const encoder = new TextEncoder();

/** Scratch space of the two hashes that a step joins; no step is interrupted by another. */
const pair = new Uint8Array(2 * hashSize);

/** Hashes of "blob" and a length, kept for lengths up to that of a strict tag section: owners and tags repeat. */
const lengthHashes: Uint8Array[] = [];
const lengthKeptMax = 4_096;

const emptyLeaf = join(lengthHash(0), sha384(new Uint8Array(0)));

/** The running hash of the list's first three elements, by signature type. */
const heads = new Map<number, Uint8Array>(signatureSchemes.map(({ type }) => [type, headOf(type)]));

/**
 * Begins the walk over an item's payload.
 *
 * @param fields - Of a known signature type.
 * @param dataSize - The payload's size in bytes.
 */
export function createItemHash(fields: SignedFields, dataSize: number): ItemHash {
  const signed = new Bun.SHA384();
  const content = new Bun.SHA256();
  let seen = 0;
  return {
    update: (piece) => {
      signed.update(piece);
      content.update(piece);
      seen += piece.length;
    },
    finish: () => {
      assert(seen === dataSize, "an item is hashed over exactly its payload");
      const dataHash = new Uint8Array(hashSize);
      const digest = new Uint8Array(digestSize);
      signed.digest(dataHash);
      content.digest(digest);
      return { message: messageOf(fields, dataSize, dataHash), digest };
    },
  };
}

/** Hashes an item whose payload is at hand. */
export function hashItem(fields: SignedFields, data: Uint8Array): ItemDigests {
  return { message: messageOf(fields, data.length, sha384(data)), digest: sha256(data) };
}

function messageOf(fields: SignedFields, dataSize: number, dataHash: Uint8Array): Uint8Array {
  const head = heads.get(fields.signatureType);
  assert(head !== undefined, "only items of a known signature type are hashed");
  let running = join(head, blobLeaf(fields.owner));
  running = join(running, blobLeaf(fields.targetBytes));
  running = join(running, blobLeaf(fields.anchorBytes));
  running = join(running, blobLeaf(fields.rawTags));
  return join(running, join(lengthHash(dataSize), dataHash));
}

function headOf(type: number): Uint8Array {
  const start = textHash("list8");
  return ["dataitem", "1", String(type)].reduce(
    (running, text) => join(running, blobLeaf(encoder.encode(text))),
    start,
  );
}

function blobLeaf(bytes: Uint8Array): Uint8Array {
  return bytes.length === 0 ? emptyLeaf : join(lengthHash(bytes.length), sha384(bytes));
}

function join(left: Uint8Array, right: Uint8Array): Uint8Array {
  pair.set(left, 0);
  pair.set(right, hashSize);
  return sha384(pair);
}

function lengthHash(length: number): Uint8Array {
  const kept = lengthHashes[length];
  if (kept !== undefined) return kept;
  const hash = textHash(`blob${length}`);
  if (length <= lengthKeptMax) lengthHashes[length] = hash;
  return hash;
}

function textHash(text: string): Uint8Array {
  return sha384(encoder.encode(text));
}
