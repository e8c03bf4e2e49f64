/**
 * What a data folder remembers of its databases: `databases.json`, with the id and the generation of each.
 *
 * A database that is named here was there at an earlier start: where it is missing now, it was lost.
 * @module
 */
import { readFileSync } from "node:fs";
import { isJsonObject, type JsonObject, readJson } from "../lib/json.ts";
import { replaceFile } from "../store/durable-file.ts";
import type { DatabaseIdentity } from "../store/identity.ts";
import { type DatabaseName, databaseNames } from "./data-folder.ts";

/** One database of the folder. */
export type RecordedDatabase = DatabaseIdentity &
  Readonly<{
    /** `file`: in the folder; `PostgreSQL`: the ledger of LEDGER_URL. */
    place: DatabasePlace;
  }>;

/** Where a database is located. */
export type DatabasePlace = "file" | "PostgreSQL";

/** All databases that the folder remembers. */
export type DatabaseRecord = ReadonlyMap<DatabaseName, RecordedDatabase>;

/**
 * Reads the record.
 *
 * @returns Undefined where there is none, or the file is not a valid record.
 * @throws Error when the file cannot be read.
 */
export function readDatabaseRecord(path: string): DatabaseRecord | undefined {
  const value = readJson(textOf(path));
  const databases = isJsonObject(value) ? value["databases"] : undefined;
  if (!isJsonObject(databases)) return undefined;
  const rows = databaseNames.flatMap((name) => {
    const entry = databases[name];
    return entry === undefined ? [] : [[name, isJsonObject(entry) ? parseEntry(entry) : undefined] as const];
  });
  const record = new Map<DatabaseName, RecordedDatabase>();
  for (const [name, entry] of rows) {
    if (entry === undefined) return undefined;
    record.set(name, entry);
  }
  return record;
}

/** Writes the record durably: after a crash the old one is there, or the new one. */
export function writeDatabaseRecord(path: string, record: DatabaseRecord): void {
  replaceFile(path, `${JSON.stringify({ databases: Object.fromEntries(record) }, undefined, 2)}\n`);
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}

function parseEntry({ place, id, generation }: JsonObject): RecordedDatabase | undefined {
  const isValid =
    (place === "file" || place === "PostgreSQL") &&
    typeof id === "string" &&
    typeof generation === "number" &&
    Number.isSafeInteger(generation);
  return isValid ? { place, id, generation } : undefined;
}
