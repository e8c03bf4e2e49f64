/**
 * Files of multipart uploads: one sparse file an upload, written at any position, which becomes the item's file.
 *
 * Bytes count as stored only after a sync that began after their write has succeeded, provided that no write or sync
 * of the file failed between its first byte and that moment. The system reports a page that it could not write only
 * once, and only to the first caller that syncs.
 * Source: docs/reference/upload.md#files.
 * @module
 */
import { type FileHandle, mkdir, open, readdir, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { syncFolderLater } from "../durable-file.ts";
import { createGroupSync } from "../ledger/group-sync.ts";

/** Name of the folder in the folder of uploads. */
export const partFolder = "parts";

/** An open file of an upload. Calls throw system errors. */
export type PartFile = Readonly<{
  /** Path below the folder of uploads. */
  name: string;
  /** Writes consecutive pieces that begin at `position`. */
  write: (pieces: readonly Uint8Array[], position: number) => Promise<void>;
  /** Syncs all earlier writes; concurrent callers share one sync. */
  sync: () => Promise<void>;
  /** Number of failures. After a change a writer cannot rely on its bytes. */
  faults: () => number;
  /** Reads up to `size` bytes; fewer at the end of the file. */
  read: (position: number, size: number) => Promise<Uint8Array>;
  /** Truncates the file and syncs. */
  truncate: (size: number) => Promise<void>;
  /** Disk space of the file, bytes; less than its size when it has gaps. */
  diskBytes: () => Promise<number>;
  close: () => Promise<void>;
}>;

/** The files, by upload. */
export type PartFiles = Readonly<{
  /** Path of a file below the folder of uploads. */
  nameOf: (upload: string) => string;
  /** Opens the file of an upload; creates it when absent. */
  open: (upload: string) => Promise<PartFile>;
  /** Uploads that have a file. */
  list: () => Promise<string[]>;
  /** Disk space of a file, bytes; 0 when it is missing. */
  diskBytes: (upload: string) => Promise<number>;
  /** Removes a file; has no effect when the file is missing. */
  remove: (upload: string) => Promise<void>;
}>;

/** The unit of `stat().blocks` on every file system. Source: POSIX, sys/stat.h. */
const blockBytes = 512;

/** Opens the folder; creates and syncs it when missing. @param folder - The folder of uploads. */
export async function openPartFiles(folder: string): Promise<PartFiles> {
  const made = await mkdir(join(folder, partFolder), { recursive: true, mode: 0o700 });
  if (made !== undefined) for (const parent of [folder, dirname(folder)]) await syncFolderLater(parent);
  const pathOf = (upload: string) => join(folder, partFolder, upload);
  const nameOf = (upload: string) => `${partFolder}/${upload}`;
  return {
    nameOf,
    open: async (upload) => openFile(nameOf(upload), await openOrMake(pathOf(upload), join(folder, partFolder))),
    list: () => readdir(join(folder, partFolder)),
    diskBytes: async (upload) => {
      const status = await orMissing(stat(pathOf(upload)));
      return (status?.blocks ?? 0) * blockBytes;
    },
    remove: async (upload) => {
      await orMissing(unlink(pathOf(upload)));
    },
  };
}

function openFile(name: string, file: FileHandle): PartFile {
  let faults = 0;
  const counted = async <Result>(work: Promise<Result>): Promise<Result> => {
    try {
      return await work;
    } catch (error) {
      faults += 1;
      throw error;
    }
  };
  const sync = createGroupSync(() => counted(file.datasync()));
  return {
    name,
    write: (pieces, position) => counted(writeAll(file, pieces, position)),
    sync,
    faults: () => faults,
    read: async (position, size) => {
      const bytes = new Uint8Array(size);
      const { bytesRead } = await file.read(bytes, 0, size, position);
      return bytes.subarray(0, bytesRead);
    },
    truncate: async (size) => {
      await counted(file.truncate(size));
      await sync();
    },
    diskBytes: async () => (await file.stat()).blocks * blockBytes,
    close: () => file.close(),
  };
}

async function writeAll(file: FileHandle, pieces: readonly Uint8Array[], position: number): Promise<void> {
  let rest = pieces;
  for (let at = position; rest.length > 0; ) {
    const { bytesWritten } = await file.writev([...rest], at);
    at += bytesWritten;
    rest = withoutFirst(rest, bytesWritten);
  }
}

/** Drops the first `bytes` bytes of pieces. */
function withoutFirst(pieces: readonly Uint8Array[], bytes: number): readonly Uint8Array[] {
  let done = bytes;
  for (const [index, piece] of pieces.entries()) {
    if (done < piece.length) return [piece.subarray(done), ...pieces.slice(index + 1)];
    done -= piece.length;
  }
  return [];
}

/**
 * Opens a file. Its name is synced before any of its bytes are acknowledged, also where the file is known: a process
 * before this one, or an attempt, may have ended before it was.
 */
async function openOrMake(path: string, folder: string): Promise<FileHandle> {
  const made = await open(path, "a+", 0o600);
  await made.close();
  await syncFolderLater(folder);
  return await open(path, "r+");
}

async function orMissing<Result>(work: Promise<Result>): Promise<Result | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
