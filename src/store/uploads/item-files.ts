/**
 * Files of uploaded data items: small items are appended to segments, each large item has a separate file.
 *
 * A file is written by one thread and never changed again. An append returns only after the bytes and the names of
 * the file and its folders are synced. After a failed write no more is written to that file, and the bytes after the
 * last synced byte are truncated.
 * Source: docs/reference/upload.md#files.
 * @module
 */
import {
  closeSync,
  constants,
  fdatasyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { type FileHandle, open, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { concatBytes } from "../../lib/bytes.ts";
import { ignoreRejection } from "../../lib/stop.ts";
import { replaceFile, syncFolder, syncFolderLater } from "../durable-file.ts";

/** Names of folders in the folder of uploads. */
export const segmentFolder = "segments";
export const itemFolder = "items";

/** A segment is full after this many bytes, and the next append begins a new one. */
const segmentBytesMax = 256 * 2 ** 20;

/** Bytes of a large item between two flushes, so that the final sync has little left to write. */
const flushBytes = 32 * 2 ** 20;

const newFile = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY;

/**
 * Creates missing folders. Syncs the names of existing folders too, because a crash may have come before their sync.
 *
 * @param folder - The folder of uploads.
 */
export function makeItemFolders(folder: string): void {
  for (const name of [segmentFolder, itemFolder]) mkdirSync(join(folder, name), { recursive: true, mode: 0o700 });
  syncFolder(folder);
  syncFolder(dirname(folder));
}

/** Appends items to segments. */
export type Segments = Readonly<{
  /**
   * Appends items and syncs them. @returns The file, and the offset of each item in it.
   * Throws system errors; then none of the items is stored.
   */
  append: (items: readonly Uint8Array[]) => Readonly<{ file: string; offsets: readonly number[] }>;
}>;

/** Opens the segments of one thread. No file stays open between calls. @param makeName - Returns a unique name. */
export function openSegments(folder: string, makeName: () => string): Segments {
  let name = "";
  let size = 0;

  function append(items: readonly Uint8Array[]): ReturnType<Segments["append"]> {
    if (size === 0) name = join(segmentFolder, makeName());
    const start = size;
    // Reset until the append succeeds: nothing is appended after a failed write.
    size = 0;
    try {
      // One write for all items.
      appendSynced(folder, name, items.length === 1 ? (items[0] ?? nothing) : concatBytes(items), start);
    } catch (error) {
      // The segment was removed because all its items were permanent: a new segment is begun.
      if (start > 0 && isMissing(error)) return append(items);
      throw error;
    }
    let end = start;
    const offsets = items.map((item) => {
      end += item.length;
      return end - item.length;
    });
    if (end < segmentBytesMax) size = end;
    return { file: name, offsets };
  }

  return { append };
}

const nothing = new Uint8Array(0);

/** Throws system errors; ENOENT when the segment to append to is missing. */
function appendSynced(folder: string, name: string, bytes: Uint8Array, start: number): void {
  const path = join(folder, name);
  const file = openSync(path, start === 0 ? newFile : constants.O_WRONLY, 0o600);
  try {
    writeAll(file, bytes, start);
    fdatasyncSync(file);
    if (start === 0) syncFolder(dirname(path));
  } catch (error) {
    cutOff(path, file, start);
    throw error;
  } finally {
    closeSync(file);
  }
}

/** Frees the space of a failed write, so that it does not fill the disk further. */
function cutOff(path: string, file: number, start: number): void {
  try {
    if (start === 0) unlinkSync(path);
    else ftruncateSync(file, start);
  } catch {
    // The first error is reported. Bytes after the last item are unused, and an unused file is removed at start.
  }
}

/** A file with one item. Calls reject with system errors and must not overlap. */
export type ItemFile = Readonly<{
  /** Path below the folder of uploads. */
  name: string;
  /** Bytes appended. */
  size: () => number;
  /** @param pieces - Must not change until the call resolves. */
  append: (pieces: readonly Uint8Array[]) => Promise<void>;
  /** Syncs all bytes and the file's name. */
  sync: () => Promise<void>;
  close: () => Promise<void>;
}>;

/** Creates the file of an item. @param name - A unique name. */
export async function openItemFile(folder: string, name: string): Promise<ItemFile> {
  const path = join(itemFolder, name);
  const file = await open(join(folder, path), newFile, 0o600);
  let size = 0;
  let flushedSize = 0;
  let flushing = Promise.resolve();

  /** Waits for the previous flush, so that a slow disk slows the sender down. */
  async function flush(): Promise<void> {
    await flushing;
    flushedSize = size;
    flushing = file.datasync();
    ignoreRejection(flushing); // reported by the next flush or the final sync
  }

  return {
    name: path,
    size: () => size,
    append: async (pieces) => {
      for (const piece of pieces) {
        await writeAllLater(file, piece, size);
        size += piece.length;
      }
      if (size - flushedSize >= flushBytes) await flush();
    },
    sync: async () => {
      await flushing;
      await file.datasync();
      await syncFolderLater(join(folder, itemFolder));
    },
    close: async () => {
      // A failed flush was reported before, or the item is being discarded.
      await flushing.then(undefined, () => undefined);
      await file.close();
    },
  };
}

/** Removes a file; has no effect when the file is missing. @param name - Path below the folder of uploads. */
export async function removeItemFile(folder: string, name: string): Promise<void> {
  try {
    await unlink(join(folder, name));
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

function writeAll(file: number, bytes: Uint8Array, position: number): void {
  let done = 0;
  while (done < bytes.length) done += writeSync(file, bytes, done, bytes.length - done, position + done);
}

async function writeAllLater(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  let done = 0;
  while (done < bytes.length) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}

const fileName = "name";
const namePattern = /^[0-9a-f-]{36}$/;

/**
 * Returns the stored name of the folder of uploads; creates folder and name when missing.
 *
 * @param makeName - Returns a unique UUID.
 * @throws Error when the file has no valid name; system errors.
 */
export function storedStoreName(folder: string, makeName: () => string): string {
  const path = join(folder, fileName);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const stored = readName(path);
  if (stored !== undefined) return stored;
  const name = makeName();
  replaceFile(path, name);
  return name;
}

function readName(path: string): string | undefined {
  try {
    const name = readFileSync(path, "utf8");
    if (!namePattern.test(name)) throw new Error(`${path} does not contain a valid name of a folder of uploads`);
    return name;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
