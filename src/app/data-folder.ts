/**
 * The data folder: its paths, and the lock by which one program at a time uses it. The system releases the lock when
 * its holder dies.
 * @module
 */

import { Database } from "bun:sqlite";
import { mkdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Config } from "../config/settings.ts";
import type { Closers } from "../lib/closers.ts";
import { misuse } from "./complaints.ts";

/** Databases that a folder remembers: those that stand in every mode of the program. */
export const databaseNames = ["ledger", "moderation", "administration", "webhooks", "index", "content"] as const;

/** The name of one of them. */
export type DatabaseName = (typeof databaseNames)[number];

/** Paths of files and folders. */
export type DataFolder = Readonly<{
  root: string;
  /** What the folder remembers of its databases. */
  databases: string;
  /** The index. It can be made again from the chain. */
  index: string;
  /** The block list. */
  moderation: string;
  /** What else an operator has asked for. */
  administration: string;
  /** Webhook events that are still to be delivered. */
  webhooks: string;
  /** Credits, payments and uploads. It cannot be made again. */
  ledger: string;
  /** Data items that were uploaded. */
  uploads: string;
  /** Keys that were made here because none was set. */
  keys: string;
  /** Default folder of exports. */
  exports: string;
  /** The map of cached content, and the folder of its files. */
  contentMap: string;
  content: string;
  /** Where data items were found that the index does not have. They can be found again. */
  foundItems: string;
  /** Indexes of large manifests. They can be made again from the manifests. */
  manifests: string;
  /** State of the sandbox's Stripe (`cairn dev`). */
  sandbox: string;
  /** The development chain, its wallets, and what was planted on it. */
  devnet: string;
}>;

/** The paths within a folder; nothing is made. */
export function dataFolderAt(folder: string): DataFolder {
  const root = resolve(folder);
  const at = (name: string) => join(root, name);
  return {
    root,
    databases: at("databases.json"),
    index: at("index.sqlite"),
    moderation: at("moderation.sqlite"),
    administration: at("administration.sqlite"),
    webhooks: at("webhooks.sqlite"),
    ledger: at("ledger.sqlite"),
    uploads: at("uploads"),
    keys: at("keys"),
    exports: at("export"),
    contentMap: at("content.sqlite"),
    content: at("content"),
    foundItems: at("found-items.sqlite"),
    manifests: at("manifests"),
    sandbox: at("sandbox.sqlite"),
    devnet: at("devnet"),
  };
}

/**
 * The paths within a folder that must be there: who checks a folder wants to hear of a mistyped one, and makes none.
 *
 * @throws Misuse when there is no folder.
 */
export function existingDataFolder(folder: string): DataFolder {
  const found = dataFolderAt(folder);
  if (statSync(found.root, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw misuse(`DATA_DIR ${found.root} is not a folder: there is nothing to check`);
  return found;
}

/** Makes the folder when it is absent, readable by its owner alone. Throws what the system says. */
export function makeDataFolder(folder: DataFolder): void {
  mkdirSync(folder.root, { recursive: true, mode: 0o700 });
}

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
