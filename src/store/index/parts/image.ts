/**
 * A part of the posting index before it is stored: rows by place, and for every key the rows that have it.
 *
 * Keys of few rows share buckets of plain entries; keys of many rows have lists of their own, by chunks of ordinals,
 * with a directory whose counts tell which list is shortest. A part is never changed once stored.
 * Source: docs/reference/index-layout.md#parts.
 * @module
 */
import { assert } from "../../../lib/assert.ts";
import { filterKeyBits } from "../filter-key.ts";
import { ordinalsPerChunk, type PlaceList, placesPerBlock, writeOrdinals, writePlaces } from "./codec.ts";

/** Rows of a part and their entries: `partKey << 24 | ordinal`, sorted. */
export type PartRows = Readonly<{ places: PlaceList; entries: BigUint64Array }>;

/** A list of one key within one chunk. */
export type PartList = Readonly<{ key: number; chunk: number; count: number; body: Uint8Array }>;

/** What is stored of a part. */
export type PartImage = Readonly<{
  count: number;
  /** Blocks of places. */
  places: readonly Uint8Array[];
  /** The first place of each block: upper and lower half, 4 bytes each. */
  starts: Uint8Array;
  /** Sorted entries of rare keys; bucket = floor(key × buckets / 2^40). */
  rare: readonly Uint8Array[];
  lists: readonly PartList[];
}>;

/** Bits of a filter's key that a part keeps; beside them an entry has 24 bits for the row's ordinal. */
export const partKeyBits = 40;
const partKeyScale = 2 ** (filterKeyBits - partKeyBits);

/** Most rows of a part. */
export const partRowsMax = 2 ** (64 - partKeyBits);

/** A key of at most so many rows of a part has no list of its own. */
export const rareRowsMax = 16;

/** Entries of a bucket on average: a kilobyte, read to find a rare key. */
const entriesPerBucket = 120;

/** The part of a filter's key that parts keep. */
export function partKeyOf(key: number): number {
  return Math.floor(key / partKeyScale);
}

/** The bucket in which a rare key's entries stand. */
export function bucketOf(partKey: number, buckets: number): number {
  return Math.floor((partKey / 2 ** partKeyBits) * buckets);
}

/** An entry's key and ordinal, from its two 32-bit words. */
export function keyOfWords(low: number, high: number): number {
  return high * 256 + (low >>> 24);
}

/** The ordinal of an entry, from its lower word. */
export function ordinalOfWord(low: number): number {
  return low & 0xffffff;
}

/** Rows for a new part, in place order, with the filter keys of each. */
export type NewPartRow = Readonly<{ high: number; low: number; keys: readonly number[] }>;

/** Gathers rows into places and sorted entries. */
export function gatherPart(rows: readonly NewPartRow[]): PartRows {
  assert(rows.length <= partRowsMax, "a part is bounded");
  const places = {
    high: Uint32Array.from(rows, ({ high }) => high),
    low: Uint32Array.from(rows, ({ low }) => low),
  };
  const entries = new BigUint64Array(rows.reduce((sum, { keys }) => sum + keys.length, 0));
  const words = new Uint32Array(entries.buffer);
  let at = 0;
  rows.forEach(({ keys }, ordinal) => {
    for (const key of keys) {
      const partKey = partKeyOf(key);
      words[at] = (partKey % 256) * 2 ** 24 + ordinal;
      words[at + 1] = Math.floor(partKey / 256);
      at += 2;
    }
  });
  return { places, entries: withoutRepeats(entries.sort()) };
}

/** Writes a part's rows as they are stored. */
export function imageOfPart({ places, entries }: PartRows): PartImage {
  const count = places.high.length;
  const { rareEntries, lists } = splitEntries(entries, count);
  const starts = new Uint32Array(Math.ceil(count / placesPerBlock) * 2);
  const blocks: Uint8Array[] = [];
  for (let start = 0; start < count; start += placesPerBlock) {
    const end = start + placesPerBlock;
    const block = { high: places.high.subarray(start, end), low: places.low.subarray(start, end) };
    starts.set([block.high[0] ?? 0, block.low[0] ?? 0], blocks.length * 2);
    blocks.push(writePlaces(block));
  }
  return {
    count,
    places: blocks,
    starts: new Uint8Array(starts.buffer),
    rare: bucketsOf(rareEntries),
    lists,
  };
}

