/**
 * Small files that are replaced as a whole: after a crash at any moment a reader finds the old text or the new one.
 * @module
 */
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Writes a file and waits until its bytes and its name are on the disk. One process at a time may replace a file.
 *
 * @throws Error what the system says; the file is then what it was.
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
  const folder = openSync(dirname(path), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
