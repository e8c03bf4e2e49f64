/**
 * Keys of the posting index: every filter of a query (id, owner, recipient, tag) is one number.
 *
 * A key is 47 bits of SHA-256 over a secret of this database, the filter's kind and its value. 47 bits are the most
 * that SQLite keeps in six bytes with no sign; a collision only adds a candidate, because the row is checked when it
 * is read. The secret keeps outsiders from making values whose keys meet that of a popular tag.
 * (SHA-256 of 50 bytes costs 80 ns here, as much as unkeyed hashes of this runtime: measured.)
 * Source: docs/reference/index-layout.md#filter-keys.
 * @module
 */
import { randomBytes } from "node:crypto";
import { assert } from "../../lib/assert.ts";

/** Makes keys for one database. Keys are whole numbers of 0 ≤ key < 2^47. */
export type FilterKeys = Readonly<{
  /** @param id - 32 bytes. */
  id: (id: Uint8Array) => number;
  /** @param address - 32 bytes. */
  owner: (address: Uint8Array) => number;
  /** @param target - As the row stores it. */
  recipient: (target: Uint8Array) => number;
  tag: (name: string, value: string) => number;
  /** Of every transaction: what tells it from data items. */
  transaction: () => number;
}>;

/** Bytes of a database's secret. */
export const filterSecretBytes = 32;

/** Bits of a key. */
export const filterKeyBits = 47;

const kinds = { id: 1, owner: 2, recipient: 3, tag: 4, transaction: 5 } as const;
const prefixBytes = filterSecretBytes + 1;
/** Keys of tags in the cache (about 5 MB), and the longest value that is cached. */
const rememberedMax = 30_000;
const rememberedValueMax = 32;
/** A UTF-16 unit takes at most three bytes of UTF-8. */
const utf8BytesPerUnit = 3;

/** A secret for a new database. */
export function createFilterSecret(): Uint8Array {
  return randomBytes(filterSecretBytes);
}

/**
 * Makes the key function of one database. Not to be shared by threads: it works in one buffer.
 *
 * @param secret - 32 bytes, stored in the database.
 */
export function createFilterKeys(secret: Uint8Array): FilterKeys {
  assert(secret.length === filterSecretBytes, "a database's secret has 32 bytes");
  let message = Buffer.alloc(4_096);
  message.set(secret);
  const digest = Buffer.alloc(32);
  const words = new DataView(digest.buffer, digest.byteOffset);

  const reserve = (size: number): void => {
    if (size <= message.length) return;
    const larger = Buffer.alloc(2 ** Math.ceil(Math.log2(size)));
    larger.set(secret);
    message = larger;
  };
  const keyOf = (kind: number, size: number): number => {
    message[filterSecretBytes] = kind;
    Bun.SHA256.hash(message.subarray(0, size), digest);
    return (words.getUint32(0) % 2 ** 31) * 2 ** 16 + words.getUint16(4);
  };
  const ofBytes = (kind: number, bytes: Uint8Array): number => {
    reserve(prefixBytes + bytes.length);
    message.set(bytes, prefixBytes);
    return keyOf(kind, prefixBytes + bytes.length);
  };

  const ofTag = (name: string, value: string): number => {
    reserve(prefixBytes + 4 + (name.length + value.length) * utf8BytesPerUnit);
    // The name's length goes first, so that ("ab", "c") and ("a", "bc") differ.
    const nameSize = message.write(name, prefixBytes + 4);
    message.writeUInt32LE(nameSize, prefixBytes);
    const valueSize = message.write(value, prefixBytes + 4 + nameSize);
    return keyOf(kinds.tag, prefixBytes + 4 + nameSize + valueSize);
  };

  const remembered = new Map<string, Map<string, number>>();
  let rememberedCount = 0;

  return {
    id: (id) => ofBytes(kinds.id, id),
    owner: (address) => ofBytes(kinds.owner, address),
    recipient: (target) => ofBytes(kinds.recipient, target),
    transaction: () => ofBytes(kinds.transaction, new Uint8Array(0)),
    tag: (name, value) => {
      // Values that many rows share are short; those of one row alone would only push them out.
      if (value.length > rememberedValueMax) return ofTag(name, value);
      const keys = remembered.get(name) ?? new Map<string, number>();
      const known = keys.get(value);
      if (known !== undefined) return known;
      const key = ofTag(name, value);
      if (rememberedCount >= rememberedMax) {
        remembered.clear();
        rememberedCount = 0;
      }
      remembered.set(name, keys.set(value, key));
      rememberedCount += 1;
      return key;
    },
  };
}
