/**
 * Reads items from their files in order. Small items that are close together in a file are read together, even when
 * their order differs slightly from the file's.
 * @module
 */
import { closeSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { assert } from "../../lib/assert.ts";

/** Reads files of one folder. The caller closes it. */
export type ItemReader = Readonly<{
  /**
   * Reads bytes of a file.
   *
   * @param size - 1 to `pieceBytesMax`.
   * @returns The bytes, valid until the next call; fewer at the end of the file.
   * Throws system errors.
   */
  read: (file: string, offset: number, size: number) => Uint8Array;
  /**
   * Reads bytes of a file into the caller's buffer without reading ahead. The bytes of a chunk are contiguous in a
   * file, or too scattered for reading ahead to pay (bench/uploads/bundles.ts).
   *
   * @returns How many bytes were read; fewer at the end of the file. Throws system errors.
   */
  fill: (file: string, offset: number, bytes: Uint8Array) => number;
  close: () => void;
}>;

/** Maximum of one read: more costs memory and saves nothing (measured from 256 KiB on). */
export const pieceBytesMax = 2 ** 20;

/** Limit of open files: more than there are intake threads, each with one segment. */
const filesMax = 8;

type OpenFile = { readonly handle: number; window: Uint8Array | undefined; start: number; size: number };

/** Size of the window for small reads; reads above a quarter of it bypass the window. */
const windowBytes = 2 ** 20;
const smallMax = windowBytes / 4;

/** Opens the reader. @param folder - Absolute path of the folder of uploads. */
export function openItemReader(folder: string): ItemReader {
  const files = new Map<string, OpenFile>();
  // Allocated on demand: `fill` needs neither this buffer nor a window.
  let piece: Uint8Array | undefined;

  function fileOf(name: string): OpenFile {
    const known = files.get(name);
    if (known !== undefined) {
      // Moved to the end: the least recently used file is closed first.
      files.delete(name);
      files.set(name, known);
      return known;
    }
    const handle = openSync(join(folder, name), "r");
    const [oldest] = files.size < filesMax ? [] : files;
    if (oldest !== undefined) drop(...oldest);
    const opened = { handle, window: oldest?.[1].window, start: 0, size: 0 };
    files.set(name, opened);
    return opened;
  }

  function drop(name: string, { handle }: OpenFile): void {
    files.delete(name);
    closeSync(handle);
  }

  /** Reads at most `smallMax` bytes through the file's window. */
  function readWindow(name: string, offset: number, size: number): Uint8Array {
    const file = fileOf(name);
    file.window ??= new Uint8Array(windowBytes);
    if (offset < file.start || offset + size > file.start + file.size) {
      file.start = offset - (offset % smallMax);
      file.size = readFully(file.handle, file.window, file.start);
    }
    const at = Math.min(offset - file.start, file.size);
    return file.window.subarray(at, Math.min(at + size, file.size));
  }

  return {
    read: (name, offset, size) => {
      assert(size > 0 && size <= pieceBytesMax, "a read is 1 byte to 1 MiB");
      if (size <= smallMax) return readWindow(name, offset, size);
      piece ??= new Uint8Array(pieceBytesMax);
      return piece.subarray(0, readFully(fileOf(name).handle, piece.subarray(0, size), offset));
    },
    fill: (name, offset, bytes) => readFully(fileOf(name).handle, bytes, offset),
    close: () => {
      for (const [name, file] of files) drop(name, file);
    },
  };
}

/** @returns How many bytes were read. */
function readFully(handle: number, bytes: Uint8Array, offset: number): number {
  let done = 0;
  while (done < bytes.length) {
    const read = readSync(handle, bytes, done, bytes.length - done, offset + done);
    if (read === 0) break;
    done += read;
  }
  return done;
}
