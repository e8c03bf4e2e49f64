/**
 * Keys of the posting index: each filter of a query (id, owner, recipient, tag) is one number.
 *
 * A key is 47 bits of SHA-256 over a secret of this database, the filter's kind and its value. SQLite stores at most
 * 47 unsigned bits in six bytes. A collision only adds a candidate, because each row is checked when it is read.
 * The secret prevents outsiders from choosing values whose keys collide with those of a popular tag.
 * (SHA-256 of 50 bytes takes 80 ns, as much as unkeyed hashes of this runtime: measured.)
 * Source: docs/reference/index-layout.md#filter-keys.
 * @module
 */
import type { Database } from "bun:sqlite";
import { assert } from "../../lib/assert.ts";
import { ownText } from "../../lib/own-text.ts";
import { prepareQuery } from "../sqlite.ts";

/** Computes the keys of one database: integers of 0 ≤ key < 2^47. */
export type FilterKeys = Readonly<{
  /** @param id - 32 bytes. */
  id: (id: Uint8Array) => number;
  /** @param address - 32 bytes. */
  owner: (address: Uint8Array) => number;
  /** @param target - The stored bytes of the target. */
  recipient: (target: Uint8Array) => number;
  tag: (name: string, value: string) => number;
  /** Key of every transaction, which distinguishes it from data items. */
  transaction: () => number;
}>;

/** Bytes of a database's secret. */
export const filterSecretBytes = 32;

/** Bits of a key. */
export const filterKeyBits = 47;

const kinds = { id: 1, owner: 2, recipient: 3, tag: 4, transaction: 5 } as const;
const prefixBytes = filterSecretBytes + 1;
/** Limit of cached tag keys (12 MB), and of the lengths of cached names and values. Characters. */
const rememberedMax = 30_000;
const rememberedNameMax = 64;
const rememberedValueMax = 32;
/** A UTF-16 unit takes at most three bytes of UTF-8. */
const utf8BytesPerUnit = 3;

export function createFilterSecret(): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(filterSecretBytes));
}

/** The secret of an index that a reader has opened. @throws Error when no writer has opened it yet. */
export function filterSecretOf(db: Database, path: string): Uint8Array {
  const found = prepareQuery<{ value: Uint8Array }>(db, "SELECT value FROM meta WHERE name = 'filter_secret'").get();
  if (found === undefined) throw new Error(`the index ${path} is not initialized: the writer has never opened it`);
  return found.value;
}

/**
 * Creates the key functions of one database. They share one buffer, so only one thread may use them.
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
    // The length of the name distinguishes ("ab", "c") from ("a", "bc").
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
      // Names and values that many rows share are short; long ones would only evict them.
      if (value.length > rememberedValueMax || name.length > rememberedNameMax) return ofTag(name, value);
      const known = remembered.get(name)?.get(value);
      if (known !== undefined) return known;
      const key = ofTag(name, value);
      if (rememberedCount >= rememberedMax) {
        remembered.clear();
        rememberedCount = 0;
      }
      // Looked up after the clearing: the map of before would bring all of its values back.
      remembered.getOrInsertComputed(ownText(name), () => new Map()).set(ownText(value), key);
      rememberedCount += 1;
      return key;
    },
  };
}
