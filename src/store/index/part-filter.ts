/**
 * Filters of parts: whether a part may have a key. A look-up touches only the parts whose filter has its key.
 *
 * A filter is a split-block Bloom filter: a key sets one bit in each of the eight words of one block of 32 bytes, so a
 * test reads one cache line. With ten bits a key, about 1.2 % of absent keys pass (measured, part-filter.test.ts).
 * Filters of large parts are files that all threads map into memory. A filter only saves work: without one, or where it
 * is damaged, the part is searched.
 *
 * A file ends with a checksum of each 4 KiB, which is checked before their first use: a filter that is opened is not
 * read, and the first look-up after a start reads a few pages instead of all filters.
 * Source: docs/reference/index-layout.md#filters-of-parts.
 * @module
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { assert } from "../../lib/assert.ts";
import { partKeyBits } from "./part-image.ts";

/** Whether a part may have a key; false: it does not have it. */
export type PartFilter = Readonly<{ has: (partKey: number) => boolean }>;

/** A filter that is being made. */
export type NewFilter = PartFilter & Readonly<{ add: (partKey: number) => void; bytes: Uint8Array<ArrayBuffer> }>;

const bitsPerKey = 10;
const wordsPerBlock = 8;
const blockBytes = wordsPerBlock * 4;
/** Odd factors, one for each word of a block. Numbers are part of the format. */
const factors = Int32Array.of(
  ...[0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31],
);

/** Bytes of the filter of a number of keys. */
function filterBytes(keys: number): number {
  return Math.max(1, Math.ceil((keys * bitsPerKey) / (blockBytes * 8))) * blockBytes;
}

/** @param keysMax - Distinct keys; more keys only let more absent ones pass. */
export function createFilter(keysMax: number): NewFilter {
  const words = new Uint32Array(filterBytes(keysMax) / 4);
  return {
    ...filterOf(words),
    add: (partKey) => {
      const block = blockOf(partKey, words.length / wordsPerBlock);
      const low = partKey | 0;
      for (let word = 0; word < wordsPerBlock; word += 1)
        words[block + word] = (words[block + word] ?? 0) | bitOf(low, word);
    },
    bytes: new Uint8Array(words.buffer),
  };
}

/** @param isSound - Whether the page of a word may be used; where it may not, every key passes. */
function filterOf(words: Uint32Array, isSound: (word: number) => boolean = () => true): PartFilter {
  const blocks = words.length / wordsPerBlock;
  return {
    has: (partKey) => {
      const block = blockOf(partKey, blocks);
      if (!isSound(block)) return true;
      const low = partKey | 0;
      for (let word = 0; word < wordsPerBlock; word += 1)
        if (((words[block + word] ?? 0) & bitOf(low, word)) === 0) return false;
      return true;
    },
  };
}

/** The first word of a key's block. The leading bits choose the block, so sorted keys visit blocks in order. */
function blockOf(partKey: number, blocks: number): number {
  return Math.floor((partKey / 2 ** partKeyBits) * blocks) * wordsPerBlock;
}

/** The trailing 32 bits of a key choose the bit of each word. */
function bitOf(low: number, word: number): number {
  return 1 << (Math.imul(low, factors[word] ?? 0) >>> 27);
}

/** The folder of the filters of an index file. */
export function filterFolderOf(indexPath: string): string {
  return indexPath.replace(/(\.sqlite)?$/, "-filters");
}

/**
 * Writes a filter's file; it is on disk when the call returns.
 *
 * @returns Its name: the part's number, and a checksum of the checksums.
 */
export function writeFilterFile(folder: string, part: number, { bytes }: NewFilter): string {
  mkdirSync(folder, { recursive: true });
  const sums = Uint32Array.from({ length: sumsOf(bytes.length) }, (_, page) => sumOf(bytes, page));
  const name = `${part}-${checksumOf(new Uint8Array(sums.buffer))}`;
  const temporary = join(folder, `${name}.part`);
  writeFileSync(temporary, Buffer.concat([bytes, new Uint8Array(sums.buffer)]), { flush: true });
  renameSync(temporary, join(folder, name));
  return name;
}

/** Opens a filter's file; undefined when it is missing, or damaged in its length or checksums. */
export function openFilterFile(folder: string, name: string): PartFilter | undefined {
  const file = openFile(folder, name);
  return file && filterOf(file.words, createPageCheck(file));
}

/** Whether a filter's file is there, and no page of it is damaged. Reads all of it. */
export function isFilterFileSound(folder: string, name: string): boolean {
  const file = openFile(folder, name);
  return file?.sums.every((sum, page) => sumOf(file.bytes, page) === sum) ?? false;
}

/** Bytes of a page with a checksum of its own. */
const pageBytes = 4_096;
const sumBytes = 4;
const wordsPerPage = pageBytes / 4;

type FilterFile = Readonly<{ bytes: Uint8Array; words: Uint32Array; sums: Uint32Array }>;

function openFile(folder: string, name: string): FilterFile | undefined {
  const file = mapped(join(folder, name));
  if (file === undefined) return undefined;
  const { buffer, byteOffset, length } = file;
  const pages = Math.ceil(length / (pageBytes + sumBytes));
  const size = length - pages * sumBytes;
  if (size <= 0 || size % blockBytes !== 0 || sumsOf(size) !== pages) return undefined;
  if (!name.endsWith(`-${checksumOf(file.subarray(size))}`)) return undefined;
  assert(byteOffset % 4 === 0, "a mapped file begins at a page");
  return {
    bytes: file.subarray(0, size),
    words: new Uint32Array(buffer, byteOffset, size / 4),
    sums: new Uint32Array(buffer, byteOffset + size, pages),
  };
}

/** Returns a function that tells whether the page of a word is sound. Each page is read once. */
function createPageCheck({ bytes, sums }: FilterFile): (word: number) => boolean {
  const unread = 0;
  const sound = 1;
  const damaged = 2;
  const states = new Uint8Array(sums.length);
  return (word) => {
    const page = Math.floor(word / wordsPerPage);
    if (states[page] === unread) states[page] = sumOf(bytes, page) === sums[page] ? sound : damaged;
    return states[page] === sound;
  };
}

function sumsOf(size: number): number {
  return Math.ceil(size / pageBytes);
}

function sumOf(bytes: Uint8Array, page: number): number {
  return Bun.hash.xxHash32(bytes.subarray(page * pageBytes, (page + 1) * pageBytes));
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

function mapped(path: string): Uint8Array | undefined {
  try {
    // The system cannot map an empty file.
    if (statSync(path).size === 0) return undefined;
    return process.platform === "linux" ? Bun.mmap(path) : readFileSync(path);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

function checksumOf(bytes: Uint8Array): string {
  return Bun.hash.xxHash64(bytes).toString(16).padStart(16, "0");
}
