/**
 * Reading parts of the posting index: which rows of a part are in all of some groups of keys, in place order.
 *
 * Within a part the rows of a key are ordinals, so that lists meet in memory by chunks of 65,536: the shortest
 * list of a chunk is walked, the others are asked bit by bit.
 *
 * Reading places of a part: of an ordinal, and the ordinals within a range of places.
 *
 * Parts never change and their numbers are never given again, so what was read of one stays true.
 *
 * The rows of keys within a part, as lists by chunk, and which rows are in several of them.
 * Source: docs/reference/index-layout.md#pages-of-results.
 * @module
 */
import type { Database } from "bun:sqlite";
import { prepareQuery } from "../../sqlite.ts";
import {
  bucketOf,
  keyOfWords,
  markOrdinals,
  ordinalOfWord,
  ordinalsPerChunk,
  type PlaceList,
  partKeyOf,
  placesPerBlock,
  readBits,
  readOrdinals,
  readPlaces,
  setBit,
} from "./part-image.ts";

/** What is sought in a part. */
export type PartQuery = Readonly<{
  order: "asc" | "desc";
  /** Places, both inclusive. */
  first: PlaceHalves;
  last: PlaceHalves;
  /** Filter keys; a row must be in each group. One at least. */
  groups: readonly (readonly number[])[];
  /** A row must be in none of them. */
  excluded: readonly (readonly number[])[];
  /** Called between chunks; throws to end the query. */
  checkpoint: () => void;
}>;

/** Parts of one database, for a reader, inside its snapshot. */
export type PartReads = Readonly<{
  list: () => readonly PartInfo[];
  /** Places that may meet the query, in order; each is to be checked against its row. */
  find: (part: PartInfo, query: PartQuery) => Generator<PlaceHalves>;
}>;

/** Opens these reads over a reader's connection. */
export function createPartReads(db: Database): PartReads {
  const list = prepareQuery<
    Readonly<
      { part: number; count: number; buckets: number } & Record<
        "firstHigh" | "firstLow" | "lastHigh" | "lastLow",
        number
      >
    >
  >(
    db,
    `SELECT part, count, buckets, first >> 31 AS firstHigh, first & 0x7fffffff AS firstLow,
       last >> 31 AS lastHigh, last & 0x7fffffff AS lastLow FROM parts`,
  );
  const listsOf = createKeyLists(db);
  const places = createPlaceReads(db);

  return {
    list: () =>
      list.all().map(({ part, count, buckets, firstHigh, firstLow, lastHigh, lastLow }) => ({
        part,
        count,
        buckets,
        first: { high: firstHigh, low: firstLow },
        last: { high: lastHigh, low: lastLow },
      })),
    find: function* (part, query) {
      const { start, end } = ordinalsBetween(places, part, query);
      if (start >= end) return;
      const groups = query.groups.map((keys) => listsOf(part, keys));
      const excluded = query.excluded.map((keys) => listsOf(part, keys));
      for (const chunk of chunksOf(groups, query.order)) {
        const base = chunk * ordinalsPerChunk;
        if (base >= end || base + ordinalsPerChunk <= start) continue;
        query.checkpoint();
        const met = meetInChunk(chunk, groups, excluded);
        const from = countWhile(met.length, (at) => base + (met[at] ?? 0) < start);
        const to = countWhile(met.length, (at) => base + (met[at] ?? 0) < end);
        const ordinals = met.subarray(from, to);
        if (query.order === "desc") ordinals.reverse();
        for (const low of ordinals) yield places.at(part, base + low);
      }
    },
  };
}

/** The ordinals of a part whose places are in a range, half-open. Most ranges cover it: then nothing is read. */
function ordinalsBetween(
  places: PlaceReads,
  part: PartInfo,
  { first, last }: PartQuery,
): Readonly<{ start: number; end: number }> {
  const isFromStart = compareHalves(first, part.first) <= 0;
  const isToEnd = compareHalves(last, part.last) >= 0;
  return {
    start: isFromStart ? 0 : places.firstAtOrAfter(part, first),
    end: isToEnd ? part.count : places.firstAfter(part, last),
  };
}

/** A place in its upper 32 and lower 31 bits. */
export type PlaceHalves = Readonly<{ high: number; low: number }>;

/** A part, as a query begins with it. */
export type PartInfo = Readonly<{
  part: number;
  count: number;
  buckets: number;
  first: PlaceHalves;
  last: PlaceHalves;
}>;

/** Decoded blocks of places in the cache: a page of rare rows touches one each. */
const blocksStored = 256;
/** Parts whose block starts are cached: 8 bytes a thousand rows. */
const startsStored = 512;

/** Places of parts, for a reader. */
export type PlaceReads = Readonly<{
  at: (part: PartInfo, ordinal: number) => PlaceHalves;
  /** The first ordinal whose place is not before one. */
  firstAtOrAfter: (part: PartInfo, place: PlaceHalves) => number;
  /** The first ordinal whose place is after one. */
  firstAfter: (part: PartInfo, place: PlaceHalves) => number;
}>;

/** Opens these reads over a reader's connection. */
export function createPlaceReads(db: Database): PlaceReads {
  const block = prepareQuery<{ body: Uint8Array }>(db, "SELECT body FROM part_places WHERE n = (? << 24) | ?");
  const start = prepareQuery<{ starts: Uint8Array }>(db, "SELECT starts FROM parts WHERE part = ?");
  const blocks = new Map<string, PlaceList>();
  const starts = new Map<number, Uint32Array>();

  const blockOf = (part: number, number: number): PlaceList => {
    const name = `${part}/${number}`;
    const known = blocks.get(name);
    if (known !== undefined) return known;
    const read = readPlaces(block.get(part, number)?.body ?? new Uint8Array(0));
    if (blocks.size >= blocksStored) blocks.clear();
    blocks.set(name, read);
    return read;
  };
  const startsOf = (part: number): Uint32Array => {
    const known = starts.get(part);
    if (known !== undefined) return known;
    const body = start.get(part)?.starts ?? new Uint8Array(0);
    const read = new Uint32Array(new Uint8Array(body).buffer);
    if (starts.size >= startsStored) starts.clear();
    starts.set(part, read);
    return read;
  };
  /** How many rows of a part come before the first that does not count. */
  const rank = (part: PartInfo, counts: (place: PlaceHalves) => boolean): number => {
    const first = startsOf(part.part);
    const number = countWhile(first.length / 2, (at) =>
      counts({ high: first[at * 2] ?? 0, low: first[at * 2 + 1] ?? 0 }),
    );
    if (number === 0) return 0;
    const { high, low } = blockOf(part.part, number - 1);
    const within = countWhile(high.length, (at) => counts({ high: high[at] ?? 0, low: low[at] ?? 0 }));
    return (number - 1) * placesPerBlock + within;
  };

  return {
    at: ({ part }, ordinal) => {
      const { high, low } = blockOf(part, Math.floor(ordinal / placesPerBlock));
      const at = ordinal % placesPerBlock;
      return { high: high[at] ?? 0, low: low[at] ?? 0 };
    },
    firstAtOrAfter: (part, place) => rank(part, (other) => compareHalves(other, place) < 0),
    firstAfter: (part, place) => rank(part, (other) => compareHalves(other, place) <= 0),
  };
}

/** How many numbers from 0 on meet a condition that, once false, stays false. */
export function countWhile(count: number, holds: (at: number) => boolean): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Orders places as the chain does. */
export function compareHalves(a: PlaceHalves, b: PlaceHalves): number {
  return a.high - b.high || a.low - b.low;
}

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

/** Returns the lists of a group's keys in a part; long ones are read on demand. */
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
