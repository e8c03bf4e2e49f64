/**
 * The format of a part of the posting index: rows by place, and for each key the rows that have it.
 *
 * Ids, and keys with few rows, are entries in buckets (part-entries.ts). A key with more rows has one list, and one
 * with many rows a list for each chunk of ordinals; a directory of counts shows which list is shortest. A stored part
 * never changes.
 *
 * Rows of a part are numbered by place (ordinals); part-codec.ts encodes places and ordinals.
 * Source: docs/reference/index-layout.md#parts.
 * @module
 */
import { assert } from "../../../lib/assert.ts";
import {
  ordinalsPerChunk,
  type PartList,
  type PlaceList,
  placesPerBlock,
  wholePart,
  writeOrdinals,
  writePlaces,
  writeSteps,
} from "./part-codec.ts";
import {
  type BucketForm,
  bucketsFor,
  createEntryList,
  inBuckets,
  keyOfWords,
  ordinalOfWord,
  partKeyBits,
  partKeyOf,
  wordsOf,
  writeBucket,
} from "./part-entries.ts";

/** Rows of a part; the entries of their ids, and of all other keys, both sorted. */
export type PartRows = Readonly<{ places: PlaceList; ids: BigUint64Array; entries: BigUint64Array }>;

/** A body and its number in the part. */
export type NumberedBody = Readonly<{ number: number; body: Uint8Array }>;

/** The stored form of a part. */
export type PartImage = Readonly<{
  count: number;
  /** Number of distinct keys, ids not among them. */
  keys: number;
  /** Blocks of places. */
  places: readonly Uint8Array[];
  /** The first place of each block: upper and lower half, 4 bytes each. */
  starts: Uint8Array;
  /** Number of buckets of ids, and those that are not empty. */
  idBuckets: number;
  ids: readonly NumberedBody[];
  /** Number of buckets of rare keys, and those that are not empty. */
  buckets: number;
  rare: readonly NumberedBody[];
  lists: readonly PartList[];
}>;

/** Maximum number of rows of a part. */
export const partRowsMax = 2 ** (64 - partKeyBits);

/**
 * A key with at most this many rows in a part has no list of its own. It would take 80 bytes or more, with its rows in
 * two tables: as much as 20 to 80 entries of a packed bucket.
 */
export const rareRowsMax = 64;

/** A key with fewer rows for each chunk has one list in the part: lists of chunks would be longer, and read singly. */
const wholeRowsPerChunk = 64;

/** A row for a new part, with its filter keys: first that of its id. */
export type NewPartRow = Readonly<{ high: number; low: number; keys: readonly number[] }>;

/** Rows for a new part in columns, in place order; `keyEnds`: the end of each row's keys, first of them its id's. */
export type NewPartRows = Readonly<{ high: Uint32Array; low: Uint32Array; keys: Float64Array; keyEnds: Uint32Array }>;

/** Converts rows to columns. @param rows - In place order. */
export function columnsOf(rows: readonly NewPartRow[]): NewPartRows {
  let end = 0;
  const keyEnds = Uint32Array.from(rows, ({ keys }) => {
    end += keys.length;
    return end;
  });
  return {
    high: Uint32Array.from(rows, ({ high }) => high),
    low: Uint32Array.from(rows, ({ low }) => low),
    keys: Float64Array.from(rows.flatMap(({ keys }) => keys)),
    keyEnds,
  };
}

/** Converts rows into places and sorted entries. */
export function gatherPart({ high, low, keys, keyEnds }: NewPartRows): PartRows {
  assert(high.length <= partRowsMax, "a part is bounded");
  const ids = createEntryList(high.length);
  const entries = createEntryList(keys.length - high.length);
  let at = 0;
  for (let ordinal = 0; ordinal < keyEnds.length; ordinal += 1) {
    ids.add(partKeyOf(keys[at++] ?? 0), ordinal);
    for (const end = keyEnds[ordinal] ?? 0; at < end; at += 1) entries.add(partKeyOf(keys[at] ?? 0), ordinal);
  }
  return { places: { high, low }, ids: ids.sorted(), entries: entries.sorted() };
}

/** Serializes a part. */
export function imageOfPart({ places, ids, entries }: PartRows): PartImage {
  const count = places.high.length;
  const { rareEntries, lists, keys } = splitEntries(entries, count);
  const starts = new Uint32Array(Math.ceil(count / placesPerBlock) * 2);
  const blocks: Uint8Array[] = [];
  for (let start = 0; start < count; start += placesPerBlock) {
    const end = start + placesPerBlock;
    const block = { high: places.high.subarray(start, end), low: places.low.subarray(start, end) };
    starts.set([block.high[0] ?? 0, block.low[0] ?? 0], blocks.length * 2);
    blocks.push(writePlaces(block));
  }
  const idBuckets = bucketsFor(ids.length);
  const buckets = bucketsFor(rareEntries.length / 2);
  return {
    count,
    keys,
    places: blocks,
    starts: new Uint8Array(starts.buffer),
    idBuckets,
    ids: bucketBodies(wordsOf(ids), idBuckets, "plain"),
    buckets,
    rare: bucketBodies(rareEntries, buckets, "plain"),
    lists,
  };
}

function bucketBodies(words: Uint32Array, buckets: number, form: BucketForm): NumberedBody[] {
  return Array.from(inBuckets(words, buckets), ([number, own]) => ({ number, body: writeBucket(own, form) }));
}

