/**
 * Ids, addresses and block hashes, as base64url text.
 *
 * Ids and block hashes are canonical: two texts are equal exactly when their bytes are. An address is any 43
 * characters of base64url, and is compared as text: two spellings of the same bytes are two addresses. Addresses that
 * are derived from a key are canonical.
 * Source: docs/compatibility.md (addresses).
 * @module
 */
import { assert } from "../lib/assert.ts";
import { decodeBase64url, encodeBase64url } from "../lib/base64url.ts";
import { utf8Bytes } from "../lib/bytes.ts";
import { sha256 } from "../lib/hash.ts";
import { ownText } from "../lib/own-text.ts";
import { refined, stringSchema, type ValueSchema } from "../lib/value-schema.ts";

/** The id of a transaction or data item: SHA-256 of its signature, 43 characters of base64url. */
export type Id = string & { readonly __brand: "Id" };

/** An address: 43 characters of base64url. The address of an owner is the SHA-256 of its public key. */
export type Address = string & { readonly __brand: "Address" };

/** The hash of a block (`indep_hash`): SHA-384, 64 characters of base64url. */
export type BlockHash = string & { readonly __brand: "BlockHash" };

/** Bytes of an id or an address. */
export const idSize = 32;

/** Characters of an address. */
const addressLength = 43;

/** Bytes of a block hash. */
const blockHashSize = 48;

// 32 bytes leave two bits of the last character, which are zero: sixteen characters may end the text.
const idPattern = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;
const addressPattern = /^[A-Za-z0-9_-]{43}$/;
const blockHashPattern = /^[A-Za-z0-9_-]{64}$/;

/** Whether a text is the canonical form of 32 bytes. */
export function isId(text: string): text is Id {
  return text.length === 43 && idPattern.test(text);
}

/** The shape of an id. A text of this shape that is not a valid id identifies nothing. */
export const idShape = stringSchema({ pattern: "^[0-9a-zA-Z_-]{43}$" });

/** Ids, as requests carry them and the API reference shows them. */
export const idFormat: ValueSchema<Id> = refined(
  idShape,
  isId,
  "32 bytes in canonical base64url: two texts are equal exactly when their bytes are.",
);

/** A copy of an id that may be a part of a long text, as a key of a cache. */
export function ownId(id: Id): Id {
  return ownText(id) as Id;
}

/** Reads an id; `undefined` when the text is not a canonical id. */
export function readId(text: string): Id | undefined {
  return isId(text) ? text : undefined;
}

/** Whether a text is an address, with any last character. */
export function isAddress(text: string): text is Address {
  return text.length === 43 && addressPattern.test(text);
}

/** Whether a text can be the address of an owner: canonical. */
export function isOwnerAddress(text: string): text is Address {
  return isId(text);
}

/** Reads an address; `undefined` when the text is not 43 characters of base64url. */
export function readAddress(text: string): Address | undefined {
  return isAddress(text) ? text : undefined;
}

/** Whether a text is a block hash. */
export function isBlockHash(text: string): text is BlockHash {
  return text.length === 64 && blockHashPattern.test(text);
}

/** Reads a block hash; `undefined` when the text is not a block hash. */
export function readBlockHash(text: string): BlockHash | undefined {
  return isBlockHash(text) ? text : undefined;
}

/** Writes 32 bytes as an id. */
export function idFromBytes(bytes: Uint8Array): Id {
  assert(bytes.length === idSize, "an id has 32 bytes");
  return encodeBase64url(bytes) as Id;
}

/** Writes 32 bytes as an address. */
export function addressFromBytes(bytes: Uint8Array): Address {
  assert(bytes.length === idSize, "an address has 32 bytes");
  return encodeBase64url(bytes) as Address;
}

/** The 32 bytes of an id or of an owner's address. */
export function idBytes(id: Id | Address): Uint8Array {
  const bytes = decodeBase64url(id);
  assert(bytes !== undefined && bytes.length === idSize, "an id is 43 characters of canonical base64url");
  return bytes;
}

/** Bytes that differ for any two addresses: the 32 of a canonical one, else the 43 characters themselves. */
export function addressKey(address: Address): Uint8Array {
  return decodeBase64url(address) ?? utf8Bytes(address);
}

/** The reverse of `addressKey`; also for targets with fewer bytes than an address. */
export function addressOfKey(key: Uint8Array): string {
  return key.length === addressLength ? new TextDecoder().decode(key) : encodeBase64url(key);
}

/** Writes 48 bytes as a block hash. */
export function blockHashFromBytes(bytes: Uint8Array): BlockHash {
  assert(bytes.length === blockHashSize, "a block hash has 48 bytes");
  return encodeBase64url(bytes) as BlockHash;
}

/** The 48 bytes of a block hash. */
export function blockHashBytes(hash: BlockHash): Uint8Array {
  const bytes = decodeBase64url(hash);
  assert(bytes !== undefined && bytes.length === blockHashSize, "a block hash is 64 characters");
  return bytes;
}

/** The id of the transaction or data item with this signature. */
export function idOfSignature(signature: Uint8Array): Id {
  return idFromBytes(sha256(signature));
}

/**
 * The address of an owner.
 *
 * @param owner - The public key: an RSA modulus, 33 bytes of a compressed point, or what a data item's signature
 *   type calls its owner. A key of 32 bytes hashes like any other; the chain's legacy rule for them is
 *   `transactionOwnerAddress`.
 */
export function addressOf(owner: Uint8Array): Address {
  return addressFromBytes(sha256(owner));
}
