/**
 * One program a folder: a lock that the system gives back when its holder dies, however it dies.
 * @module
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import type { Config } from "../config/settings.ts";
import type { Closers } from "../lib/closers.ts";
import { misuse } from "./complaints.ts";
import { type DataFolder, dataFolderAt, makeDataFolder } from "./data-folder.ts";

/** Gives the folder back. */
export type Unlock = () => void;

/**
 * Takes the folder for this process.
 *
 * @returns Undefined when another program has it.
 */
export function lockFolder(folder: DataFolder): Unlock | undefined {
  const db = new Database(join(folder.root, "lock.sqlite"));
  try {
    db.run("PRAGMA busy_timeout = 0");
    db.run("BEGIN EXCLUSIVE");
  } catch (error) {
    db.close();
    if (error instanceof Error && "code" in error && error.code === "SQLITE_BUSY") return undefined;
    throw error;
  }
  return () => db.close();
}

/**
 * Makes the folder of the settings where it is absent, and takes it until `closers` close.
 *
 * @throws Misuse when another program has it, or when it cannot be made or written.
 */
export function takeFolder(config: Config, closers: Closers): DataFolder {
  const folder = dataFolderAt(config.DATA_DIR);
  const unlock = tryLock(folder);
  if (unlock === undefined) throw misuse(`Another program runs on the folder ${folder.root}.`);
  closers.add("folder's lock", unlock);
  return folder;
}

function tryLock(folder: DataFolder): Unlock | undefined {
  try {
    makeDataFolder(folder);
    return lockFolder(folder);
  } catch (error) {
    // What the system says is for the operator: a folder of another user, a disk that is full or read-only.
    const why = error instanceof Error ? error.message : String(error);
    throw misuse(`DATA_DIR ${folder.root} cannot be used: ${why}`);
  }
}
