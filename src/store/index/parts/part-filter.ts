/**
 * Filters of parts: whether a part may have a key. A look-up touches only the parts whose filter has its key.
 *
 * A filter is a split-block Bloom filter: a key sets one bit in each of the eight words of one block of 32 bytes, so a
 * test reads one cache line. A part has two of them. That of its ids has 20 bits a key, because each row that is added
 * is looked for in all parts: 0.04 % of absent ids pass. That of all other keys has ten bits a key, and 1.2 % of absent
 * keys pass (both measured, part-filter.test.ts). Filters of large parts are files that all threads map into memory:
 * a few keys are tested through an address, which the runtime does not count, many of them through a typed array. A
 * filter only saves work: without one, or where it is damaged, the part is searched.
 *
 * A file has the filter of ids, that of the other keys, and a checksum of each 4 KiB, which is checked before their
 * first use: a filter that is opened is not read, and the first look-up after a start reads a few pages instead of all
 * filters.
 * Source: docs/reference/index-layout.md#filters-of-parts.
 * @module
 */
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { assert } from "../../../lib/assert.ts";
import { mapWords } from "../../../lib/mapped-words.ts";
import { partKeyBits } from "./part-entries.ts";

/** Whether a part may have a key; false: it does not have it. */
export type KeyFilter = Readonly<{
  has: (partKey: number) => boolean;
  /** The indices of the keys that pass. */
  passing: (sought: SoughtKeys) => number[];
}>;

/** The filters of a part; `ids` is undefined for a part of an earlier release, whose ids are among its keys. */
export type PartFilters = Readonly<{ ids: KeyFilter | undefined; keys: KeyFilter }>;

/** A filter in memory, to which keys are added in any order. */
export type NewFilter = KeyFilter & Readonly<{ add: (partKey: number) => void }>;

/** The filters of a part that are written to a file. First the ids are added, then the other keys, each in order. */
export type NewFilterFile = Readonly<{
  addId: (partKey: number) => void;
  addKey: (partKey: number) => void;
  /** @returns The file's name (see `nameOf`). It is on disk then. */
  end: () => string;
  /** Removes the file unless it has ended. Idempotent. */
  close: () => void;
}>;

/** Keys that many filters are tested for. In order of keys, successive tests read the next block of a filter. */
export type SoughtKeys = Readonly<{
  /** Of each key its share of all keys, which chooses the block, and its trailing 32 bits. */
  shares: Float64Array;
  lows: Int32Array;
  /** Of each key the numbers of its bits in the first two words of its block. */
  firstBits: Uint8Array;
  secondBits: Uint8Array;
}>;

const bitsPerId = 20;
/** Of files of earlier releases, whose names do not tell it. */
const oldBitsPerId = 16;
const bitsPerKey = 10;
const wordsPerBlock = 8;
const blockBytes = wordsPerBlock * 4;
/** Odd factors, one for each word of a block. Numbers are part of the format. */
const factors = Int32Array.of(
  ...[0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31],
);

/** Bytes of the filter of a number of keys. */
function filterBytes(keys: number, bits: number): number {
  return Math.max(1, Math.ceil((keys * bits) / (blockBytes * 8))) * blockBytes;
}

/**
 * The filter of the keys of a part, but for its ids.
 *
 * @param keysMax - Distinct keys; with more of them, more absent ones pass.
 */
export function createFilter(keysMax: number): NewFilter {
  return newFilter(filterBytes(keysMax, bitsPerKey));
}

/** The filter of the ids of a part. @param rows - Of the part. */
export function createIdFilter(rows: number): NewFilter {
  return newFilter(filterBytes(rows, bitsPerId));
}

function newFilter(bytes: number): NewFilter {
  const words = new Uint32Array(bytes / 4);
  return {
    ...filterOf({ length: words.length, at: (index) => words[index] ?? 0, all: () => words }),
    add: (partKey) => setBits(words, firstWordOf(partKey, words.length), partKey),
  };
}

/** The first word of the block of a key, in a filter of so many words. */
function firstWordOf(partKey: number, words: number): number {
  return Math.floor(shareOf(partKey) * (words / wordsPerBlock)) * wordsPerBlock;
}

/** Sets the bits of a key. @param block - The first word of its block. */
function setBits(words: Uint32Array, block: number, partKey: number): void {
  const low = partKey | 0;
  for (let word = 0; word < wordsPerBlock; word += 1)
    words[block + word] = (words[block + word] ?? 0) | bitOf(low, word);
}

