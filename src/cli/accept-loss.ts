/**
 * `cairn doctor --accept-loss <name>`: the folder forgets a database that is lost, so that the next start begins anew.
 *
 * No file is deleted: what cannot be used is set aside under another name.
 * @module
 */

import { existsSync, renameSync, rmSync } from "node:fs";
import { exitCodes, misuse } from "../app/complaints.ts";
import { databaseNames, existingDataFolder, lockFolder } from "../app/data-folder.ts";
import { type ExaminedDatabase, examineDatabases, shortName, writeDatabaseRecord } from "../app/databases.ts";
import type { Config } from "../config/settings.ts";
import { checkIntegrity, closeDatabase, isDamage, openForReading } from "../store/sqlite.ts";

/** Page cache of the walk over the whole file, bytes. */
const walkCacheBytes = 16 * 2 ** 20;

/**
 * Forgets it, and prints what the next start does. @returns The exit code.
 *
 * @throws Misuse when there is no such database, nothing is lost, or a program runs on the folder.
 */
export async function acceptLoss(config: Config, name: string): Promise<number> {
  const folder = existingDataFolder(config.DATA_DIR);
  const known = databaseNames.find((each) => each === name);
  if (known === undefined)
    throw misuse(`invalid value '${name}' for --accept-loss: expected one of ${databaseNames.join(", ")}`);
  const unlock = lockFolder(folder);
  if (unlock === undefined) throw misuse(`Another program runs on the folder ${folder.root}: stop it first.`);
  try {
    const { databases, record } = await examineDatabases(folder, config);
    const examined = databases.find((each) => each.known.name === known);
    const outcome = examined === undefined ? "the next start that uses it begins anew" : setAside(examined);
    const stored = new Map([...record].filter(([each]) => each !== known));
    writeDatabaseRecord(folder.databases, stored);
    process.stdout.write(`The data folder forgets ${known}: ${outcome}.\n`);
    return exitCodes.done;
  } finally {
    unlock();
  }
}

/** Moves away a file that cannot be used. @returns What becomes of the database. */
function setAside({ known, found, finding }: ExaminedDatabase): string {
  const name = shortName(known);
  if (finding?.fault === "moved") return `the next start uses ${name}, and its credits`;
  if (found.kind === "absent") return `the next start makes a new ${name}`;
  if (known.place === "PostgreSQL") {
    if (finding === undefined) throw nothingLost(name);
    return `the next start uses the database of LEDGER_URL as it is`;
  }
  const isBroken = found.kind === "damaged" || found.kind === "empty" || isDamagedWithin(known.path);
  if (!isBroken && finding?.fault === "foreign") return `the next start uses ${name} as it is`;
  if (!isBroken && known.rebuilt === undefined) throw nothingLost(name);
  const aside = `${known.path}.${new Date().toISOString().replace(/[:.]/g, "-")}`;
  renameSync(known.path, aside);
  if (existsSync(`${known.path}-wal`)) renameSync(`${known.path}-wal`, `${aside}-wal`);
  rmSync(`${known.path}-shm`, { force: true });
  return `${aside} is what was there, and the next start makes a new ${name}`;
}

function nothingLost(name: string): Error {
  return misuse(`${name} is whole and belongs to this data folder: there is no loss to accept`);
}

function isDamagedWithin(path: string): boolean {
  try {
    const db = openForReading(path, walkCacheBytes);
    try {
      return checkIntegrity(db, 1).length > 0;
    } finally {
      closeDatabase(db);
    }
  } catch (error) {
    if (isDamage(error)) return true;
    throw error;
  }
}
