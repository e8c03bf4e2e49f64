/**
 * The name of a folder of uploads: made with it, kept in it, and written beside every item that lies there.
 *
 * Programs that share a ledger do not share their disks: each brings to the chain what lies in its own folder. A folder
 * that is empty because its disk is missing has another name, and nothing that belongs to the old one is taken for
 * lost.
 * @module
 */
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { replaceFile } from "../durable-file.ts";

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
