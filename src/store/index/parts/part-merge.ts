/**
 * Merges parts of the posting index in a thread of their own, in steps of a few megabytes.
 *
 * A merge reads its sources, which never change, and yields the bodies of the new part: first the places, then the
 * entries, one range of keys after another. The writer stores each step in a short transaction; readers do not see the
 * part before it is complete. Memory: the entries of one range (eight bytes each), however many rows there are; four
 * bytes for each row of sources that overlap, and eight for each row of a part of an earlier release, for its ids.
 * Source: docs/reference/index-layout.md#merges.
 * @module
 */
import type { Database } from "bun:sqlite";
import { assert } from "../../../lib/assert.ts";
import { prepareQuery, type Query } from "../../sqlite.ts";
import type { FilterKeys } from "../filter-key.ts";
import { compareHalves, type PlaceHalves } from "../place.ts";
import { placeSql } from "../place-sql.ts";
import {
  ordinalsOfList,
  ordinalsPerChunk,
  type PartList,
  type PlaceList,
  placesPerBlock,
  readPlaces,
  wholePart,
  writePlaces,
} from "./part-codec.ts";
import {
  bucketOf,
  bucketReaderOf,
  createEntryList,
  inBuckets,
  keyOfWords,
  ordinalOfWord,
  partKeyBits,
  partKeyOf,
  readBucket,
  wordsOf,
  writeBucket,
} from "./part-entries.ts";
import type { NewFilterFile } from "./part-filter.ts";
import { chunkLists, type NumberedBody, splitEntries } from "./part-image.ts";

/** A part that is merged. */
export type MergeSource = Readonly<{
  part: number;
  count: number;
  entries: number;
  buckets: number;
  /** Null for a part of an earlier release, whose ids are among its keys or in `postings`: its rows are read. */
  idBuckets: number | null;
}>;

/** A merge, as the writer begins it. */
export type PartMerge = Readonly<{
  /** The new part. */
  part: number;
  /** The new part of the merge between whose steps this one is made. */
  within: number | undefined;
  sources: readonly MergeSource[];
  /** Buckets of the new part. */
  buckets: number;
  idBuckets: number;
  /** Limit of the distinct keys of the new part. */
  keysMax: number;
}>;

/** What one step adds to the new part. */
export type MergedBodies = Readonly<{
  places: readonly NumberedBody[];
  ids: readonly NumberedBody[];
  rare: readonly NumberedBody[];
  lists: readonly (PartList & Readonly<{ number: number }>)[];
}>;

/** What takes the keys of the new part, in order: first those of its ids. */
export type NewPartFilters = Pick<NewFilterFile, "addId" | "addKey">;

/** The columns of the new part's row. */
export type MergedPart = Readonly<{
  count: number;
  entries: number;
  keys: number;
  first: PlaceHalves;
  last: PlaceHalves;
  /** As in `PartImage`. */
  starts: Uint8Array;
}>;

/** Average number of entries of a range of keys, and the entries of a key that is a range of its own. */
export const rangeEntriesDefault = 2 ** 18;
const heavyEntries = 2 ** 16;
/** Ordinals of a step of such a key. */
const ordinalsPerSlice = 4 * ordinalsPerChunk;
/** Blocks of places of one step. */
const blocksPerStep = 256;

/**
 * Returns a function that reads the sources of a merge and yields the new part. It opens the filters when it knows the
 * number of the rows.
 *
 * @param keys - Of the index.
 * @param rangeEntries - Average number of entries of a step.
 */
export function createMerges(
  db: Database,
  keys: Pick<FilterKeys, "id">,
  rangeEntries = rangeEntriesDefault,
): (merge: PartMerge, openFilters: (rows: number) => NewPartFilters) => Generator<MergedBodies, MergedPart> {
  const reads = { ...createMergeReads(db, keys), rangeEntries };
  return (merge, openFilters) => mergeSteps(reads, merge, openFilters);
}