/** Keys to look for in several parts. @param keys - Leading bits of filter keys. */
export function soughtKeys(keys: readonly number[]): SoughtKeys {
  const lows = Int32Array.from(keys, (key) => key | 0);
  return {
    shares: Float64Array.from(keys, shareOf),
    lows,
    firstBits: Uint8Array.from(lows, (low) => bitNumber(low, 0)),
    secondBits: Uint8Array.from(lows, (low) => bitNumber(low, 1)),
  };
}

/** The words of a filter. */
type FilterWords = Readonly<{
  length: number;
  at: (index: number) => number;
  /** All of them as a typed array, which is made at the first call; undefined when they are not in memory any more. */
  all: () => Uint32Array | undefined;
}>;

/**
 * From so many keys on, a typed array saves more than it costs: a batch of rows. A query has fewer (query-limits.ts),
 * so that threads of queries have no typed array.
 * Source: docs/decisions/115-filters-by-address.md.
 */
const manyKeys = 1_024;

/** @param pages - The pages of its words; every key of a damaged one passes. */
function filterOf(words: FilterWords, pages: FilterPages = soundPages(words.length)): KeyFilter {
  const blocks = words.length / wordsPerBlock;
  const passes = (at: FilterWords["at"], share: number, low: number): boolean => {
    const block = Math.floor(share * blocks) * wordsPerBlock;
    if (!pages.isSound(block)) return true;
    for (let word = 0; word < wordsPerBlock; word += 1) if ((at(block + word) & bitOf(low, word)) === 0) return false;
    return true;
  };
  return {
    has: (partKey) => passes(words.at, shareOf(partKey), partKey | 0),
    passing: (sought) => {
      const { shares, lows } = sought;
      const all = lows.length < manyKeys ? undefined : words.all();
      const mayPass = all && testTwoWords(all, pages, sought);
      const at = all ? (index: number) => all[index] ?? 0 : words.at;
      const found: number[] = [];
      for (let index = 0; index < lows.length; index += 1)
        if (mayPass?.[index] !== 0 && passes(at, shares[index] ?? 0, lows[index] ?? 0)) found.push(index);
      return found;
    },
  };
}

/**
 * Tests the first two words of the block of each key: 1 where they have the key's bits, or are not known to be sound.
 *
 * Without a call, or a branch on what was read, the processor reads many blocks at once: few of them are in a cache.
 */
function testTwoWords(
  words: Uint32Array,
  { states, firstWord }: FilterPages,
  { shares, firstBits, secondBits }: SoughtKeys,
): Uint8Array {
  const blocks = words.length / wordsPerBlock;
  const mayPass = new Uint8Array(shares.length);
  for (let index = 0; index < mayPass.length; index += 1) {
    // Integers: a filter has fewer than 2^31 words.
    const block = (((shares[index] ?? 0) * blocks) | 0) * wordsPerBlock;
    const first = (words[block] ?? 0) >>> (firstBits[index] ?? 0);
    const second = (words[block + 1] ?? 0) >>> (secondBits[index] ?? 0);
    const isSound = states[((firstWord + block) / wordsPerPage) | 0] === pageStates.sound;
    mayPass[index] = isSound ? first & second & 1 : 1;
  }
  return mayPass;
}

/** The leading bits of a key choose its block, so sorted keys visit blocks in order. */
function shareOf(partKey: number): number {
  return partKey / 2 ** partKeyBits;
}

/** The trailing 32 bits of a key choose the bit of each word. */
function bitOf(low: number, word: number): number {
  return 1 << bitNumber(low, word);
}

function bitNumber(low: number, word: number): number {
  return Math.imul(low, factors[word] ?? 0) >>> 27;
}

/** The folder of the filters of an index file. */
export function filterFolderOf(indexPath: string): string {
  return indexPath.replace(/(\.sqlite)?$/, "-filters");
}

/** Words of a filter's file that are in memory while it is written. */
const wordsWritten = 2 ** 16;

/**
 * Begins the file of the filters of a part. Keys in order visit the blocks of a filter in order, so that no more than
 * a piece of it is in memory, however many keys there are.
 *
 * @param rows - Of the part; undefined for a part of an earlier release, whose ids are among its keys.
 * @param keysMax - Distinct other keys; with more of them, more absent ones pass.
 * @param replaced - The name of the file whose place it takes.
 */
