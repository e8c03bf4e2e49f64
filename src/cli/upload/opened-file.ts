/**
 * A file that is examined before it is uploaded, and recognised when it is opened again to be read.
 *
 * A path says nothing for long: between two looks a link, or another file, can be put in its place. So the file is
 * opened without following a link at its end, the handle tells where it really is, and later handles must be of the
 * same file, of the same size, changed at the same time.
 * @module
 */
import { closeSync, constants, fstatSync, openSync, readlinkSync, readSync, realpathSync, statSync } from "node:fs";
import { Failure } from "../../failures.ts";
import { type KeyTest, keyBytesMax } from "./private-keys.ts";

/** A file as it was when it was examined. */
export type OpenedFile = Readonly<{
  /** Its real path: no part of it is a link. */
  file: string;
  /** Bytes. */
  size: number;
  /** When it was changed last. Unix milliseconds. */
  changedAtMs: number;
  device: number;
  inode: number;
}>;

/** Opens to read, without a link at the end of the path, and without waiting for the writer of a pipe. */
export const openFlags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/**
 * Examines a file through one handle.
 *
 * @param real - Its path, with every link resolved.
 * @param name - The name under which it would be uploaded.
 * @throws Failure `source_failed` {reason} when it cannot be read, or is not at that path any more.
 */
export function examineFile(real: string, name: string, isKey: KeyTest): OpenedFile & { isKey: boolean } {
  const handle = openNow(real);
  try {
    const stat = fstatSync(handle);
    if (!stat.isFile() || !isAt(handle, real, stat)) throw changedFile(real);
    const { size, mtimeMs: changedAtMs, dev: device, ino: inode } = stat;
    const content = size > keyBytesMax ? undefined : readWhole(handle, size);
    const foundKey = content !== undefined && isKey(name, content);
    return { file: real, size, changedAtMs, device, inode, isKey: foundKey };
  } finally {
    closeSync(handle);
  }
}

/** What a handle says of its file. */
type HandleStat = Readonly<{ size: number; mtimeMs: number; dev: number; ino: number }>;

/** Whether a handle is of the file that was examined, unchanged. */
export function isUnchanged(file: OpenedFile, { size, mtimeMs, dev, ino }: HandleStat): boolean {
  return size === file.size && mtimeMs === file.changedAtMs && dev === file.device && ino === file.inode;
}

/** What is said of a file that changes meanwhile. */
export function changedFile(file: string): Failure {
  return new Failure("source_failed", {
    reason: `${file} changed while it was being uploaded; upload it again`,
  });
}

/** What is said of a file that cannot be opened: a link in its place was put there after it was examined. */
export function unreadableFile(file: string, error: unknown): Failure {
  if (error instanceof Error && "code" in error && error.code === "ELOOP") return changedFile(file);
  return new Failure("source_failed", { reason: `${file} cannot be read: ${whyUnreadable(error)}` }, error);
}

/** What the system says. */
export function whyUnreadable(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function openNow(real: string): number {
  try {
    return openSync(real, openFlags);
  } catch (error) {
    throw unreadableFile(real, error);
  }
}

/** Whether the handle's file is at the path, no folder on the way being a link. */
function isAt(handle: number, real: string, { dev, ino }: Pick<HandleStat, "dev" | "ino">): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${handle}`) === real;
  } catch {
    // Elsewhere than on Linux the path is asked once more, and must still be of the same file.
    const now = statSync(real, { throwIfNoEntry: false });
    return now !== undefined && now.dev === dev && now.ino === ino && realpathSync(real) === real;
  }
}

function readWhole(handle: number, size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  let read = 0;
  for (let count = -1; read < size && count !== 0; read += count)
    count = readSync(handle, bytes, read, size - read, read);
  return bytes.subarray(0, read);
}
