/**
 * The receipts that this user was given, a file each: what a service has promised is at hand when it is asked for,
 * also of what was uploaded by an earlier run.
 * @module
 */
import { accessSync, constants, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { misuse } from "../app/complaints.ts";
import type { Id } from "../arweave/id.ts";
import { isJsonObject, type JsonObject, type JsonValue, readJson } from "../lib/json.ts";
import type { Environment } from "./environment.ts";
import { receiptFault } from "./receipt-fault.ts";

/** What is kept for an item: a receipt and the service that gave it, or what is wrong with the file. */
export type StoredReceipt =
  | Readonly<{ kind: "receipt"; receipt: JsonObject; from: JsonValue | undefined }>
  | Readonly<{ kind: "damaged"; fault: string }>;

/** Receipts in a folder. */
export type StoredReceipts = Readonly<{
  folder: string;
  /** Keeps one that was checked. @param to - The service that gave it. */
  keep: (receipt: JsonObject, to: string) => void;
  /** The last one that a service gave for an item. Of a file that cannot be read it is not known whose it is. */
  find: (id: Id, to: string) => StoredReceipt | undefined;
}>;

/** Where programs keep what is worth keeping and not worth a backup. Source: XDG Base Directory Specification. */
export function stateFolderOf({ XDG_STATE_HOME: named }: Environment): string {
  const home = named === undefined || named === "" ? join(homedir(), ".local", "state") : named;
  return join(home, "cairn");
}

/** @param stateFolder - As `stateFolderOf` says. */
function receiptFile(stateFolder: string, id: string): string {
  return join(stateFolder, "receipts", `${id}.json`);
}

/**
 * Makes the folder where it is absent: that nothing can be kept is told before anything is paid for.
 *
 * @throws Misuse when it cannot be made or written.
 */
export function createStoredReceipts(stateFolder: string): StoredReceipts {
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
      const stored = readStoredReceipt(stateFolder, id);
      return stored?.kind === "receipt" && stored.from !== to ? undefined : stored;
    },
  };
}

/**
 * Reads what is kept for an item.
 *
 * @returns `undefined` when nothing is: the receipt was given to somebody else, or on another machine. A
 *   receipt that is answered is signed by the key that it names.
 */
export function readStoredReceipt(stateFolder: string, id: Id): StoredReceipt | undefined {
  const file = receiptFile(stateFolder, id);
  const damaged = (what: string) => ({ kind: "damaged", fault: `${file} ${what}` }) as const;
  let value: JsonValue | undefined;
  try {
    value = readJson(readFileSync(file, "utf8"));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    return damaged(`cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!isJsonObject(value)) return damaged("is no receipt any more: that is a JSON object");
  const { to: from, ...receipt } = value;
  const fault = receiptFault(receipt) ?? (receipt["id"] === id ? undefined : "it is for another item");
  return fault === undefined ? { kind: "receipt", receipt, from } : damaged(`is not good: ${fault}`);
}
