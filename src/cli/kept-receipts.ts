/**
 * The receipts that this user was given, a file each: what a service has promised is at hand when it is asked for,
 * also of what was uploaded by an earlier run.
 * @module
 */
import { accessSync, constants, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { isId } from "../arweave/id.ts";
import { isJsonObject, type JsonObject, readJson } from "../lib/json.ts";
import { misuse } from "./complaints.ts";
import type { Environment } from "./environment.ts";

/** Receipts in a folder. */
export type KeptReceipts = Readonly<{
  folder: string;
  /** Keeps one that was checked. @param to - The service that gave it. */
  keep: (receipt: JsonObject, to: string) => void;
  /** The last one that a service gave for an item. */
  find: (id: string, to: string) => JsonObject | undefined;
}>;

/** Where programs keep what is worth keeping and not worth a backup. Source: XDG Base Directory Specification. */
export function stateFolderOf({ XDG_STATE_HOME: named }: Environment): string {
  const home = named === undefined || named === "" ? join(homedir(), ".local", "state") : named;
  return join(home, "cairn");
}

/** Where the receipt of an item is kept. @param stateFolder - As `stateFolderOf` says. */
export function receiptFile(stateFolder: string, id: string): string {
  return join(stateFolder, "receipts", `${id}.json`);
}

/**
 * Makes the folder where it is absent: that nothing can be kept is told before anything is paid for.
 *
 * @throws Misuse when it cannot be made or written.
 */
export function createKeptReceipts(stateFolder: string): KeptReceipts {
  const folder = join(stateFolder, "receipts");
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw misuse(`receipts cannot be kept, XDG_STATE_HOME can name another place: ${why}`);
  }
  return {
    folder,
    keep: (receipt, to) => {
      const file = receiptFile(stateFolder, String(receipt["id"]));
      // Another run may keep the same one at this moment.
      const part = `${file}.${process.pid}`;
      writeFileSync(part, JSON.stringify({ ...receipt, to }));
      renameSync(part, file);
    },
    find: (id, to) => {
      const { to: from, ...receipt } = readKept(receiptFile(stateFolder, id)) ?? {};
      return isId(id) && from === to ? receipt : undefined;
    },
  };
}

function readKept(file: string): JsonObject | undefined {
  try {
    const value = readJson(readFileSync(file, "utf8"));
    return isJsonObject(value) ? value : undefined;
  } catch {
    // There is none: it was given to somebody else, or on another machine.
    return undefined;
  }
}
