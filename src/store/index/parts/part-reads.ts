/**
 * Reads parts of the posting index: the rows of a part that are in several groups of keys, in place order.
 *
 * A part says what may be at a place: a row that was removed is still in it, and another row may have taken its place.
 * So no row is left out because a part says that it has an unwanted tag; the row itself decides.
 *
 * Within a part, rows are numbered by place (ordinals). The lists of keys are intersected in memory in chunks of
 * 65,536: the shortest list of a chunk is iterated, and the others are tested for its rows.
 *
 * Parts never change and their numbers are never reused, so cached contents stay valid. Only a writer, whose
 * transaction may fail after it added a part, must discard them.
 * Source: docs/reference/index-layout.md#pages-of-results.
 * @module
 */
import type { Database } from "bun:sqlite";
import { LRUCache } from "lru-cache";
import { prepareQuery } from "../../sqlite.ts";
import { compareHalves, type PlaceHalves } from "../place.ts";
import {
  bitsOfList,
  markOrdinals,
  meetList,
  meetOrdinals,
  ordinalsOfList,
  ordinalsPerChunk,
  readBits,
  readOrdinals,
  selectByBits,
  setBits,
  wholePart,
} from "./part-codec.ts";
import { bucketOf, bucketReaderOf, keyOfWords, ordinalOfWord, partKeyOf, readBucket } from "./part-entries.ts";
import {
  createFilter,
  createIdFilter,
  filterFolderOf,
  type KeyFilter,
  type NewFilter,
  openFilterFile,
  type PartFilters,
  type SoughtKeys,
  soughtKeys,
} from "./part-filter.ts";
import { createPartList, hasIdsApart, overlaps, type PartInfo } from "./part-list.ts";
import { countWhile, createPlaceReads, type PlaceReads, partEntryNumber } from "./part-places.ts";

/** A query of one part. */
export type PartQuery = Readonly<{
  order: "asc" | "desc";
  /** Places, both inclusive. */
  first: PlaceHalves;
  last: PlaceHalves;
  /** Filter keys; a row must be in each group. At least one group. */
  groups: readonly (readonly number[])[];
  /** Called between chunks; throws to end the query. */
  checkpoint: () => void;
}>;

/** Parts of one database. Calls run inside the reader's snapshot. */
export type PartReads = Readonly<{
  list: () => readonly PartInfo[];
  /** Candidates in order; the caller checks each against its row. */
  find: (part: PartInfo, query: PartQuery) => Generator<PlaceHalves>;
  /**
   * Candidates for the keys of ids, the newest parts first; the caller checks each against its row.
   *
   * @param keys - In ascending order, so that successive keys read the next block of a filter.
   * @param within - Where the rows must be; parts elsewhere are not read. By default everywhere.
   */
  placesOfIds: (keys: readonly number[], within?: IdBounds) => readonly IdCandidate[];
  /** As `placesOfIds`, for keys that another connection tested. Only for the writer, which sees all parts. */
  placesOfTestedIds: (keys: readonly number[], tested: TestedIds) => readonly IdCandidate[];
  /** Looks for the keys of ids, in ascending order, in the parts whose filters are files. */
  testIds: (keys: readonly number[]) => TestedIds;
  /** Drops what is cached: a transaction failed. */
  discard: () => void;
}>;

/** What the parts whose filters are files had of the keys of ids at one version of the list of parts. */
export type TestedIds = Readonly<{
  version: number;
  /** Alternating: a part, and the index of a key that it has. */
  present: Uint32Array;
}>;

/** Places, both inclusive; `checkpoint` is called for each part, and throws to end the search. */
export type IdBounds = Pick<PartQuery, "first" | "last" | "checkpoint">;

/** A place that may have an id. `index`: of the id's key among the given keys. */
export type IdCandidate = Readonly<{ index: number; place: PlaceHalves }>;

