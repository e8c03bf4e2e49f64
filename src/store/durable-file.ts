/**
 * Durable file operations: synced folders, and small files that are replaced atomically.
 * @module
 */
import {
  closeSync,
  constants,
  copyFileSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Writes a file, in place of one of that name, and syncs its bytes. `flush` of the runtime's functions does not report
 * a sync that failed (Bun 1.4.5).
 *
 * @throws Error from the system.
 */
export function writeSynced(path: string, content: string | Uint8Array, mode = 0o666): void {
  const handle = openSync(path, "w", mode);
  try {
    writeFileSync(handle, content);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/**
 * Writes a file and syncs its bytes and its name to the disk. After a crash a reader finds the old content or the new
 * content. Only one process at a time may replace a file.
 *
 * @throws Error from the system; the old file is then unchanged, unless only the name of the new one was not synced.
 */
export function replaceFile(path: string, content: string | Uint8Array): void {
  const draft = `${path}.part`;
  try {
    writeSynced(draft, content, 0o600);
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

/** Syncs the names in a folder to the disk. */
export function syncFolder(folder: string): void {
  syncFile(folder);
}

/** Syncs the bytes of a file to the disk. */
export function syncFile(path: string): void {
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** As `syncFolder`, without blocking the thread. */
export async function syncFolderLater(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Links a file, which takes no space. Copies it to another file system, or when its owner forbids links. Its bytes are
 * on the disk then. Replaces `target`.
 *
 * @throws Error from the system when the source cannot be read or the copy cannot be written.
 */
export function linkOrCopyFile(source: string, target: string): "linked" | "copied" {
  // A copy must never be written into a link to its own source.
  rmSync(target, { force: true });
  try {
    linkSync(source, target);
  } catch {
    // The copy fails with the reason, unless the reason is only that links are impossible here.
    copyFile(source, target);
    return "copied";
  }
  syncFile(target); // its bytes may be new
  return "linked";
}

/**
 * Copies a file, syncs the copy, and gives it its name then. Replaces `target`; the caller syncs the folder.
 *
 * @throws Error from the system; `target` is then unchanged.
 */
export function copyFile(source: string, target: string): void {
  const draft = `${target}.part`;
  try {
    copyFileSync(source, draft, constants.COPYFILE_FICLONE);
    const handle = openSync(draft, "r");
    try {
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    renameSync(draft, target);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}