export function createFilterFile(
  folder: string,
  part: number,
  sizes: Readonly<{ rows: number | undefined; keysMax: number }>,
  replaced: string | null = null,
): NewFilterFile {
  const idWords = idWordsOf(sizes.rows, bitsPerId);
  const keyWords = filterBytes(sizes.keysMax, bitsPerKey) / 4;
  const sums = new Uint32Array(sumsOf((idWords + keyWords) * 4));
  mkdirSync(folder, { recursive: true });
  const temporary = join(folder, `${part}.part`);
  const file = openSync(temporary, "w");
  let isOpen = true;
  const words = new Uint32Array(Math.min(wordsWritten, idWords + keyWords));
  /** Of the words in memory. */
  let start = 0;
  const flush = (): void => {
    const bytes = new Uint8Array(words.buffer, 0, Math.min(words.length, idWords + keyWords - start) * 4);
    for (let at = 0; at < bytes.length; at += pageBytes)
      sums[(start * 4 + at) / pageBytes] = Bun.hash.xxHash32(pageAt(bytes, at));
    writeFileSync(file, bytes);
    words.fill(0);
    start += words.length;
  };
  const add = (block: number, partKey: number): void => {
    assert(block >= start, "keys are added in order");
    while (block >= start + words.length) flush();
    setBits(words, block - start, partKey);
  };
  const close = (): void => {
    if (isOpen) closeSync(file);
    isOpen = false;
  };
  return {
    addId: (partKey) => add(firstWordOf(partKey, idWords), partKey),
    addKey: (partKey) => add(idWords + firstWordOf(partKey, keyWords), partKey),
    end: () => {
      while (start < idWords + keyWords) flush();
      const sumBytes = new Uint8Array(sums.buffer);
      writeFileSync(file, sumBytes);
      fsyncSync(file);
      const name = nameOf(part, checksumOf(sumBytes), replaced);
      renameSync(temporary, join(folder, name));
      close();
      return name;
    },
    close: () => {
      if (isOpen) rmSync(temporary, { force: true });
      close();
    },
  };
}

/**
 * The part's number, the bits of an id, and a checksum of checksums. A file that takes the place of a damaged one may
 * have its checksum: a number between them makes another name of it, so that threads open it.
 */
function nameOf(part: number, checksum: string, replaced: string | null): string {
  const head = `${part}-${bitsPerId}`;
  if (replaced === null) return `${head}-${checksum}`;
  const number = Number(/^\d+-\d{2}-(\d+)-/.exec(replaced)?.[1] ?? 0);
  return `${head}-${number + 1}-${checksum}`;
}

/** Words of the filter of ids. @param rows - Undefined: it is absent. */
function idWordsOf(rows: number | undefined, bits: number): number {
  return rows === undefined ? 0 : filterBytes(rows, bits) / 4;
}

/** The bits of an id in the filters of a file. */
function bitsOfName(name: string): number {
  return Number(/^\d+-(\d{2})-/.exec(name)?.[1] ?? oldBitsPerId);
}

/**
 * Opens the filters of a part; undefined when their file is missing, or damaged in its length or checksums.
 *
 * @param rows - Of the part, when it has a filter of ids.
 */
export function openFilterFile(folder: string, name: string, rows: number | undefined): PartFilters | undefined {
  const file = openFile(folder, name);
  if (file === undefined) return undefined;
  const idWords = idWordsOf(rows, bitsOfName(name));
  const keyWords = file.length - idWords;
  const words = keyWords <= 0 ? undefined : mapWords(file.path);
  if (words === undefined || words.length < file.length) return undefined;
  const states = new Uint8Array(file.sums.length);
  let array: Uint32Array | undefined;
  const filterAt = (firstWord: number, length: number): KeyFilter =>
    filterOf(
      {
        length,
        at: (index) => words.at(firstWord + index),
        all: () => {
          array ??= mapArray(file);
          return array?.subarray(firstWord, firstWord + length);
        },
      },
      checkedPages(file, states, firstWord),
    );
  return { ids: rows === undefined ? undefined : filterAt(0, idWords), keys: filterAt(idWords, keyWords) };
}

/** Whether a filter's file is there, and no page of it is damaged. Reads all of it. */
export function isFilterFileSound(folder: string, name: string): boolean {
  const file = openFile(folder, name);
  return file?.sums.every((_sum, page) => isPageSound(file, page)) ?? false;
}