/** A tag that a row has twice, or a row that two parts have, is one entry. */
function withoutRepeats(sorted: BigUint64Array): BigUint64Array {
  const words = new Uint32Array(sorted.buffer, sorted.byteOffset, sorted.length * 2);
  let stored = 0;
  for (let at = 0; at < words.length; at += 2) {
    const low = words[at] ?? 0;
    const high = words[at + 1] ?? 0;
    const isRepeat = stored > 0 && words[stored - 2] === low && words[stored - 1] === high;
    if (isRepeat) continue;
    words[stored] = low;
    words[stored + 1] = high;
    stored += 2;
  }
  return sorted.subarray(0, stored / 2);
}

/** Merges rows of several parts into those of one. A place that several have becomes one row with all their keys. */
export function mergeParts(parts: readonly PartRows[]): PartRows {
  const total = parts.reduce((sum, { places }) => sum + places.high.length, 0);
  assert(total <= partRowsMax, "a part is bounded");
  const { places, ordinals } = mergePlaces(
    parts.map((part) => part.places),
    total,
  );
  const entries = new BigUint64Array(parts.reduce((sum, part) => sum + part.entries.length, 0));
  const words = new Uint32Array(entries.buffer);
  let at = 0;
  parts.forEach((part, index) => {
    const renumbered = ordinals[index] ?? new Uint32Array(0);
    const from = new Uint32Array(part.entries.buffer, part.entries.byteOffset, part.entries.length * 2);
    for (let word = 0; word < from.length; word += 2) {
      const low = from[word] ?? 0;
      words[at] = (low >>> 24) * 2 ** 24 + (renumbered[low & 0xffffff] ?? 0);
      words[at + 1] = from[word + 1] ?? 0;
      at += 2;
    }
  });
  return { places, entries: withoutRepeats(entries.sort()) };
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

/** The list whose next place is lowest; −1 when all are at their end. */
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

/** Entries of rare keys as they are; the others as lists. */
function splitEntries(entries: BigUint64Array, rows: number) {
  const words = new Uint32Array(entries.buffer, entries.byteOffset, entries.length * 2);
  const rare = new Uint32Array(words.length);
  const lists: PartList[] = [];
  let rareEnd = 0;
  let start = 0;
  while (start < words.length) {
    const key = keyOfWords(words[start] ?? 0, words[start + 1] ?? 0);
    let end = start + 2;
    while (end < words.length && keyOfWords(words[end] ?? 0, words[end + 1] ?? 0) === key) end += 2;
    if ((end - start) / 2 > rareRowsMax) lists.push(...listsOf(key, words.subarray(start, end), rows));
    // Word by word: a view of each rare key would cost more than its entries.
    else for (let at = start; at < end; at += 1) rare[rareEnd++] = words[at] ?? 0;
    start = end;
  }
  return { rareEntries: rare.subarray(0, rareEnd), lists };
}

function listsOf(key: number, run: Uint32Array, rows: number): PartList[] {
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

function bucketsOf(rare: Uint32Array): Uint8Array[] {
  const buckets = Math.max(1, Math.ceil(rare.length / 2 / entriesPerBucket));
  const bodies: Uint8Array[] = [];
  let start = 0;
  for (let bucket = 0; bucket < buckets; bucket += 1) {
    let end = start;
    while (end < rare.length && bucketOf(keyOfWords(rare[end] ?? 0, rare[end + 1] ?? 0), buckets) === bucket) end += 2;
    bodies.push(new Uint8Array(rare.slice(start, end).buffer));
    start = end;
  }
  return bodies;
}