/** Groups the indices of keys by the part that has them. */
function byPart(present: Uint32Array): ReadonlyMap<number, readonly number[]> {
  const indices = new Map<number, number[]>();
  for (let at = 0; at < present.length; at += 2)
    indices.getOrInsertComputed(present[at] ?? 0, () => []).push(present[at + 1] ?? 0);
  return indices;
}

export function createPartReads(db: Database): PartReads {
  const filters = createFilterReads(db);
  const infos = createPartList(db, filters.keep);
  const lists = createKeyLists(db);
  const places = createPlaceReads(db);
  const ordinalsOf = createIdOrdinals(db, lists);
  /** The lists of each group; none when the part has no key of one of them, as most parts have none of a rare group. */
  const groupsIn = (part: PartInfo, groups: PartQuery["groups"]): GroupLists[] => {
    const wanted = groups.map((keys) => keys.filter((key) => filters.mayHave(part, key)));
    return wanted.some((keys) => keys.length === 0) ? [] : wanted.map((keys) => lists.listsOf(part, keys));
  };

  /** The places that a part has for the keys that its filter lets pass. */
  const candidatesOf = (part: PartInfo, keys: readonly number[], passing: readonly number[]): IdCandidate[] =>
    passing.flatMap((index) =>
      ordinalsOf(part, keys[index] ?? 0).map((ordinal) => ({ index, place: places.at(part.part, ordinal) })),
    );

  /** The indices of the keys that a part has, of those that its filter lets pass. */
  const foundOf = (part: PartInfo, keys: readonly number[], passing: readonly number[]): readonly number[] =>
    passing.filter((index) => ordinalsOf(part, keys[index] ?? 0).length > 0);

  return {
    list: infos.list,
    discard: () => {
      infos.discard();
      filters.discard();
      lists.discard();
      places.discard();
    },
    placesOfIds: (keys, within) => {
      const sought = soughtKeys(keys.map(partKeyOf));
      const found: IdCandidate[] = [];
      for (const part of infos.list()) {
        if (part.keys === null || (within !== undefined && !overlaps(part, within))) continue;
        within?.checkpoint();
        for (const candidate of candidatesOf(part, keys, filters.passing(part, sought))) found.push(candidate);
      }
      return found;
    },
    placesOfTestedIds: (keys, { version, present }) => {
      const sought = soughtKeys(keys.map(partKeyOf));
      const tested = byPart(present);
      const found: IdCandidate[] = [];
      for (const part of infos.list()) {
        if (part.keys === null) continue;
        const isTested = part.filter !== null && infos.listedSince(part.part) <= version;
        const mayHave = isTested ? (tested.get(part.part) ?? []) : filters.passing(part, sought);
        for (const candidate of candidatesOf(part, keys, mayHave)) found.push(candidate);
      }
      return found;
    },
    testIds: (keys) => {
      const sought = soughtKeys(keys.map(partKeyOf));
      const present: number[] = [];
      for (const part of infos.list()) {
        if (part.keys === null || part.filter === null) continue;
        for (const index of foundOf(part, keys, filters.passing(part, sought))) present.push(part.part, index);
      }
      return { version: infos.version(), present: Uint32Array.from(present) };
    },
    find: function* (part, query) {
      const { start, end } = ordinalsBetween(places, part, query);
      const groups = start < end ? groupsIn(part, query.groups) : [];
      for (const chunk of chunksOf(groups, query.order)) {
        const base = chunk * ordinalsPerChunk;
        if (base >= end || base + ordinalsPerChunk <= start) continue;
        query.checkpoint();
        const met = meetInChunk(lists.reads, chunk, groups);
        const from = countWhile(met.length, (at) => base + (met[at] ?? 0) < start);
        const to = countWhile(met.length, (at) => base + (met[at] ?? 0) < end);
        const ordinals = met.subarray(from, to);
        if (query.order === "desc") ordinals.reverse();
        for (const low of ordinals) yield places.at(part.part, base + low);
      }
    },
  };
}

