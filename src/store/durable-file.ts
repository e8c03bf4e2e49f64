/**
 * Durable file operations: synced folders, and small files that are replaced atomically.
 * @module
 */
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Writes a file and syncs its bytes and its name to the disk. After a crash a reader finds the old text or the new
 * text. Only one process at a time may replace a file.
 *
 * @throws Error from the system; the old file is then unchanged.
 */
export function replaceFile(path: string, text: string): void {
  const draft = `${path}.part`;
  try {
    writeFileSync(draft, text, { mode: 0o600, flush: true });
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

/** Syncs the names in a folder to the disk. */
export function syncFolder(folder: string): void {
  const handle = openSync(folder, "r");
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
