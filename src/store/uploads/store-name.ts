/**
 * The name of a folder of uploads: made with it, kept in it, and written beside every item that lies there.
 *
 * Programs that share a ledger do not share their disks: each brings to the chain what lies in its own folder. A folder
 * that is empty because its disk is missing has another name, and nothing that belongs to the old one is taken for
 * lost.
 * @module
 */
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const fileName = "name";
const namePattern = /^[0-9a-f-]{36}$/;

/**
 * Answers the folder's name; makes both where they are missing.
 *
 * @param makeName - Answers a UUID that nobody else has.
 * @throws Error when the file holds no name; what the system says.
 */
export function keptStoreName(folder: string, makeName: () => string): string {
  const path = join(folder, fileName);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const kept = readName(path);
  if (kept !== undefined) return kept;
  const name = makeName();
  writeFileSync(`${path}.part`, name, { mode: 0o600, flush: true });
  renameSync(`${path}.part`, path);
  const handle = openSync(folder, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
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