/** The ordinals of the places in a range, half-open. Reads nothing when the range covers the part. */
function ordinalsBetween(
  places: PlaceReads,
  part: PartInfo,
  { first, last }: PartQuery,
): Readonly<{ start: number; end: number }> {
  const isFromStart = compareHalves(first, part.first) <= 0;
  const isToEnd = compareHalves(last, part.last) >= 0;
  return {
    start: isFromStart ? 0 : places.firstAtOrAfter(part.part, first),
    end: isToEnd ? part.count : places.firstAfter(part.part, last),
  };
}

/** Buckets read at a time: a megabyte. */
const bucketsPerRead = 1_024;
const keysPerRead = 4_096;
/** Limit of the rows of a part without a file whose filter is made by each thread that needs it: 5 ms for 2^15 rows. */
const filterBuiltRowsMax = 2 ** 18;
/**
 * Such a filter is made once this many keys were looked up for each row of the part: then the look-ups without it took
 * about as long as making it does. The first pages after a start need not wait until all keys of small parts are read.
 */
const lookUpsPerRow = 1 / 512;
/** Limit of parts whose filters are cached. */
const filtersCachedMax = 512;

/** Reads the keys of a part, for its filters. */
export type PartKeyReads = Readonly<{
  /** The keys of ids, in order. */
  ids: (part: PartInfo & Readonly<{ idBuckets: number }>) => Generator<number>;
  /** The other keys, in order; some of them several times. */
  keys: (part: PartInfo) => Generator<number>;
}>;

export function createPartKeyReads(db: Database): PartKeyReads {
  const bodies = (table: string) =>
    prepareQuery<{ body: Uint8Array }>(
      db,
      `SELECT body FROM ${table} WHERE n BETWEEN (?1 << 24) | ?2 AND (?1 << 24) | ?3 ORDER BY n`,
    );
  const rare = bodies("part_rare");
  const ids = bodies("part_ids");
  const listed = prepareQuery<{ key: number }>(
    db,
    "SELECT DISTINCT key FROM part_keys WHERE part = ? AND key > ? ORDER BY key LIMIT ?",
  );
  /** The keys that have lists. */
  const listedKeys = function* (part: number): Generator<number> {
    let last = -1;
    for (let keys = listed.all(part, last, keysPerRead); keys.length > 0; keys = listed.all(part, last, keysPerRead)) {
      for (const { key } of keys) yield key;
      last = keys.at(-1)?.key ?? last;
    }
  };
  /** The keys of all buckets. */
  const keysIn = function* (
    readBodies: (first: number, last: number) => readonly Readonly<{ body: Uint8Array }>[],
    { buckets, read }: Readonly<{ buckets: number; read: (body: Uint8Array) => Uint32Array }>,
  ): Generator<number> {
    for (let first = 0; first < buckets; first += bucketsPerRead) {
      for (const { body } of readBodies(first, first + bucketsPerRead - 1)) {
        const words = read(body);
        for (let at = 0; at < words.length; at += 2) yield keyOfWords(words[at] ?? 0, words[at + 1] ?? 0);
      }
    }
  };
  return {
    ids: ({ part, idBuckets }) =>
      keysIn((first, last) => ids.all(part, first, last), { buckets: idBuckets, read: readBucket }),
    keys: function* ({ part, buckets, idBuckets }) {
      const common = listedKeys(part);
      let next = common.next();
      const read = bucketReaderOf(idBuckets);
      for (const key of keysIn((first, last) => rare.all(part, first, last), { buckets, read })) {
        for (; next.done !== true && next.value < key; next = common.next()) yield next.value;
        yield key;
      }
      for (; next.done !== true; next = common.next()) yield next.value;
    },
  };
}

/** The filters of one part in this thread. */
type CachedFilters = {
  readonly name: string | null;
  readonly file: PartFilters | undefined;
  /** Made by this thread, once many keys were looked up. */
  ids: KeyFilter | undefined;
  idLookUps: number;
  keys: KeyFilter | undefined;
  keyLookUps: number;
};

function filled(filter: NewFilter, keys: Iterable<number>): KeyFilter {
  for (const key of keys) filter.add(key);
  return filter;
}

