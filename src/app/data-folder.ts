/**
 * The data folder: its paths, and the lock by which one process owns it. The system releases the lock when the process
 * dies.
 * @module
 */
import { mkdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Config } from "../config/settings.ts";
import type { Closers } from "../lib/closers.ts";
import { lockFile, type Unlock } from "../store/sqlite.ts";
import { misuse } from "./complaints.ts";

/** Databases that the record of a folder names; every mode of the program uses them. */
export const databaseNames = ["ledger", "moderation", "administration", "webhooks", "index", "content"] as const;

export type DatabaseName = (typeof databaseNames)[number];

/** Paths of files and folders. */
export type DataFolder = Readonly<{
  root: string;
  /** Record of the databases: their ids and generations. */
  databases: string;
  /** The index. Can be rebuilt from the chain. */
  index: string;
  /** The block list. */
  moderation: string;
  /** Pending requests of the operator. */
  administration: string;
  /** Outbox of webhook events. */
  webhooks: string;
  /** Credits, payments and uploads. Cannot be rebuilt. */
  ledger: string;
  /** Uploaded data items. */
  uploads: string;
  /** Generated keys, for those that no setting names. */
  keys: string;
  /** Default folder of exports. */
  exports: string;
  /** Exports that the columnar store loads. DuckDB reads them in place. */
  columnar: string;
  /** Native libraries that a binary embeds. Are written again. */
  libraries: string;
  /** The map of cached content. */
  contentMap: string;
  /** The folder of files of cached content. */
  content: string;
  /** Places of found data items that the index lacks. Can be found again. */
  foundItems: string;
  /** Path indexes of large manifests. Can be rebuilt from the manifests. */
  manifests: string;
  /** Payments of the simulated Stripe (`cairn dev`). */
  sandbox: string;
  /** The development chain and its wallets. */
  devnet: string;
}>;

/** The paths within a folder. Creates nothing. */
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
    columnar: at("columnar"),
    libraries: at("libraries"),
    contentMap: at("content.sqlite"),
    content: at("content"),
    foundItems: at("found-items.sqlite"),
    manifests: at("manifests"),
    sandbox: at("sandbox.sqlite"),
    devnet: at("devnet"),
  };
}

/** The paths within an existing folder: a check of a mistyped folder must not create it. @throws Misuse without one. */
export function existingDataFolder(folder: string): DataFolder {
  const found = dataFolderAt(folder);
  if (statSync(found.root, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw misuse(`DATA_DIR ${found.root} is not an existing folder`);
  return found;
}

/** Creates the folder if it is absent, readable only by its owner. @throws The error of the system. */
export function makeDataFolder(folder: DataFolder): void {
  mkdirSync(folder.root, { recursive: true, mode: 0o700 });
}

/** Locks the folder for this process. @returns Undefined when another process has locked it. */
export function lockFolder(folder: DataFolder): Unlock | undefined {
  return lockFile(join(folder.root, "lock.sqlite"));
}

/**
 * Creates the folder of the settings if it is absent, and locks it until `closers` close it.
 *
 * @throws Misuse when another process has locked it, or when it cannot be created or written.
 */
export function takeFolder(config: Config, closers: Closers): DataFolder {
  const folder = dataFolderAt(config.DATA_DIR);
  const unlock = tryLock(folder);
  if (unlock === undefined) throw misuse(`Another program runs on the folder ${folder.root}: stop it first.`);
  closers.add("folder's lock", unlock);
  return folder;
}

function tryLock(folder: DataFolder): Unlock | undefined {
  try {
    makeDataFolder(folder);
    return lockFolder(folder);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw misuse(`DATA_DIR ${folder.root} cannot be used: ${why}`);
  }
}
