/**
 * Reading items from their files, one behind another: small ones that lie together are read together.
 * @module
 */
import { closeSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { assert } from "../lib/assert.ts";

/** Reads files of one folder; whoever opens it closes it. */
export type ItemReader = Readonly<{
  /**
   * Reads bytes of a file.
   *
   * @param size - 1 to `windowBytes`.
   * @returns The bytes, until the next call; fewer where the file ends.
   * Throws what the system says.
   */
  read: (file: string, offset: number, size: number) => Uint8Array;
  close: () => void;
}>;

/** Read at once: less costs more calls (measured: none of it to be seen from 256 KiB on). */
export const windowBytes = 2 ** 20;

/** Files that are open at once, each with a window in memory: as many as threads that take items in. */
const windowsMax = 8;

type Window = { readonly handle: number; readonly bytes: Uint8Array; start: number; size: number };

/** Opens the reader. @param folder - That of uploads, as an absolute path. */
export function openItemReader(folder: string): ItemReader {
  const windows = new Map<string, Window>();

  function windowOf(file: string): Window {
    const known = windows.get(file);
    if (known !== undefined) {
      // The one that was used last is closed last.
      windows.delete(file);
      windows.set(file, known);
      return known;
    }
    const handle = openSync(join(folder, file), "r");
    const [oldest] = windows.size < windowsMax ? [] : windows;
    if (oldest !== undefined) drop(...oldest);
    const opened = { handle, bytes: oldest?.[1].bytes ?? new Uint8Array(windowBytes), start: 0, size: 0 };
    windows.set(file, opened);
    return opened;
  }

  function drop(file: string, { handle }: Window): void {
    windows.delete(file);
    closeSync(handle);
  }

  return {
    read: (file, offset, size) => {
      assert(size > 0 && size <= windowBytes, "what is read at once has room in a window");
      const window = windowOf(file);
      if (offset < window.start || offset + size > window.start + window.size) fill(window, offset);
      const at = offset - window.start;
      return window.bytes.subarray(at, Math.min(at + size, window.size));
    },
    close: () => {
      for (const [file, window] of windows) drop(file, window);
    },
  };
}

function fill(window: Window, offset: number): void {
  window.start = offset;
  window.size = 0;
  while (window.size < windowBytes) {
    const { handle, bytes, size } = window;
    const read = readSync(handle, bytes, size, windowBytes - size, offset + size);
    if (read === 0) return;
    window.size += read;
  }
}