/** Filters of parts. */
function createFilterReads(db: Database) {
  const folder = filterFolderOf(db.filename);
  const reads = createPartKeyReads(db);
  const cached = new Map<number, CachedFilters>();
  const known = (info: PartInfo): CachedFilters => {
    const { part, filter: name } = info;
    const entry = cached.get(part);
    if (entry !== undefined && entry.name === name) return entry;
    const file = name === null ? undefined : openFilterFile(folder, name, hasIdsApart(info) ? info.count : undefined);
    const opened = { name, file, ids: undefined, idLookUps: 0, keys: undefined, keyLookUps: 0 };
    if (cached.size >= filtersCachedMax) cached.clear();
    cached.set(part, opened);
    return opened;
  };
  const isWorthIt = (info: PartInfo, lookUps: number): boolean =>
    info.keys !== null && info.count <= filterBuiltRowsMax && lookUps > info.count * lookUpsPerRow;
  const keyFilterOf = (info: PartInfo, lookUps: number): KeyFilter | undefined => {
    const entry = known(info);
    if (entry.file !== undefined) return entry.file.keys;
    entry.keyLookUps += lookUps;
    if (entry.keys === undefined && isWorthIt(info, entry.keyLookUps))
      entry.keys = filled(createFilter(info.keys ?? 0), reads.keys(info));
    return entry.keys;
  };
  const idFilterOf = (info: PartInfo, lookUps: number): KeyFilter | undefined => {
    if (!hasIdsApart(info)) return keyFilterOf(info, lookUps);
    const entry = known(info);
    if (entry.file !== undefined) return entry.file.ids;
    entry.idLookUps += lookUps;
    if (entry.ids === undefined && isWorthIt(info, entry.idLookUps))
      entry.ids = filled(createIdFilter(info.count), reads.ids(info));
    return entry.ids;
  };
  return {
    mayHave: (part: PartInfo, key: number): boolean => keyFilterOf(part, 1)?.has(partKeyOf(key)) ?? true,
    /** The indices of the keys of ids that a part may have. */
    passing: (part: PartInfo, sought: SoughtKeys): readonly number[] => {
      const filter = idFilterOf(part, sought.lows.length);
      return filter === undefined ? [...sought.lows.keys()] : filter.passing(sought);
    },
    /** Releases the filters of other parts: their files are removed, but take space while they are mapped. */
    keep: (infos: readonly PartInfo[]): void => {
      const parts = new Set(infos.map(({ part }) => part));
      for (const part of cached.keys()) if (!parts.has(part)) cached.delete(part);
    },
    discard: () => cached.clear(),
  };
}

/**
 * The rows of one key in one chunk, as the lower halves of their ordinals: in memory, or in a list of a part. A page
 * meets hundreds of them, so that they have no functions of their own.
 */
type ChunkList = Readonly<{ count: number }> &
  (Readonly<{ kind: "memory"; ordinals: Uint16Array }> | Readonly<{ kind: "stored"; part: number; list: number }>);

/** Reads the lists of chunks. */
type ListReads = Readonly<{
  /** In order. */
  read: (list: ChunkList) => Uint16Array;
  /** Those of some ordinals in order that the list has too; overwrites them. */
  meet: (list: ChunkList, ordinals: Uint16Array) => Uint16Array;
  /** The bits of a list, which must not be changed. */
  bits: (list: ChunkList) => Uint8Array;
  /** Sets the bits of a list in the bitmap of a chunk. */
  mark: (list: ChunkList, bits: Uint8Array) => void;
}>;

function createListReads(bodyOf: (part: number, list: number) => Uint8Array): ListReads {
  return {
    read: (list) =>
      list.kind === "memory" ? list.ordinals.slice() : readOrdinals(bodyOf(list.part, list.list), list.count),
    meet: (list, ordinals) =>
      list.kind === "memory"
        ? meetOrdinals(list.ordinals, ordinals)
        : meetList(bodyOf(list.part, list.list), list.count, ordinals),
    bits: (list) =>
      list.kind === "memory" ? bitsOf(list.ordinals) : bitsOfList(bodyOf(list.part, list.list), list.count),
    mark: (list, bits) =>
      list.kind === "memory"
        ? setBits(bits, list.ordinals)
        : markOrdinals(bodyOf(list.part, list.list), list.count, bits),
  };
}