function* mergeSteps(
  reads: MergeReads,
  merge: PartMerge,
  openFilters: (rows: number) => NewPartFilters,
): Generator<MergedBodies, MergedPart> {
  const merged = yield* mergePlaces(reads, merge.sources);
  const filters = openFilters(merged.count);
  yield* mergeIds(reads, merge, { merged, addId: filters.addId });
  const readRange = createRangeReader(reads, merge);
  const buckets = createBuckets(merge.buckets);
  const sums = { entries: 0, keys: 0, lists: 0 };
  const numbered = (lists: readonly PartList[]): MergedBodies["lists"] => {
    const before = sums.lists;
    sums.lists += lists.length;
    return lists.map((list, index) => ({ ...list, number: before + index }));
  };
  for (const range of keyRanges(reads, merge)) {
    const found = readRange(range);
    if (range.isHeavy) {
      filters.addKey(range.start);
      sums.keys += 1;
      for (const lists of heavyLists(range, found, { merged, rangeEntries: reads.rangeEntries })) {
        sums.entries += lists.reduce((sum, { count }) => sum + count, 0);
        yield { ...noBodies, lists: numbered(lists) };
      }
    } else {
      const entries = entriesOf(range, { sources: found, numbers: merged.numbers, slice: allOrdinals });
      const { rareEntries, lists, keys } = splitEntries(entries, merged.count, filters.addKey);
      sums.entries += entries.length;
      sums.keys += keys;
      yield { ...noBodies, rare: buckets.add(rareEntries), lists: numbered(lists) };
    }
  }
  yield { ...noBodies, rare: buckets.end() };
  const { count, first, last, starts } = merged;
  return { count, entries: sums.entries, keys: sums.keys, first, last, starts };
}

/** The lists of a key with very many entries, about `rangeEntries` of them at a time. */
function* heavyLists(
  range: KeyRange,
  sources: readonly SourceEntries[],
  { merged, rangeEntries }: Readonly<{ merged: MergedPlaces; rangeEntries: number }>,
): Generator<PartList[]> {
  let lists: PartList[] = [];
  let entries = 0;
  for (const slice of ordinalSlices(merged.count)) {
    const words = wordsOf(entriesOf(range, { sources, numbers: merged.numbers, slice }));
    lists.push(...chunkLists(range.start, words, merged.count));
    entries += words.length / 2;
    if (entries < rangeEntries) continue;
    yield lists;
    lists = [];
    entries = 0;
  }
  yield lists;
}

const noBodies: MergedBodies = { places: [], ids: [], rare: [], lists: [] };

/** Merges the ids of the sources, one range of keys after another. @param addId - Takes the key of each id. */
function* mergeIds(
  reads: MergeReads,
  { sources, idBuckets }: PartMerge,
  { merged, addId }: Readonly<{ merged: MergedPlaces; addId: (key: number) => void }>,
): Generator<MergedBodies> {
  const idsIn = sources.map((source) => createIdReader(reads, source));
  const buckets = createBuckets(idBuckets);
  for (const range of equalRanges(
    reads,
    sources.reduce((sum, source) => sum + source.count, 0),
  )) {
    const found = idsIn.map((read) => ({ bodies: read(range), lists: [] }));
    const words = wordsOf(entriesOf(range, { sources: found, numbers: merged.numbers, slice: allOrdinals }));
    for (let at = 0; at < words.length; at += 2) addId(keyOfWords(words[at] ?? 0, words[at + 1] ?? 0));
    yield { ...noBodies, ids: buckets.add(words) };
  }
  yield { ...noBodies, ids: buckets.end() };
}

type Body = Readonly<{ body: Uint8Array }>;
type StoredList = Body & Readonly<{ key: number; chunk: number; count: number }>;

/** The statements of merges on one connection. */
type MergeReads = Readonly<{
  /** Average number of entries of a range of keys. */
  rangeEntries: number;
  places: Query<Body>;
  rare: Query<Body>;
  ids: Query<Body>;
  lists: Query<StoredList>;
  heavyKeys: Query<{ key: number }>;
  /** The key of the id of the row at a place. */
  idKeyAt: (place: PlaceHalves) => number | undefined;
}>;

function createMergeReads(db: Database, keys: Pick<FilterKeys, "id">): Omit<MergeReads, "rangeEntries"> {
  const id = prepareQuery<{ id: Uint8Array }>(db, `SELECT id FROM items WHERE n = ${placeSql()}`);
  const buckets = (table: string) =>
    prepareQuery<Body>(db, `SELECT body FROM ${table} WHERE n BETWEEN (?1 << 24) | ?2 AND (?1 << 24) | ?3 ORDER BY n`);
  return {
    places: prepareQuery(db, "SELECT body FROM part_places WHERE n = (? << 24) | ?"),
    rare: buckets("part_rare"),
    ids: buckets("part_ids"),
    lists: prepareQuery(
      db,
      `SELECT key, chunk, count, body FROM part_keys k JOIN part_lists l ON l.n = (k.part << 24) | k.list
       WHERE k.part = ? AND k.key >= ? AND k.key < ?`,
    ),
    heavyKeys: prepareQuery(
      db,
      `SELECT key FROM part_keys WHERE part IN (SELECT value FROM json_each(?)) GROUP BY key HAVING sum(count) > ?
       ORDER BY key`,
    ),
    idKeyAt: ({ high, low }) => {
      const found = id.get(high, low)?.id;
      return found === undefined ? undefined : partKeyOf(keys.id(found));
    },
  };
}

