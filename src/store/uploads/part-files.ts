/**
 * Files of items that come in parts: one sparse file an upload, written at any place, and later the item's own file.
 *
 * Bytes count as kept only when a synchronisation that began after they were written has succeeded, and nothing that
 * was written to the file between its first byte and that moment has failed: the system tells of a page that it could
 * not write once, and to whoever asks first.
 * Source: docs/reference/upload.md#files.
 * @module
 */
import { type FileHandle, mkdir, open, readdir, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createGroupSync } from "../ledger/group-sync.ts";

/** The folder below that of uploads. */
export const partFolder = "parts";

/** A file that is written in parts, open. Calls throw what the system says. */
export type PartFile = Readonly<{
  /** Below the folder of uploads. */
  name: string;
  /** Writes pieces one behind another from a byte on. */
  write: (pieces: readonly Uint8Array[], position: number) => Promise<void>;
  /** Resolves when all that was written before is on the disk; writers that ask at once share one synchronisation. */
  sync: () => Promise<void>;
  /** Counts what has failed. A writer who sees it change cannot rely on its bytes. */
  faults: () => number;
  /** Reads up to so many bytes; fewer at the end of the file. */
  read: (position: number, size: number) => Promise<Uint8Array>;
  /** Cuts the file to a size, on the disk too. */
  truncate: (size: number) => Promise<void>;
  /** Bytes of the disk that it takes; less than its size where it has gaps. */
  diskBytes: () => Promise<number>;
  close: () => Promise<void>;
}>;

/** The files. */
export type PartFiles = Readonly<{
  /** What a file is called below the folder of uploads. */
  nameOf: (upload: string) => string;
  /** Opens the file of an upload; the first time makes it. */
  open: (upload: string) => Promise<PartFile>;
  /** Uploads that have a file. */
  list: () => Promise<string[]>;
  /** Bytes of the disk that a file takes; 0 for one that is not there. */
  diskBytes: (upload: string) => Promise<number>;
  /** Removes a file; one that is not there is removed already. */
  remove: (upload: string) => Promise<void>;
}>;

/** The unit of `stat().blocks`, whatever the file system. Source: POSIX, sys/stat.h. */
const blockBytes = 512;

/** Opens the folder, and makes it where it is missing, on the disk too. @param folder - That of uploads. */
export async function openPartFiles(folder: string): Promise<PartFiles> {
  const made = await mkdir(join(folder, partFolder), { recursive: true, mode: 0o700 });
  if (made !== undefined) for (const parent of [folder, dirname(folder)]) await syncNames(parent);
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

/** What is left of pieces when so many bytes of them are done. */
function withoutFirst(pieces: readonly Uint8Array[], bytes: number): readonly Uint8Array[] {
  let done = bytes;
  for (const [index, piece] of pieces.entries()) {
    if (done < piece.length) return [piece.subarray(done), ...pieces.slice(index + 1)];
    done -= piece.length;
  }
  return [];
}

/** A file that is new is on the disk by its name before anybody is told of its bytes. */
async function openOrMake(path: string, folder: string): Promise<FileHandle> {
  const known = await orMissing(open(path, "r+"));
  if (known !== undefined) return known;
  const made = await open(path, "a+", 0o600);
  await made.close();
  await syncNames(folder);
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

/** Brings the names in a folder to the disk. */
async function syncNames(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