function bitsOf(ordinals: Uint16Array): Uint8Array {
  const bits = new Uint8Array(ordinalsPerChunk / 8);
  setBits(bits, ordinals);
  return bits;
}

/** The rows of one group of keys: lists by chunk. */
type GroupLists = ReadonlyMap<number, readonly ChunkList[]>;

/** The chunks of the group with the fewest rows, in order; empty when a group has no rows. */
function chunksOf(groups: readonly GroupLists[], order: "asc" | "desc"): number[] {
  const [shortest] = groups.toSorted((a, b) => sizeOf(a) - sizeOf(b));
  return [...(shortest?.keys() ?? [])].sort((a, b) => (order === "asc" ? a - b : b - a));
}

/** The rows of a chunk that are in every group: lower halves of ordinals, in order. */
function meetInChunk(reads: ListReads, chunk: number, groups: readonly GroupLists[]): Uint16Array {
  const inChunk = groups.map((group) => group.get(chunk) ?? []);
  const [shortest = [], ...others] = inChunk.sort((a, b) => countOf(a) - countOf(b));
  if (countOf(shortest) === 0) return new Uint16Array(0);
  let met = unionOf(reads, shortest);
  for (const lists of others) {
    if (met.length === 0) return met;
    const [only] = lists;
    met =
      lists.length === 1 && only !== undefined ? reads.meet(only, met) : selectByBits(met, bitsOfUnion(reads, lists));
  }
  return met;
}

function sizeOf(group: GroupLists): number {
  let size = 0;
  for (const lists of group.values()) size += countOf(lists);
  return size;
}

function countOf(lists: readonly ChunkList[]): number {
  return lists.reduce((sum, { count }) => sum + count, 0);
}

function unionOf(reads: ListReads, lists: readonly ChunkList[]): Uint16Array {
  const [only] = lists;
  if (lists.length === 1 && only !== undefined) return reads.read(only);
  const found = new Uint16Array(countOf(lists));
  return found.subarray(0, readBits(bitsOfUnion(reads, lists), found));
}

function bitsOfUnion(reads: ListReads, lists: readonly ChunkList[]): Uint8Array {
  const [only] = lists;
  // A common key has one list, often stored as bits: these are used in place.
  if (lists.length === 1 && only !== undefined) return reads.bits(only);
  const bits = new Uint8Array(ordinalsPerChunk / 8);
  for (const list of lists) reads.mark(list, bits);
  return bits;
}

/** Returns the ordinals of an id's key in a part whose filter lets it pass. */
function createIdOrdinals(
  db: Database,
  { listsOf, reads }: KeyLists,
): (part: PartInfo, key: number) => readonly number[] {
  const bucketOfIds = prepareQuery<{ body: Uint8Array }>(db, "SELECT body FROM part_ids WHERE n = (? << 24) | ?");
  const bucket = prepareQuery<{ body: Uint8Array }>(db, "SELECT body FROM part_rare WHERE n = (? << 24) | ?");
  const isListed = prepareQuery<{ n: number }>(db, "SELECT 1 AS n FROM part_keys WHERE part = ? AND key = ? LIMIT 1");
  return (info, key) => {
    const partKey = partKeyOf(key);
    if (hasIdsApart(info))
      return ordinalsOfKey(readBucket(bucketOfIds.get(info.part, bucketOf(partKey, info.idBuckets))?.body), partKey);
    const words = bucketReaderOf(null)(bucket.get(info.part, bucketOf(partKey, info.buckets))?.body);
    const found = ordinalsOfKey(words, partKey);
    // The key of an id may be that of a popular tag: then its entries are in lists, and none in the bucket.
    if (found.length > 0 || isListed.get(info.part, partKey) === undefined) return found;
    const listed: number[] = [];
    for (const [chunk, lists] of listsOf(info, [key]))
      for (const list of lists) for (const low of reads.read(list)) listed.push(chunk * ordinalsPerChunk + low);
    return listed;
  };
}