/** The new ordinals of a source: in a table, or when they follow each other, all of them `base` more than before. */
type NewOrdinals = Readonly<{ count: number; base: number; table: Uint32Array | undefined }>;

/** The places of the new part, and the new ordinals of the rows of each source. */
type MergedPlaces = Readonly<{
  count: number;
  first: PlaceHalves;
  last: PlaceHalves;
  starts: Uint8Array;
  numbers: readonly NewOrdinals[];
}>;

/** Merges the places of the sources; a place in several of them becomes one row. */
function* mergePlaces(reads: MergeReads, sources: readonly MergeSource[]): Generator<MergedBodies, MergedPlaces> {
  const cursors = sources.map((source) => openPlaces(reads, source));
  const renumberings = sources.map(({ count }) => createRenumbering(count));
  const blocks = createPlaceBlocks();
  for (let next = lowest(cursors); next !== undefined; next = lowest(cursors)) {
    const { cursor, limit } = next;
    const renumbering = renumberings[cursors.indexOf(cursor)];
    assert(renumbering !== undefined, "each source has a numbering");
    // The rows of one source up to the next row of another: all of them when parts do not overlap.
    for (let place = cursor.place; place !== undefined; place = cursor.place) {
      if (limit !== undefined && compareHalves(place, limit) > 0) break;
      renumbering.set(cursor.ordinal, blocks.add(place));
      cursor.advance();
      if (blocks.count() >= blocksPerStep) break;
    }
    if (blocks.count() >= blocksPerStep) yield { ...noBodies, places: blocks.take() };
  }
  const { count, starts } = blocks.end();
  yield { ...noBodies, places: blocks.take() };
  const first = { high: starts[0] ?? 0, low: starts[1] ?? 0 };
  return {
    count,
    first,
    last: blocks.last(),
    starts: new Uint8Array(starts.buffer),
    numbers: renumberings.map(({ numbers }) => numbers()),
  };
}

/** The new ordinals of the rows of a source. @param count - Of its rows. */
function createRenumbering(count: number) {
  let base = 0;
  let table: Uint32Array | undefined;
  return {
    /** Called for each ordinal of the source, in order. */
    set: (ordinal: number, renumbered: number): void => {
      if (ordinal === 0) base = renumbered;
      if (table === undefined && renumbered !== base + ordinal)
        table = new Uint32Array(count).map((_, before) => base + before);
      if (table !== undefined) table[ordinal] = renumbered;
    },
    numbers: (): NewOrdinals => ({ count, base, table }),
  };
}

function newOrdinal({ base, table }: NewOrdinals, ordinal: number): number {
  return table === undefined ? base + ordinal : (table[ordinal] ?? 0);
}

/** Collects places in order into blocks. */
function createPlaceBlocks() {
  const high = new Uint32Array(placesPerBlock);
  const low = new Uint32Array(placesPerBlock);
  const starts: number[] = [];
  let bodies: NumberedBody[] = [];
  let count = 0;
  let used = 0;
  let last: PlaceHalves = { high: -1, low: 0 };
  const endBlock = (): void => {
    if (used === 0) return;
    const body = writePlaces({ high: high.subarray(0, used), low: low.subarray(0, used) });
    bodies.push({ number: starts.length / 2, body });
    starts.push(high[0] ?? 0, low[0] ?? 0);
    used = 0;
  };
  return {
    /** Returns the ordinal of the place; the last place again is the same row. */
    add: (place: PlaceHalves): number => {
      if (compareHalves(place, last) === 0) return count - 1;
      if (used === placesPerBlock) endBlock();
      high[used] = place.high;
      low[used] = place.low;
      used += 1;
      last = place;
      return count++;
    },
    count: () => bodies.length,
    take: (): NumberedBody[] => {
      const taken = bodies;
      bodies = [];
      return taken;
    },
    last: () => last,
    end: () => {
      endBlock();
      return { count, starts: Uint32Array.from(starts) };
    },
  };
}

/** Reads the places of one part in order. */
type PlaceCursor = {
  /** Undefined at the end. */
  place: PlaceHalves | undefined;
  ordinal: number;
  advance: () => void;
};

