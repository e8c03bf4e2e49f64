/**
 * `backup.json`: the list of a backup's files. It is written last, so a folder without it is not a backup.
 * @module
 */
import { readFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { misuse } from "../../app/complaints.ts";
import { isJsonArray, isJsonObject, type JsonValue, readJson } from "../../lib/json.ts";
import { printable } from "../../lib/printable.ts";
import { replaceFile } from "../../store/durable-file.ts";
import { version } from "../../version.ts";

/** A file of a backup. */
export type BackupFile = Readonly<{
  /** Path within the folder, with `/`. */
  path: string;
  size: number;
  /** Lower-case hexadecimal. */
  sha256: string;
}>;

export type BackupRecord = Readonly<{
  /** Version of the program that wrote it. */
  program: string;
  /** When the ledger was copied, ISO 8601. */
  at: string;
  /** Where the ledger is; one on PostgreSQL is not part of the backup. */
  ledger: "file" | "PostgreSQL";
  files: readonly BackupFile[];
}>;

const recordName = "backup.json";

/** Version of this format. */
const format = 1;

/** Writes the record of a complete backup, durably. */
export function writeBackupRecord(folder: string, record: Omit<BackupRecord, "program">): void {
  replaceFile(join(folder, recordName), `${JSON.stringify({ format, program: version, ...record }, undefined, 2)}\n`);
}

/** Reads the record of a backup. @throws Misuse when the folder is not a complete backup of this format. */
export function readBackupRecord(folder: string): BackupRecord {
  const value = readJson(textOf(folder));
  if (!isJsonObject(value)) throw misuse(`${printable(join(folder, recordName))} is not JSON`);
  if (value["format"] !== format)
    throw misuse(`${printable(folder)} has the format ${printable(String(value["format"]))}; this version reads 1`);
  const { program, at, ledger, files } = value;
  const isValid = typeof program === "string" && typeof at === "string" && isJsonArray(files);
  if (!isValid || (ledger !== "file" && ledger !== "PostgreSQL")) throw unreadable(folder);
  return { program, at, ledger, files: files.map((file) => readFile(folder, file)) };
}

function readFile(folder: string, file: JsonValue): BackupFile {
  if (!isJsonObject(file)) throw unreadable(folder);
  const { path, size, sha256 } = file;
  const isValid =
    typeof path === "string" &&
    isWithin(path) &&
    typeof size === "number" &&
    Number.isSafeInteger(size) &&
    typeof sha256 === "string";
  if (!isValid) throw unreadable(folder);
  return { path, size, sha256 };
}

/** Whether a path stays within its folder: a backup may come from elsewhere. */
function isWithin(path: string): boolean {
  return path !== "" && !isAbsolute(path) && !path.split(/[/\\]/).includes("..") && !path.includes("\0");
}

function unreadable(folder: string): Error {
  return misuse(`${printable(join(folder, recordName))} is not the record of a backup`);
}

function textOf(folder: string): string {
  try {
    return readFileSync(join(folder, recordName), "utf8");
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
    throw misuse(`${printable(folder)} is not a complete backup: it has no ${recordName}`);
  }
}
