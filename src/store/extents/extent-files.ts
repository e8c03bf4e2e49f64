/**
 * The files of the content cache: one sparse file a root, with concurrent reads and writes at any position.
 * Handles are opened on demand and few stay open. An unlinked file can be read to its end by the readers that have it
 * open.
 * @module
 */
import {
  close,
  constants,
  fdatasync,
  fstat,
  ftruncate,
  lstatSync,
  open as openFile,
  read,
  readSync,
  write,
} from "node:fs";
import { mkdir, readdir, rm, unlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { LRUCache } from "lru-cache";

/** Identifies one state of a file. The change time moves with every write, truncation or rename. */
export type FileIdentity = Readonly<{ inode: bigint; size: bigint; changedNs: bigint }>;

/** Failure of a file operation. */
type FileFault =
  | Readonly<{ kind: "lost" }> // the file is missing, or another kind of file is at its path
  | Readonly<{ kind: "full" }> // no space, no quota, no inodes
  | Readonly<{ kind: "fault"; code: string }>; // the disk or the system failed

/** Files by the name of their root. */
export type ExtentFiles = Readonly<{
  path: (name: string) => string;
  /** Reads `[start, start + length)`; returns fewer bytes when the file ends earlier. */
  read: (
    name: string,
    start: number,
    length: number,
  ) => Promise<Readonly<{ kind: "bytes"; bytes: Uint8Array<ArrayBuffer> }> | FileFault>;
  /**
   * Reads bytes from `start` at once, if the file is open; false when it is not, or has fewer bytes, or cannot be read,
   * which {@link ExtentFiles.read} reports.
   */
  readNow: (name: string, start: number, bytes: Uint8Array) => boolean;
  /** Writes bytes at `start`; creates the file with `size` bytes when it is absent. */
  write: (
    name: string,
    size: number,
    start: number,
    bytes: Uint8Array,
  ) => Promise<Readonly<{ kind: "written" }> | FileFault>;
  /** Current status of the file at the path; undefined when it is not the regular file that is open here. */
  identity: (name: string) => Promise<FileIdentity | undefined>;
  /** Status of the regular file at the path, at once; undefined when there is none. */
  identityOfPath: (name: string) => FileIdentity | undefined;
  /** Syncs all earlier writes to the disk. */
  sync: (name: string) => Promise<Readonly<{ kind: "synced" }> | FileFault>;
  /** Unlinks whatever is at the file's path. */
  remove: (name: string) => Promise<void>;
  /** Names of all files, by folder, for the comparison with the rows. */
  walk: () => AsyncIterable<readonly string[]>;
  close: () => Promise<void>;
}>;

/** Limit of open files: a system allows 1,024 by default, and sockets have precedence. */
const handlesMax = 128;

const system = {
  open: promisify(openFile),
  close: promisify(close),
  fdatasync: promisify(fdatasync),
  ftruncate: promisify(ftruncate),
};

type Handle = {
  readonly descriptor: number;
  readonly inode: bigint;
  users: number;
  retired: boolean;
  readonly closed: PromiseWithResolvers<void>;
};

/** The folder is created with the first file. */
export function openExtentFiles(folder: string): ExtentFiles {
  const handles = new LRUCache<string, Promise<Handle>>({
    max: handlesMax,
    dispose: (handle) => void handle.then(retire, () => undefined), // a handle that failed to open needs no close
  });
  const open = new Set<Promise<void>>(); // until each is closed
  const pathOf = (name: string) => join(folder, name.slice(0, 2), name);

  /** Runs `work` with the handle of a file; opens the file first if necessary. */
  async function use<Value>(
    name: string,
    size: number | undefined,
    work: (handle: Handle) => Promise<Value>,
  ): Promise<Value | FileFault> {
    try {
      const handle = await handleOf(name, size);
      handle.users += 1;
      try {
        return await work(handle);
      } finally {
        handle.users -= 1;
        if (handle.retired) await closeUnused(handle);
      }
    } catch (error) {
      return faultOf(error);
    }
  }

  /** @param size - Size of a file to create; undefined opens only an existing file. */
  function handleOf(name: string, size: number | undefined): Promise<Handle> {
    const known = handles.get(name);
    if (known !== undefined) return known;
    const opening = openHandle(pathOf(name), size);
    handles.set(name, opening);
    const ended = opening.then(
      (handle) => handle.closed.promise,
      () => {
        if (handles.peek(name) === opening) handles.delete(name);
      },
    );
    open.add(ended);
    void ended.finally(() => open.delete(ended));
    return opening;
  }

  return {
    path: pathOf,
    read: (name, start, length) =>
      use(name, undefined, async ({ descriptor }) => {
        const bytes = Buffer.allocUnsafeSlow(length); // clearing the buffer costs as much as reading (measured)
        const got = await readAll(descriptor, bytes, start);
        return { kind: "bytes" as const, bytes: got === length ? bytes : bytes.subarray(0, got) };
      }),
    readNow: (name, start, bytes) => readsAllNow(openedNow(handles.get(name)), bytes, start),
    write: (name, size, start, bytes) =>
      use(name, size, async ({ descriptor }) => {
        await writeAll(descriptor, bytes, start);
        return { kind: "written" as const };
      }),
    async identity(name) {
      const found = await use(name, undefined, async (handle) => {
        const identity = identityOf(pathOf(name));
        return identity?.inode === handle.inode ? { kind: "same" as const, identity } : ({ kind: "lost" } as const);
      });
      if (found.kind === "same") return found.identity;
      handles.delete(name); // the open file is not the file at the path; the next use opens that
      return undefined;
    },
    identityOfPath: (name) => identityOf(pathOf(name)),
    sync: (name) =>
      use(name, undefined, async ({ descriptor }) => {
        await system.fdatasync(descriptor);
        return { kind: "synced" as const };
      }),
    async remove(name) {
      handles.delete(name);
      await unlink(pathOf(name)).catch((error) => removeOther(error, pathOf(name)));
    },
    walk: () => walkFolders(folder),
    async close() {
      handles.clear();
      await Promise.all(open);
    },
  };
}

async function retire(handle: Handle): Promise<void> {
  handle.retired = true;
  await closeUnused(handle);
}

async function closeUnused(handle: Handle): Promise<void> {
  if (handle.users > 0) return;
  try {
    await system.close(handle.descriptor);
  } catch {
    // The descriptor is closed although the disk reports a fault; reads find the bytes that the fault has lost.
  }
  handle.closed.resolve();
}

async function openHandle(path: string, size: number | undefined): Promise<Handle> {
  // Symbolic links are not followed, because they could lead out of the folder.
  const flags = constants.O_RDWR | constants.O_NOFOLLOW | (size === undefined ? 0 : constants.O_CREAT);
  let descriptor: number;
  try {
    descriptor = await system.open(path, flags, 0o640);
  } catch (error) {
    if (size === undefined || codeOf(error) !== "ENOENT") throw error;
    await mkdir(join(path, ".."), { recursive: true });
    descriptor = await system.open(path, flags, 0o640);
  }
  try {
    const { isFile, identity } = await statusOfDescriptor(descriptor);
    if (!isFile) throw Object.assign(new Error(`${path} is not a file`), { code: "EISDIR" });
    // The file gets its complete length at once, so it is never extended while it is read.
    if (size !== undefined && identity.size !== BigInt(size)) await system.ftruncate(descriptor, size);
    return { descriptor, inode: identity.inode, users: 0, retired: false, closed: Promise.withResolvers() };
  } catch (error) {
    await system.close(descriptor);
    throw error;
  }
}

type FileStatus = Readonly<{ isFile: boolean; identity: FileIdentity }>;

/** Identity of a regular file. The system has an open file's status in memory: 3 µs; a thread's round trip is 17 µs. */
function identityOf(path: string): FileIdentity | undefined {
  const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  return stats?.isFile() ? { inode: stats.ino, size: stats.size, changedNs: stats.ctimeNs } : undefined;
}

function statusOfDescriptor(descriptor: number): Promise<FileStatus> {
  return new Promise((resolve, reject) => {
    fstat(descriptor, { bigint: true }, (error, stats) => {
      if (error) return reject(error);
      resolve({
        isFile: stats.isFile(),
        identity: { inode: stats.ino, size: stats.size, changedNs: stats.ctimeNs },
      });
    });
  });
}

async function readAll(descriptor: number, bytes: Uint8Array, start: number): Promise<number> {
  let done = 0;
  while (done < bytes.length) {
    const count = await readSome(descriptor, bytes, done, start + done);
    if (count === 0) return done;
    done += count;
  }
  return done;
}

/** The handle of a file whose opening has ended well. */
function openedNow(opening: Promise<Handle> | undefined): Handle | undefined {
  if (opening === undefined || Bun.peek.status(opening) !== "fulfilled") return undefined;
  const handle = Bun.peek(opening);
  return handle instanceof Promise ? undefined : handle;
}

function readsAllNow(handle: Handle | undefined, bytes: Uint8Array, start: number): boolean {
  if (handle === undefined) return false;
  try {
    return readSync(handle.descriptor, bytes, 0, bytes.length, start) === bytes.length;
  } catch {
    return false; // a read by a thread meets the fault, too
  }
}

function readSome(descriptor: number, bytes: Uint8Array, at: number, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    read(descriptor, bytes, at, bytes.length - at, position, (error, count) =>
      error ? reject(error) : resolve(count),
    );
  });
}

