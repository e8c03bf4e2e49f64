/**
 * What a data item's signature signs, computed in one walk over the payload together with its SHA-256.
 *
 * The message is the deep hash of ["dataitem", "1", type, owner, target, anchor, tags, data]. Leaves that are the
 * same for every item, or empty as most targets and anchors are, are hashed once.
 * Source: ANS-104 §3.
 * @module
 */
import { assert } from "../lib/assert.ts";
import { utf8Bytes } from "../lib/bytes.ts";
import { sha256, sha384 } from "../lib/hash.ts";
import { createBlobHash, deepHashBlob } from "./deep-hash.ts";
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

/** Scratch space for two hashes that are joined; nothing interrupts a step that uses it. */
const pair = new Uint8Array(2 * hashSize);

const emptyLeaf = deepHashBlob(new Uint8Array(0));

/** The running hash of the list after its first three elements, by signature type. */
const heads = new Map<number, Uint8Array>(signatureSchemes.map(({ type }) => [type, headOf(type)]));

/**
 * Begins the walk over an item's payload.
 *
 * @param fields - Of a known signature type.
 * @param dataSize - The payload's size in bytes.
 */
export function createItemHash(fields: SignedFields, dataSize: number): ItemHash {
  const signed = createBlobHash(dataSize);
  const content = new Bun.SHA256();
  return {
    update: (piece) => {
      signed.update(piece);
      content.update(piece);
    },
    finish: () => {
      const digest = new Uint8Array(digestSize);
      content.digest(digest);
      return { message: messageOf(fields, signed.digest()), digest };
    },
  };
}

/** Hashes an item whose payload is at hand. */
export function hashItem(fields: SignedFields, data: Uint8Array): ItemDigests {
  return { message: messageOf(fields, deepHashBlob(data)), digest: sha256(data) };
}

function messageOf(fields: SignedFields, dataLeaf: Uint8Array): Uint8Array {
  const head = heads.get(fields.signatureType);
  assert(head !== undefined, "only items of a known signature type are hashed");
  let running = join(head, deepHashBlob(fields.owner));
  running = join(running, leafOf(fields.targetBytes));
  running = join(running, leafOf(fields.anchorBytes));
  running = join(running, leafOf(fields.rawTags));
  return join(running, dataLeaf);
}

function headOf(type: number): Uint8Array {
  const texts = ["dataitem", "1", String(type)].map(utf8Bytes);
  return texts.reduce((running, text) => join(running, deepHashBlob(text)), sha384(utf8Bytes("list8")));
}

function leafOf(bytes: Uint8Array): Uint8Array {
  return bytes.length === 0 ? emptyLeaf : deepHashBlob(bytes);
}

function join(left: Uint8Array, right: Uint8Array): Uint8Array {
  pair.set(left, 0);
  pair.set(right, hashSize);
  return sha384(pair);
}