/** Merges parts. A place in several parts becomes one row with all their keys. */
export function mergeParts(parts: readonly PartRows[]): PartRows {
  const total = parts.reduce((sum, { places }) => sum + places.high.length, 0);
  assert(total <= partRowsMax, "a part is bounded");
  const { places, ordinals } = mergePlaces(
    parts.map((part) => part.places),
    total,
  );
  const merged = (entriesOf: (part: PartRows) => BigUint64Array): BigUint64Array => {
    const list = createEntryList(parts.reduce((sum, part) => sum + entriesOf(part).length, 0));
    parts.forEach((part, index) => {
      const renumbered = ordinals[index] ?? new Uint32Array(0);
      list.addWords(wordsOf(entriesOf(part)), renumbered);
    });
    return list.sorted();
  };
  return { places, ids: merged(({ ids }) => ids), entries: merged(({ entries }) => entries) };
}

function mergePlaces(lists: readonly PlaceList[], total: number) {
  const high = new Uint32Array(total);
  const low = new Uint32Array(total);
  const ordinals = lists.map((list) => new Uint32Array(list.high.length));
  const heads = lists.map(() => 0);
  let count = 0;
  for (;;) {
    const next = lowestHead(lists, heads);
    if (next === -1) break;
    const head = heads[next] ?? 0;
    const nextHigh = lists[next]?.high[head] ?? 0;
    const nextLow = lists[next]?.low[head] ?? 0;
    const isRepeat = count > 0 && high[count - 1] === nextHigh && low[count - 1] === nextLow;
    if (!isRepeat) {
      high[count] = nextHigh;
      low[count] = nextLow;
      count += 1;
    }
    const renumbered = ordinals[next];
    if (renumbered !== undefined) renumbered[head] = count - 1;
    heads[next] = head + 1;
  }
  return { places: { high: high.subarray(0, count), low: low.subarray(0, count) }, ordinals };
}

/** The list with the lowest next place; −1 when all are at their end. */
function lowestHead(lists: readonly PlaceList[], heads: readonly number[]): number {
  let lowest = -1;
  let bestHigh = 0;
  let bestLow = 0;
  for (let index = 0; index < lists.length; index += 1) {
    const head = heads[index] ?? 0;
    const list = lists[index];
    if (list === undefined || head >= list.high.length) continue;
    const high = list.high[head] ?? 0;
    const low = list.low[head] ?? 0;
    if (lowest !== -1 && (high > bestHigh || (high === bestHigh && low >= bestLow))) continue;
    lowest = index;
    bestHigh = high;
    bestLow = low;
  }
  return lowest;
}

/** Separates the entries of rare keys from the lists of other keys, and visits each distinct key in order. */
export function splitEntries(entries: BigUint64Array, rows: number, visitKey: (key: number) => void = () => undefined) {
  const words = wordsOf(entries);
  const rare = new Uint32Array(words.length);
  const lists: PartList[] = [];
  let rareEnd = 0;
  let start = 0;
  let keys = 0;
  while (start < words.length) {
    const key = keyOfWords(words[start] ?? 0, words[start + 1] ?? 0);
    keys += 1;
    visitKey(key);
    let end = start + 2;
    while (end < words.length && keyOfWords(words[end] ?? 0, words[end + 1] ?? 0) === key) end += 2;
    if ((end - start) / 2 > rareRowsMax) lists.push(...listsOf(key, words.subarray(start, end), rows));
    // Word by word: a view of each rare key would cost more than its entries.
    else for (let at = start; at < end; at += 1) rare[rareEnd++] = words[at] ?? 0;
    start = end;
  }
  return { rareEntries: rare.subarray(0, rareEnd), lists, keys };
}

function listsOf(key: number, run: Uint32Array, rows: number): PartList[] {
  if (rows > ordinalsPerChunk && run.length / 2 < wholeRowsPerChunk * (rows / ordinalsPerChunk)) {
    const ordinals = Uint32Array.from({ length: run.length / 2 }, (_, at) => ordinalOfWord(run[at * 2] ?? 0));
    return [{ key, chunk: wholePart, count: ordinals.length, body: writeSteps(ordinals) }];
  }
  return chunkLists(key, run, rows);
}

/** The list of a key in each chunk of its entries. @param run - Their words, sorted. @param rows - Of the part. */
export function chunkLists(key: number, run: Uint32Array, rows: number): PartList[] {
  const lists: PartList[] = [];
  let start = 0;
  while (start < run.length) {
    const chunk = Math.floor(ordinalOfWord(run[start] ?? 0) / ordinalsPerChunk);
    const limit = (chunk + 1) * ordinalsPerChunk;
    let end = start + 2;
    while (end < run.length && ordinalOfWord(run[end] ?? 0) < limit) end += 2;
    const ordinals = new Uint16Array((end - start) / 2);
    for (let at = start; at < end; at += 2) ordinals[(at - start) / 2] = (run[at] ?? 0) & 0xffff;
    const chunkRows = Math.min(ordinalsPerChunk, rows - chunk * ordinalsPerChunk);
    lists.push({ key, chunk, count: ordinals.length, body: writeOrdinals(ordinals, chunkRows) });
    start = end;
  }
  return lists;
}