/** Bytes of a page with a checksum of its own. */
const pageBytes = 4_096;
const sumBytes = 4;
const wordsPerPage = pageBytes / 4;

/** `length`: words of all its filters. */
type FilterFile = Readonly<{ path: string; length: number; sums: Uint32Array }>;

function openFile(folder: string, name: string): FilterFile | undefined {
  const path = join(folder, name);
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const pages = Math.ceil(size / (pageBytes + sumBytes));
  const bytes = size - pages * sumBytes;
  if (bytes <= 0 || bytes % blockBytes !== 0 || sumsOf(bytes) !== pages) return undefined;
  const sums = readBytes(path, bytes, new Uint8Array(pages * sumBytes));
  if (sums === undefined || !name.endsWith(`-${checksumOf(sums)}`)) return undefined;
  return { path, length: bytes / 4, sums: new Uint32Array(sums.buffer) };
}

/** The words of a file as a typed array; undefined when it was shortened or removed: its part was merged meanwhile. */
function mapArray({ path, length, sums }: FilterFile): Uint32Array | undefined {
  const bytes = (length + sums.length) * 4;
  if (statSync(path, { throwIfNoEntry: false })?.size !== bytes) return undefined;
  try {
    const mapped = process.platform === "linux" ? Bun.mmap(path) : readFileSync(path);
    return mapped.length === bytes ? new Uint32Array(mapped.buffer, mapped.byteOffset, bytes / 4) : undefined;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** The pages of a filter of a file, which may begin within a page. */
type FilterPages = Readonly<{
  states: Uint8Array;
  /** The position in the file of the filter's first word. */
  firstWord: number;
  /** Whether the page of a word is sound; it is read at the first call. */
  isSound: (word: number) => boolean;
}>;

const pageStates = { unread: 0, sound: 1, damaged: 2 } as const;

/** @param states - Of all pages of the file. */
function checkedPages(file: FilterFile, states: Uint8Array, firstWord: number): FilterPages {
  return {
    states,
    firstWord,
    isSound: (word) => {
      const page = Math.floor((firstWord + word) / wordsPerPage);
      if (states[page] === pageStates.unread)
        states[page] = isPageSound(file, page) ? pageStates.sound : pageStates.damaged;
      return states[page] === pageStates.sound;
    },
  };
}

const pageRead = new Uint8Array(pageBytes);

/**
 * Whether a page has its checksum. A few keys have it read before it is read through a mapping: for a page that the
 * system does not have, a mapping reads up to megabytes around it, and the first look-up after a start would read all
 * filters.
 */
function isPageSound({ path, length, sums }: FilterFile, page: number): boolean {
  const start = page * pageBytes;
  const bytes = readBytes(path, start, pageRead.subarray(0, Math.min(pageBytes, length * 4 - start)));
  return bytes !== undefined && Bun.hash.xxHash32(bytes) === sums[page];
}

/** Fills a buffer with bytes of a file; undefined when it has fewer, or was removed: its part was merged meanwhile. */
function readBytes(path: string, start: number, into: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> | undefined {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
  try {
    return readSync(file, into, 0, into.length, start) === into.length ? into : undefined;
  } finally {
    closeSync(file);
  }
}

/** The pages of a filter in memory. */
function soundPages(words: number): FilterPages {
  const states = new Uint8Array(Math.ceil(words / wordsPerPage)).fill(pageStates.sound);
  return { states, firstWord: 0, isSound: () => true };
}

function sumsOf(size: number): number {
  return Math.ceil(size / pageBytes);
}

/** The bytes of a page, which the end of all bytes may cut off. */
function pageAt(bytes: Uint8Array, start: number): Uint8Array {
  return bytes.subarray(start, start + pageBytes);
}

/** Threads that have mapped the file may still use it. */
export function removeFilterFile(folder: string, name: string): void {
  rmSync(join(folder, name), { force: true });
}

/** Removes the files of a folder that are not among the names. */
export function removeOtherFilters(folder: string, names: ReadonlySet<string>): void {
  let files: readonly string[];
  try {
    files = readdirSync(folder);
  } catch (error) {
    if (isMissing(error)) return;
    throw error;
  }
  for (const file of files) if (!names.has(file)) removeFilterFile(folder, file);
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

function checksumOf(bytes: Uint8Array): string {
  return Bun.hash.xxHash64(bytes).toString(16).padStart(16, "0");
}
