/**
 * Files of uploaded data items: small items one behind another in segments, each large one in a file of its own.
 *
 * A file is written by one thread and never changed again. What was answered as synchronised is on the disk, the
 * names of the file and of its folders included. After a write that failed nothing more is written to that file: what
 * it holds beyond the last synchronised byte is nobody's, and is cut off.
 * Source: docs/reference/upload.md#files.
 * @module
 */
import {
  closeSync,
  constants,
  fdatasyncSync,
  fsyncSync,
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
import { replaceFile } from "../durable-file.ts";

/** Folders below that of uploads. */
export const segmentFolder = "segments";
export const itemFolder = "items";

/** A segment is full after this many bytes, and another one is begun. */
const segmentBytesMax = 256 * 2 ** 20;

/** What a file of its own has taken is sent to the disk every so often, so that its end need not wait for all of it. */
const flushBytes = 32 * 2 ** 20;

const newFile = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY;

/**
 * Makes the folders that are missing, and brings their names to the disk, also of those that are there: who made them
 * may not have come to that. @param folder - That of uploads.
 */
export function makeItemFolders(folder: string): void {
  for (const name of [segmentFolder, itemFolder]) mkdirSync(join(folder, name), { recursive: true, mode: 0o700 });
  syncFolder(folder);
  syncFolder(dirname(folder));
}

/** Appends items to segments. */
export type Segments = Readonly<{
  /**
   * Appends items, and answers where each begins when all of them are on the disk.
   * Throws what the system says; then none of them is anybody's.
   */
  append: (items: readonly Uint8Array[]) => Readonly<{ file: string; offsets: readonly number[] }>;
}>;

/** Opens segments of one thread, which keeps no file open: threads come and go. @param makeName - Answers new names. */
export function openSegments(folder: string, makeName: () => string): Segments {
  let name = "";
  let size = 0;

  function append(items: readonly Uint8Array[]): ReturnType<Segments["append"]> {
    if (size === 0) name = join(segmentFolder, makeName());
    const start = size;
    // Nobody's until all of it is on the disk, and nothing is written behind what failed.
    size = 0;
    try {
      // One write, however many items.
      appendSynced(folder, name, items.length === 1 ? (items[0] ?? nothing) : concatBytes(items), start);
    } catch (error) {
      // It was removed, because nothing in it was needed any more: another one is begun.
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

/** Throws what the system says; ENOENT where there is no such file to append to. */
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

/** Gives back the room of what was not taken: a disk that is full must not fill further with it. */
function cutOff(path: string, file: number, start: number): void {
  try {
    if (start === 0) unlinkSync(path);
    else ftruncateSync(file, start);
  } catch {
    // The failure that led here is told; bytes behind the last item are nobody's, and a file of them goes at a start.
  }
}

/** A file of one item's own. Calls reject with what the system says, and one at a time. */
export type ItemFile = Readonly<{
  /** Below the folder of uploads. */
  name: string;
  /** Bytes appended. */
  size: () => number;
  /** @param pieces - Not to be changed until it resolves. */
  append: (pieces: readonly Uint8Array[]) => Promise<void>;
  /** Brings all of it to the disk. */
  sync: () => Promise<void>;
  close: () => Promise<void>;
}>;

/** Makes the file of an item. @param name - Never used before. */
export async function openItemFile(folder: string, name: string): Promise<ItemFile> {
  const path = join(itemFolder, name);
  const file = await open(join(folder, path), newFile, 0o600);
  let size = 0;
  let flushedSize = 0;
  let flushing = Promise.resolve();

  /** No second one begins before the first has ended: a slow disk holds the sender back. */
  async function flush(): Promise<void> {
    await flushing;
    flushedSize = size;
    flushing = file.datasync();
    ignoreRejection(flushing); // heard by the next one, or at the end
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
      // A failure was told before, or is of no interest to who lets the item go.
      await flushing.then(undefined, () => undefined);
      await file.close();
    },
  };
}

/**
 * Removes a file that is nobody's; one that is not there is removed already. @param name - Below the folder of
 * uploads.
 */
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

function syncFolder(folder: string): void {
  const handle = openSync(folder, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

async function syncFolderLater(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

const fileName = "name";
const namePattern = /^[0-9a-f-]{36}$/;

/**
 * Answers the folder's name; makes both where they are missing.
 *
 * @param makeName - Answers a UUID that nobody else has.
 * @throws Error when the file holds no name; what the system says.
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
    if (!namePattern.test(name)) throw new Error(`${path} holds no name of a folder of uploads`);
    return name;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