/** Limit of the cached bodies of lists: those of three popular keys of ten million rows. Bytes. */
const listBytesCachedMax = 4 * 2 ** 20;
/** Memory of an entry beside its bytes. */
const listObjectBytes = 256;

/** Lists of keys. */
type KeyLists = Readonly<{
  /** The lists of a group's keys in a part; long lists are read on demand. */
  listsOf: (part: PartInfo, keys: readonly number[]) => GroupLists;
  reads: ListReads;
  discard: () => void;
}>;

function createKeyLists(db: Database): KeyLists {
  const directory = prepareQuery<{ chunk: number; count: number; list: number }>(
    db,
    "SELECT chunk, count, list FROM part_keys WHERE part = ? AND key = ?",
  );
  const bodyFrom = (table: string) =>
    prepareQuery<{ body: Uint8Array }>(db, `SELECT body FROM ${table} WHERE n = (? << 24) | ?`);
  const list = bodyFrom("part_lists");
  const bucket = bodyFrom("part_rare");
  const cached = new LRUCache<number, Uint8Array>({
    maxSize: listBytesCachedMax,
    sizeCalculation: (body) => body.length + listObjectBytes,
  });
  const bodyOfList = (part: number, number: number): Uint8Array => {
    const name = partEntryNumber(part, number);
    const known = cached.get(name);
    if (known !== undefined) return known;
    const body = list.get(part, number)?.body ?? new Uint8Array(0);
    cached.set(name, body);
    return body;
  };

  const listsOfKey = function* (info: PartInfo, key: number): Generator<[chunk: number, list: ChunkList]> {
    const { part, buckets } = info;
    const chunks = directory.all(part, key);
    for (const { chunk, count, list: number } of chunks) {
      if (chunk !== wholePart) yield [chunk, { kind: "stored", count, part, list: number }];
      else yield* byChunk(ordinalsOfList({ chunk, count, body: bodyOfList(part, number) }));
    }
    // A key has either lists or entries in its bucket, never both.
    if (chunks.length > 0) return;
    const read = bucketReaderOf(info.idBuckets);
    const rare = ordinalsOfKey(read(bucket.get(part, bucketOf(key, buckets))?.body), key);
    yield* byChunk(Uint32Array.from(rare));
  };

  return {
    listsOf: (info, keys) => {
      const lists = new Map<number, ChunkList[]>();
      for (const key of keys) {
        for (const [chunk, found] of listsOfKey(info, partKeyOf(key))) {
          const others = lists.get(chunk);
          if (others === undefined) lists.set(chunk, [found]);
          else others.push(found);
        }
      }
      return lists;
    },
    reads: createListReads(bodyOfList),
    discard: () => cached.clear(),
  };
}

/** The ordinals of a key's rows in a bucket. */
function ordinalsOfKey(words: Uint32Array, key: number): number[] {
  const found: number[] = [];
  for (let at = 0; at < words.length; at += 2) {
    const low = words[at] ?? 0;
    if (keyOfWords(low, words[at + 1] ?? 0) === key) found.push(ordinalOfWord(low));
  }
  return found;
}

/** Ordinals of a part in order, by chunk. */
function* byChunk(ordinals: Uint32Array): Generator<[chunk: number, list: ChunkList]> {
  for (let start = 0; start < ordinals.length; ) {
    const chunk = Math.floor((ordinals[start] ?? 0) / ordinalsPerChunk);
    const end =
      start + countWhile(ordinals.length - start, (at) => (ordinals[start + at] ?? 0) < (chunk + 1) * ordinalsPerChunk);
    yield [chunk, { kind: "memory", count: end - start, ordinals: Uint16Array.from(ordinals.subarray(start, end)) }];
    start = end;
  }
}