function openPlaces(reads: MergeReads, { part, count }: MergeSource): PlaceCursor {
  let places: PlaceList = { high: new Uint32Array(0), low: new Uint32Array(0) };
  const cursor: PlaceCursor = {
    place: undefined,
    ordinal: -1,
    advance: () => {
      cursor.ordinal += 1;
      const at = cursor.ordinal % placesPerBlock;
      if (cursor.ordinal >= count) {
        cursor.place = undefined;
        return;
      }
      if (at === 0) {
        const body = reads.places.get(part, cursor.ordinal / placesPerBlock)?.body;
        assert(body !== undefined, "a part has all its blocks of places");
        places = readPlaces(body);
      }
      cursor.place = { high: places.high[at] ?? 0, low: places.low[at] ?? 0 };
    },
  };
  cursor.advance();
  return cursor;
}

/** The cursor with the lowest place, and the lowest place of the others; undefined when all are at their end. */
function lowest(cursors: readonly PlaceCursor[]) {
  let first: PlaceCursor | undefined;
  let limit: PlaceHalves | undefined;
  for (const cursor of cursors) {
    const { place } = cursor;
    if (place === undefined) continue;
    if (first?.place === undefined || compareHalves(place, first.place) < 0) {
      limit = first?.place ?? limit;
      first = cursor;
    } else if (limit === undefined || compareHalves(place, limit) < 0) limit = place;
  }
  return first === undefined ? undefined : { cursor: first, limit };
}

/** Keys of a part: `start` ≤ key < `end`. */
type KeyRange = Readonly<{ start: number; end: number }>;

/** Ordinals of the new part: `start` ≤ ordinal < `end`. */
type OrdinalSlice = Readonly<{ start: number; end: number }>;

const allOrdinals: OrdinalSlice = { start: 0, end: Number.POSITIVE_INFINITY };

/** Slices of all ordinals, each of whole chunks. */
function* ordinalSlices(rows: number): Generator<OrdinalSlice> {
  for (let start = 0; start < rows; start += ordinalsPerSlice) yield { start, end: start + ordinalsPerSlice };
}

/** Ranges of all keys in order, each with about `rangeEntries` of the entries. */
function* equalRanges({ rangeEntries }: MergeReads, entries: number): Generator<KeyRange> {
  const ranges = Math.max(1, Math.ceil(entries / rangeEntries));
  for (let range = 0; range < ranges; range += 1)
    yield {
      start: Math.ceil((range / ranges) * 2 ** partKeyBits),
      end: Math.ceil(((range + 1) / ranges) * 2 ** partKeyBits),
    };
}

/** Ranges of all keys in order. A key with very many entries is a range of its own: it is read in slices. */
function* keyRanges(reads: MergeReads, { sources }: PartMerge): Generator<KeyRange & Readonly<{ isHeavy: boolean }>> {
  const heavy = reads.heavyKeys
    .all(JSON.stringify(sources.map(({ part }) => part)), heavyEntries)
    .map(({ key }) => key);
  for (const range of equalRanges(
    reads,
    sources.reduce((sum, { entries }) => sum + entries, 0),
  )) {
    let { start } = range;
    for (const key of heavy) {
      if (key < start || key >= range.end) continue;
      if (key > start) yield { start, end: key, isHeavy: false };
      yield { start: key, end: key + 1, isHeavy: true };
      start = key + 1;
    }
    if (start < range.end) yield { start, end: range.end, isHeavy: false };
  }
}

/** Entries of a source, some of them outside of the range of keys that is read. */
type SourceEntries = Readonly<{ bodies: readonly Uint32Array[]; lists: readonly StoredList[] }>;

/** Returns a function that reads what each source has of the keys of a range, ids not among them. */
function createRangeReader(reads: MergeReads, { sources }: PartMerge): (range: KeyRange) => SourceEntries[] {
  return (range) =>
    sources.map((source) => ({
      bodies: bodiesIn(reads.rare, source.part, source.buckets, range).map(bucketReaderOf(source.idBuckets)),
      lists: reads.lists.all(source.part, range.start, range.end),
    }));
}

/** Returns a function that reads the ids of a part whose keys are in a range. */
function createIdReader(reads: MergeReads, source: MergeSource): (range: KeyRange) => Uint32Array[] {
  const { part, idBuckets } = source;
  if (idBuckets !== null) return (range) => bodiesIn(reads.ids, part, idBuckets, range).map(readBucket);
  const all = idEntries(reads, source);
  const words = wordsOf(all);
  return ({ start, end }) => [words.subarray(firstOfKey(all, start) * 2, firstOfKey(all, end) * 2)];
}

