/**
 * The rows of keys within a part, as lists by chunk, and which rows are in several of them.
 * @module
 */
import type { Database } from "bun:sqlite";
import { prepareQuery } from "../../sqlite.ts";
import { markOrdinals, ordinalsPerChunk, readBits, readOrdinals, setBit } from "./codec.ts";
import { bucketOf, keyOfWords, ordinalOfWord, partKeyOf } from "./image.ts";

/** The rows of one key in one chunk: lower halves of their ordinals. */
export type ChunkList = Readonly<{
  count: number;
  /** In order. */
  read: () => Uint16Array;
  /** Sets the bit of each in a set of one chunk. */
  mark: (bits: Uint8Array) => void;
}>;

/** The rows of one group of keys: lists by chunk. */
export type GroupLists = ReadonlyMap<number, readonly ChunkList[]>;

/** Chunks in which the group of fewest rows has some, in order; none when a group has no rows at all. */
export function chunksOf(groups: readonly GroupLists[], order: "asc" | "desc"): number[] {
  const [shortest] = groups.toSorted((a, b) => sizeOf(a) - sizeOf(b));
  return [...(shortest?.keys() ?? [])].sort((a, b) => (order === "asc" ? a - b : b - a));
}

/** The rows of a chunk that are in every group and in no excluded one: lower halves of ordinals, in order. */
export function meetInChunk(
  chunk: number,
  groups: readonly GroupLists[],
  excluded: readonly GroupLists[],
): Uint16Array {
  const inChunk = groups.map((group) => group.get(chunk) ?? []);
  const [shortest = [], ...others] = inChunk.sort((a, b) => countOf(a) - countOf(b));
  if (countOf(shortest) === 0) return new Uint16Array(0);
  let met = unionOf(shortest);
  for (const lists of others) {
    if (met.length === 0) return met;
    met = filtered(met, bitsOf(lists), true);
  }
  const out = excluded.flatMap((group) => group.get(chunk) ?? []);
  return out.length === 0 || met.length === 0 ? met : filtered(met, bitsOf(out), false);
}

function sizeOf(group: GroupLists): number {
  let size = 0;
  for (const lists of group.values()) size += countOf(lists);
  return size;
}

function countOf(lists: readonly ChunkList[]): number {
  return lists.reduce((sum, { count }) => sum + count, 0);
}

function unionOf(lists: readonly ChunkList[]): Uint16Array {
  const [only] = lists;
  if (lists.length === 1 && only !== undefined) return only.read();
  const found = new Uint16Array(countOf(lists));
  return found.subarray(0, readBits(bitsOf(lists), found));
}

function bitsOf(lists: readonly ChunkList[]): Uint8Array {
  const bits = new Uint8Array(ordinalsPerChunk / 8);
  for (const { mark } of lists) mark(bits);
  return bits;
}

/** Ordinals whose bit is as wanted. */
function filtered(ordinals: Uint16Array, bits: Uint8Array, wanted: boolean): Uint16Array {
  let count = 0;
  for (let at = 0; at < ordinals.length; at += 1) {
    const ordinal = ordinals[at] ?? 0;
    const isSet = ((bits[ordinal >>> 3] ?? 0) & (1 << (ordinal & 7))) !== 0;
    if (isSet === wanted) ordinals[count++] = ordinal;
  }
  return ordinals.subarray(0, count);
}

/** Answers the lists of a group's keys in a part; long ones are read when they are asked. */
export function createKeyLists(
  db: Database,
): (part: Readonly<{ part: number; buckets: number }>, keys: readonly number[]) => GroupLists {
  const directory = prepareQuery<{ chunk: number; count: number; list: number }>(
    db,
    "SELECT chunk, count, list FROM part_keys WHERE part = ? AND key = ?",
  );
  const bodyOf = (table: string) =>
    prepareQuery<{ body: Uint8Array }>(db, `SELECT body FROM ${table} WHERE n = (? << 24) | ?`);
  const list = bodyOf("part_lists");
  const bucket = bodyOf("part_rare");
  const stored = (part: number, number: number, count: number): ChunkList => {
    const body = (): Uint8Array => list.get(part, number)?.body ?? new Uint8Array(0);
    return {
      count,
      read: () => readOrdinals(body(), count),
      mark: (bits) => markOrdinals(body(), count, bits),
    };
  };

  return ({ part, buckets }, keys) => {
    const lists = new Map<number, ChunkList[]>();
    const add = (chunk: number, found: ChunkList): void => {
      lists.set(chunk, [...(lists.get(chunk) ?? []), found]);
    };
    for (const key of keys.map(partKeyOf)) {
      const chunks = directory.all(part, key);
      for (const { chunk, count, list: number } of chunks) add(chunk, stored(part, number, count));
      // A key has either lists or entries in its bucket, never both.
      if (chunks.length > 0) continue;
      for (const [chunk, found] of rareLists(bucket.get(part, bucketOf(key, buckets))?.body, key)) add(chunk, found);
    }
    return lists;
  };
}

/** The rows of a key that has entries in a bucket, by chunk. */
function rareLists(body: Uint8Array | undefined, key: number): [number, ChunkList][] {
  const found = new Map<number, number[]>();
  // What SQLite hands out may begin anywhere; words must begin at a multiple of four.
  const words = new Uint32Array(new Uint8Array(body ?? []).buffer);
  for (let at = 0; at < words.length; at += 2) {
    const low = words[at] ?? 0;
    if (keyOfWords(low, words[at + 1] ?? 0) !== key) continue;
    const ordinal = ordinalOfWord(low);
    const chunk = Math.floor(ordinal / ordinalsPerChunk);
    found.set(chunk, [...(found.get(chunk) ?? []), ordinal % ordinalsPerChunk]);
  }
  return [...found].map(([chunk, ordinals]) => [
    chunk,
    {
      count: ordinals.length,
      read: () => Uint16Array.from(ordinals),
      mark: (bits) => {
        for (const ordinal of ordinals) setBit(bits, ordinal);
      },
    },
  ]);
}
