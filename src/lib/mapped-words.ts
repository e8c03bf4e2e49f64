/**
 * The 32-bit words of a file in memory outside of the runtime's heaps.
 *
 * The runtime counts a file that `Bun.mmap` maps as part of the heap of its thread, and leaves as much more garbage
 * before it collects. Words that are read through an address are not counted. A read takes 5 ns, and 50 where the
 * processor has to wait for memory; many reads through a typed array wait together.
 * Source: docs/decisions/115-filters-by-address.md; Linux mmap(2).
 * @module
 */
import { FFIType, read, toArrayBuffer } from "bun:ffi";
import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";
import { assert } from "./assert.ts";
import { openCLibrary } from "./c-library.ts";

/** Words in the order of bytes of the machine. */
export type MappedWords = Readonly<{
  length: number;
  /** The word at an index; 0 outside of the file. */
  at: (index: number) => number;
}>;

const wordBytes = 4;

/** Of mmap: pages can be read, and are those of the file. */
const protectionRead = 1;
const mapShared = 1;

/** Result of mmap when it fails. */
const mapFailed = 2n ** 64n - 1n;

/**
 * Maps a file until what is returned is collected as garbage, or its thread ends. Where the system cannot, it is read.
 *
 * @returns Undefined when there is no such file, or it is empty.
 * @throws Error from the system for any other reason.
 */
export function mapWords(path: string): MappedWords | undefined {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
  try {
    const bytes = fstatSync(file).size;
    if (bytes === 0) return undefined;
    return mapped(file, bytes) ?? wordsOf(readFileSync(file));
  } finally {
    closeSync(file);
  }
}

function mapped(file: number, bytes: number): MappedWords | undefined {
  system ??= openSystem();
  const munmap = system === undefined ? undefined : addressOf(system.munmap);
  if (system === undefined || munmap === undefined) return undefined;
  const address = system.mmap(null, bytes, protectionRead, mapShared, file, 0);
  if (address === mapFailed) return undefined;
  assert(address < Number.MAX_SAFE_INTEGER, "a process gets addresses of 47 bits unless it asks for more");
  // A caller may have nothing but the function, which must not outlive the mapping.
  const memory = {
    address: Number(address),
    length: Math.floor(bytes / wordBytes),
    owner: ownerOf(address, bytes, munmap),
  };
  return {
    length: memory.length,
    at: (index) => (index >= 0 && index < memory.length ? read.u32(memory.address + index * wordBytes, 0) : 0),
  };
}

/**
 * A buffer of the first byte of a mapping, which alone is counted. When the runtime drops it, also because its thread
 * ends, it calls `deallocator` with the address and the context: munmap, with all bytes.
 * Source: the documentation of bun:ffi, `toArrayBuffer` with a deallocator, whose types lack the last two parameters.
 */
const ownerOf = (address: bigint, bytes: number, munmap: number): ArrayBuffer =>
  withDeallocator(address, 0, 1, bytes, munmap);

const withDeallocator: (
  address: bigint,
  offset: number,
  length: number,
  context: number,
  deallocator: number,
) => ArrayBuffer = toArrayBuffer;

/** The address of a function of the library; its type lacks it. */
function addressOf(symbol: object): number | undefined {
  return "ptr" in symbol && typeof symbol.ptr === "number" ? symbol.ptr : undefined;
}

let system: ReturnType<typeof openSystem>;

function openSystem() {
  return openCLibrary({
    mmap: {
      args: [FFIType.ptr, FFIType.u64, FFIType.i32, FFIType.i32, FFIType.i32, FFIType.i64],
      returns: FFIType.u64,
    },
    munmap: { args: [FFIType.u64, FFIType.u64], returns: FFIType.i32 },
  });
}

/** The words of a file that was read. */
function wordsOf(bytes: Uint8Array): MappedWords {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const length = Math.floor(bytes.length / wordBytes);
  return { length, at: (index) => (index >= 0 && index < length ? view.getUint32(index * wordBytes, true) : 0) };
}