async function writeAll(descriptor: number, bytes: Uint8Array, start: number): Promise<void> {
  let done = 0;
  while (done < bytes.length) done += await writeSome(descriptor, bytes, done, start + done);
}

function writeSome(descriptor: number, bytes: Uint8Array, at: number, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    write(descriptor, bytes, at, bytes.length - at, position, (error, count) => {
      if (error) return reject(error);
      if (count === 0) return reject(Object.assign(new Error("nothing was written"), { code: "EIO" }));
      resolve(count);
    });
  });
}

/** Codes for a missing file, or for another kind of file at its path. */
const lostCodes: ReadonlySet<string> = new Set(["ENOENT", "EISDIR", "ELOOP", "ENOTDIR", "EACCES", "EPERM", "ENXIO"]);
const fullCodes: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

function faultOf(error: unknown): FileFault {
  const code = codeOf(error);
  if (code === undefined) throw error; // not a system error: a defect
  if (lostCodes.has(code)) return { kind: "lost" };
  return fullCodes.has(code) ? { kind: "full" } : { kind: "fault", code };
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

async function removeOther(error: unknown, path: string): Promise<void> {
  if (codeOf(error) === "ENOENT") return;
  await rm(path, { recursive: true, force: true }); // a folder at the path of the file
}

async function* walkFolders(folder: string): AsyncGenerator<readonly string[]> {
  for (const part of await names(folder)) {
    if (/^[0-9a-f]{2}$/.test(part)) yield await names(join(folder, part));
  }
}

async function names(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return [];
    throw error;
  }
}
