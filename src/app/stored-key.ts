/**
 * Keys that nobody has set: made once, kept in the data folder, readable by its owner alone.
 * @module
 */
import { randomBytes } from "node:crypto";
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

const keyBytes = 32;

/**
 * Answers the key of that name, and makes it when there is none. Processes that come at once get the same one.
 *
 * @throws Error when the file is no key, or cannot be written.
 */
export function storedKey(folder: string, name: string): Uint8Array {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, name);
  const stored = read(path);
  if (stored !== undefined) return stored;
  const draft = `${path}.${randomBytes(8).toString("hex")}`;
  writeDurably(draft, randomBytes(keyBytes).toString("hex"));
  try {
    // A link is made whole or not at all, and never over one that is there.
    linkSync(draft, path);
  } catch (error) {
    if (!isCode(error, "EEXIST")) throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  const made = read(path);
  if (made === undefined) throw new Error(`the key ${path} vanished while it was made`);
  return made;
}

function read(path: string): Uint8Array | undefined {
  try {
    const text = readFileSync(path, "utf8").trim();
    if (!/^[0-9a-f]{64}$/.test(text)) throw new Error(`${path} is no key: remove it, and another one is made`);
    return Uint8Array.fromHex(text);
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

function writeDurably(path: string, text: string): void {
  const file = openSync(path, "wx", 0o600);
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
