/**
 * Filters of parts: whether a part may have a key. A look-up touches only the parts whose filter has its key.
 *
 * A filter is a split-block Bloom filter: a key sets one bit in each of the eight words of one block of 32 bytes, so a
 * test reads one cache line. With ten bits a key, about 1.2 % of absent keys pass (measured, part-filter.test.ts).
 * Filters of large parts are files that all threads map into memory. A filter only saves work: without one, or with a
 * damaged one, the part is searched.
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

function filterOf(words: Uint32Array): PartFilter {
  const blocks = words.length / wordsPerBlock;
  return {
    has: (partKey) => {
      const block = blockOf(partKey, blocks);
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
 * @returns Its name: the part's number, and a checksum of the content.
 */
export function writeFilterFile(folder: string, part: number, filter: NewFilter): string {
  mkdirSync(folder, { recursive: true });
  const name = `${part}-${checksumOf(filter.bytes)}`;
  const temporary = join(folder, `${name}.part`);
  writeFileSync(temporary, filter.bytes, { flush: true });
  renameSync(temporary, join(folder, name));
  return name;
}

/** Opens a filter's file; undefined when it is missing or damaged. */
export function openFilterFile(folder: string, name: string): PartFilter | undefined {
  const bytes = mapped(join(folder, name));
  if (bytes === undefined || bytes.length % blockBytes !== 0) return undefined;
  if (!name.endsWith(`-${checksumOf(bytes)}`)) return undefined;
  assert(bytes.byteOffset % 4 === 0, "a mapped file begins at a page");
  return filterOf(new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4));
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
