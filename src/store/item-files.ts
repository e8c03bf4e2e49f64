/**
 * Files of uploaded data items: small items one behind another in segments, each large one in a file of its own.
 *
 * A file is written by one thread and never changed again. What was answered as synchronised is on the disk, the
 * file's name included. After a write that failed nothing more is written to that file: what it holds beyond the last
 * synchronised byte is nobody's.
 * Source: design.md §9.
 * @module
 */
import {
  closeSync,
  constants,
  fdatasyncSync,
  fsyncSync,
  mkdirSync,
  openSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";

/** Folders below that of uploads. */
export const segmentFolder = "segments";
export const itemFolder = "items";

/** A segment is full after this many bytes, and another one is begun. */
const segmentBytesMax = 256 * 2 ** 20;

/** A file that grows. */
export type GrowingFile = Readonly<{
  /** Below the folder of uploads. */
  name: string;
  /** Appends, and tells where the bytes begin. Throws what the system says. */
  append: (bytes: Uint8Array) => number;
  size: () => number;
  /** Brings all that was appended to the disk. */
  sync: () => void;
  close: () => void;
  /** Closes and removes it. */
  remove: () => void;
}>;

/** Makes the folders that are missing. */
export function makeItemFolders(folder: string): void {
  for (const name of [segmentFolder, itemFolder])
    mkdirSync(join(folder, name), { recursive: true, mode: 0o700 });
}

/** Makes a new file in one of the two folders. @param name - Never used before. */
export function openGrowingFile(folder: string, kind: string, name: string): GrowingFile {
  const path = join(folder, kind, name);
  const file = openSync(path, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, 0o600);
  let size = 0;
  let isNamed = false;
  return {
    name: `${kind}/${name}`,
    size: () => size,
    append: (bytes) => {
      const start = size;
      writeAll(file, bytes, start);
      size += bytes.length;
      return start;
    },
    sync: () => {
      fdatasyncSync(file);
      if (isNamed) return;
      syncFolder(join(folder, kind));
      isNamed = true;
    },
    close: () => closeSync(file),
    remove: () => {
      closeSync(file);
      unlinkSync(path);
    },
  };
}

/** Appends items to segments. */
export type Segments = Readonly<{
  /**
   * Appends items, and answers where each begins when all of them are on the disk.
   * Throws what the system says; then none of them is anybody's.
   */
  append: (items: readonly Uint8Array[]) => Readonly<{ file: string; offsets: readonly number[] }>;
  close: () => void;
}>;

/** Opens segments of one thread. @param makeName - Answers names that nobody else has. */
export function openSegments(folder: string, makeName: () => string): Segments {
  let current: GrowingFile | undefined;
  const leave = () => {
    current?.close();
    current = undefined;
  };
  return {
    append: (items) => {
      current ??= openGrowingFile(folder, segmentFolder, makeName());
      const segment = current;
      try {
        const offsets = appendTogether(segment, items);
        segment.sync();
        if (segment.size() >= segmentBytesMax) leave();
        return { file: segment.name, offsets };
      } catch (error) {
        leave();
        throw error;
      }
    },
    close: leave,
  };
}

/** One write, however many items. */
function appendTogether(segment: GrowingFile, items: readonly Uint8Array[]): number[] {
  const joined = items.length === 1 ? items[0] : Buffer.concat(items);
  let at = segment.append(joined ?? new Uint8Array(0));
  return items.map((item) => {
    const start = at;
    at += item.length;
    return start;
  });
}

function writeAll(file: number, bytes: Uint8Array, position: number): void {
  let done = 0;
  while (done < bytes.length) done += writeSync(file, bytes, done, bytes.length - done, position + done);
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
