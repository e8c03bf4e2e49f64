/**
 * What a data item's signature signs, computed in one walk over the payload together with its SHA-256.
 *
 * The message is the deep hash of ["dataitem", "1", type, owner, target, anchor, tags, data]. What is the same for
 * every item of a type is hashed once.
 * Source: ANS-104 §3.
 * @module
 */
import { assert } from "../lib/assert.ts";
import { utf8Bytes } from "../lib/bytes.ts";
import { sha256 } from "../lib/hash.ts";
import { beginDeepHash, createBlobHash, deepHashBlob, extendDeepHash } from "./deep-hash.ts";
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
  /** Ends the walk. The pieces must have come to exactly the size that was said, if one was. */
  finish(): ItemDigests;
}>;

const digestSize = 32;

/** Parts of the message. */
const itemPartsCount = 8;

/** The running hash of the list after its first three elements, by signature type. */
const heads = new Map<number, Uint8Array>(signatureSchemes.map(({ type }) => [type, headOf(type)]));

/**
 * Begins the walk over an item's payload.
 *
 * @param fields - Of a known signature type.
 * @param dataSize - The payload's size in bytes; absent where only its end will tell.
 */
export function createItemHash(fields: SignedFields, dataSize?: number): ItemHash {
  const message = createMessageHash(fields, dataSize);
  const content = createContentHash();
  return {
    update: (piece) => {
      message.update(piece);
      content.update(piece);
    },
    finish: () => ({ message: message.finish(), digest: content.finish() }),
  };
}

/** A payload on its way through one of the two hashes; they may be computed in two threads. */
export type PayloadHash = Readonly<{ update(piece: Uint8Array): void; finish(): Uint8Array }>;

/** Begins the walk of the message that is signed. Parameters as `createItemHash`. */
export function createMessageHash(fields: SignedFields, dataSize?: number): PayloadHash {
  const signed = createBlobHash(dataSize);
  return { update: signed.update, finish: () => messageOf(fields, signed.digest()) };
}

/** Begins the walk of the payload's SHA-256. */
export function createContentHash(): PayloadHash {
  const content = new Bun.SHA256();
  return {
    update: (piece) => {
      content.update(piece);
    },
    finish: () => {
      const digest = new Uint8Array(digestSize);
      content.digest(digest);
      return digest;
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
  let running = extendDeepHash(head, deepHashBlob(fields.owner));
  running = extendDeepHash(running, deepHashBlob(fields.targetBytes));
  running = extendDeepHash(running, deepHashBlob(fields.anchorBytes));
  running = extendDeepHash(running, deepHashBlob(fields.rawTags));
  return extendDeepHash(running, dataLeaf);
}

function headOf(type: number): Uint8Array {
  const first = ["dataitem", "1", String(type)].map((text) => deepHashBlob(utf8Bytes(text)));
  return first.reduce(extendDeepHash, beginDeepHash(itemPartsCount));
}
