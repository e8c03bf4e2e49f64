/**
 * Reading items from their files, one behind another: small ones that lie together are read together, also when they
 * come in a slightly other order than they lie.
 * @module
 */
import { closeSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { assert } from "../../lib/assert.ts";

/** Reads files of one folder; whoever opens it closes it. */
export type ItemReader = Readonly<{
  /**
   * Reads bytes of a file.
   *
   * @param size - 1 to `pieceBytesMax`.
   * @returns The bytes, until the next call; fewer where the file ends.
   * Throws what the system says.
   */
  read: (file: string, offset: number, size: number) => Uint8Array;
  /**
   * Reads bytes of a file into bytes of the caller's, as many as these have, and no others: what a chunk wants of a
   * file lies together, or is scattered further than it would pay to look ahead (bench/bundles.ts).
   *
   * @returns How many there were: fewer where the file ends. Throws what the system says.
   */
  fill: (file: string, offset: number, bytes: Uint8Array) => number;
  close: () => void;
}>;

/** Read at once at most: more costs memory and saves nothing (measured from 256 KiB on). */
export const pieceBytesMax = 2 ** 20;

/** Files that are open at once: more than there are threads that take items in, each with a segment. */
const filesMax = 8;

type OpenFile = { readonly handle: number; window: Uint8Array | undefined; start: number; size: number };

/** What is read of a file where little of it is wanted; more than a quarter is read as it is asked. */
const windowBytes = 2 ** 20;
const smallMax = windowBytes / 4;

/** Opens the reader. @param folder - That of uploads, as an absolute path. */
export function openItemReader(folder: string): ItemReader {
  const files = new Map<string, OpenFile>();
  // Made when they are needed: what is read into the caller's bytes needs neither this nor a window.
  let piece: Uint8Array | undefined;

  function fileOf(name: string): OpenFile {
    const known = files.get(name);
    if (known !== undefined) {
      // The one that was used last is closed last.
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

  /** What a window of the file shows of some bytes; few enough to be in it. */
  function seen(name: string, offset: number, size: number): Uint8Array {
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
      assert(size > 0 && size <= pieceBytesMax, "what is read at once is bounded");
      if (size <= smallMax) return seen(name, offset, size);
      piece ??= new Uint8Array(pieceBytesMax);
      return piece.subarray(0, readFully(fileOf(name).handle, piece.subarray(0, size), offset));
    },
    fill: (name, offset, bytes) => readFully(fileOf(name).handle, bytes, offset),
    close: () => {
      for (const [name, file] of files) drop(name, file);
    },
  };
}

/** @returns How many bytes there were. */
function readFully(handle: number, bytes: Uint8Array, offset: number): number {
  let done = 0;
  while (done < bytes.length) {
    const read = readSync(handle, bytes, done, bytes.length - done, offset + done);
    if (read === 0) break;
    done += read;
  }
  return done;
}