/** The buckets of a part that may have keys of a range. */
function bodiesIn(read: Query<Body>, part: number, buckets: number, { start, end }: KeyRange): Uint8Array[] {
  return read.all(part, bucketOf(start, buckets), bucketOf(end - 1, buckets)).map(({ body }) => body);
}

/** The sources of a merge as they were read, the new ordinals of each, and the ordinals that are wanted. */
type EntriesRead = Readonly<{
  sources: readonly SourceEntries[];
  numbers: readonly NewOrdinals[];
  slice: OrdinalSlice;
}>;

/** The entries of a slice whose keys are in a range: renumbered, sorted, each once. */
function entriesOf({ start, end }: KeyRange, { sources, numbers, slice }: EntriesRead): BigUint64Array {
  const inSlice = sources.map(({ bodies, lists }, index) => {
    const own = numbers[index];
    assert(own !== undefined, "each source has new ordinals");
    return { own, bodies, lists: lists.filter((list) => meets(list, own, slice)) };
  });
  let most = 0;
  for (const { bodies, lists } of inSlice) {
    for (const words of bodies) most += words.length / 2;
    for (const { count } of lists) most += count;
  }
  const entries = createEntryList(most);
  const add = (key: number, ordinal: number): void => {
    if (ordinal >= slice.start && ordinal < slice.end) entries.add(key, ordinal);
  };
  /** Adds the entries of a bucket whose keys are in the range. */
  const addWords = (words: Uint32Array, own: NewOrdinals): void => {
    for (let word = 0; word < words.length; word += 2) {
      const low = words[word] ?? 0;
      const key = keyOfWords(low, words[word + 1] ?? 0);
      if (key >= start && key < end) add(key, newOrdinal(own, ordinalOfWord(low)));
    }
  };
  const addList = (list: StoredList, own: NewOrdinals): void => {
    const listed = ordinalsOfList(list);
    for (let at = 0; at < listed.length; at += 1) add(list.key, newOrdinal(own, listed[at] ?? 0));
  };
  for (const { own, bodies, lists } of inSlice) {
    for (const words of bodies) addWords(words, own);
    for (const list of lists) addList(list, own);
  }
  return entries.sorted();
}

/** Whether a list of a source may have ordinals of a slice: new ordinals are in the order of the old ones. */
function meets({ chunk }: StoredList, own: NewOrdinals, slice: OrdinalSlice): boolean {
  if (chunk === wholePart) return true;
  const first = chunk * ordinalsPerChunk;
  const last = Math.min(own.count, first + ordinalsPerChunk) - 1;
  return newOrdinal(own, first) < slice.end && newOrdinal(own, last) >= slice.start;
}

/** The entries of the ids of a part's rows, sorted. A row that was removed has no id to find. */
function idEntries(reads: MergeReads, source: MergeSource): BigUint64Array {
  const entries = createEntryList(source.count);
  for (const cursor = openPlaces(reads, source); cursor.place !== undefined; cursor.advance()) {
    const key = reads.idKeyAt(cursor.place);
    if (key !== undefined) entries.add(key, cursor.ordinal);
  }
  return entries.sorted();
}

/** Binary search: the number of entries whose key is lower. */
function firstOfKey(entries: BigUint64Array, key: number): number {
  const lowest = BigInt(key) << BigInt(64 - partKeyBits);
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((entries[middle] ?? 0n) < lowest) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Packs sorted entries into buckets; returns those that are complete. Empty ones are left out. */
function createBuckets(buckets: number) {
  let open: Uint32Array = new Uint32Array(0);
  let number = -1;
  const close = (): NumberedBody[] => (open.length === 0 ? [] : [{ number, body: writeBucket(open, "packed") }]);
  return {
    add: (words: Uint32Array): NumberedBody[] => {
      const complete: NumberedBody[] = [];
      for (const [bucket, own] of inBuckets(words, buckets)) {
        if (bucket === number) open = joined(open, own);
        else {
          complete.push(...close());
          // Copied: the words of a range are large, and this bucket is stored with the next range.
          open = own.slice();
          number = bucket;
        }
      }
      return complete;
    },
    end: close,
  };
}

function joined(first: Uint32Array, second: Uint32Array): Uint32Array {
  const words = new Uint32Array(first.length + second.length);
  words.set(first);
  words.set(second, first.length);
  return words;
}
