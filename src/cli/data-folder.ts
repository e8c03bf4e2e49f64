/**
 * Where everything durable of one program lies.
 * @module
 */
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";

/** Paths of files and folders. */
export type DataFolder = Readonly<{
  root: string;
  /** The index. It can be made again from the chain. */
  index: string;
  /** What an operator refuses to serve. */
  moderation: string;
  /** What else an operator has asked for. */
  administration: string;
  /** What others are still to be told. */
  webhooks: string;
  /** Credits, payments and uploads. It cannot be made again. */
  ledger: string;
  /** Data items that were uploaded. */
  uploads: string;
  /** Keys that were made here because none was set. */
  keys: string;
  /** Where exports are written unless told. */
  exports: string;
  /** The map of cached content, and the folder of its files. */
  contentMap: string;
  content: string;
  /** What the sandbox, which stands for Stripe under `dev`, remembers. */
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
    sandbox: at("sandbox.sqlite"),
    devnet: at("devnet"),
  };
}

/** Makes the folder when it is absent, readable by its owner alone. Throws what the system says. */
export function makeDataFolder(folder: DataFolder): void {
  mkdirSync(folder.root, { recursive: true, mode: 0o700 });
}
