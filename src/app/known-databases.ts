/**
 * The databases of a data folder: what each holds, whether it can be built again, and what is said of a lost one.
 * @module
 */
import { basename } from "node:path";
import type { Config } from "../config/settings.ts";
import { assert } from "../lib/assert.ts";
import type { DatabaseState } from "../store/identity.ts";
import type { PostgresIdentity } from "../store/ledger/postgres-ledger.ts";
import { pageBytes } from "../store/sqlite.ts";
import { type DatabaseName, type DataFolder, databaseNames } from "./data-folder.ts";
import type { DatabasePlace, RecordedDatabase } from "./database-record.ts";

/** A database of a folder, as the settings have it. */
export type KnownDatabase = Readonly<{
  name: DatabaseName;
  place: DatabasePlace;
  /** The file, also when the database is elsewhere. */
  path: string;
  /** What is lost with it. */
  holds: string;
  /** How it is built again; undefined: it cannot be. */
  rebuilt: string | undefined;
  /** Page size of a new file. Bytes; undefined is SQLite's own. */
  pageBytes: number | undefined;
  /** Whether this start opens it. */
  isUsed: boolean;
}>;

/**
 * What is wrong with a database.
 *
 * moved  the ledger is now elsewhere than at the last start
 * older  this folder's own, from before the last start: an older copy was put back
 */
export type DatabaseFault = "missing" | "emptied" | "foreign" | "damaged" | "moved" | "older";

/** What was found wrong. */
export type DatabaseFinding = Readonly<{
  name: DatabaseName;
  fault: DatabaseFault;
  /** `refused`: the program does not start; `rebuilt`: it starts and builds the database again; `noted`: it starts. */
  outcome: "refused" | "rebuilt" | "noted";
  /** The file, or `PostgreSQL`. */
  subject: string;
  /** One sentence: what is wrong, and what can be done. */
  sentence: string;
}>;

/** What may be found where a database is expected. */
export type FoundDatabase = DatabaseState | PostgresIdentity;

const holds: Readonly<Record<DatabaseName, string>> = {
  ledger: "its credits, payments and uploads that are not on the chain yet",
  moderation: "the list of blocked content",
  administration: "queued transactions and the records of exports",
  webhooks: "webhook events that are not delivered yet",
  index: "the index",
  content: "the cache of content",
};

const rebuilt: Partial<Readonly<Record<DatabaseName, string>>> = {
  index: "it is built again from the chain, from START_HEIGHT on",
  content: "content is fetched again when it is requested",
};

/** The databases of a folder, in the order in which they are reported. */
export function knownDatabases(
  folder: DataFolder,
  config: Pick<Config, "LEDGER_URL" | "WEBHOOK_TARGET_SERVERS">,
): readonly KnownDatabase[] {
  const paths = { ...folder, content: folder.contentMap };
  return databaseNames.map((name) => ({
    name,
    place: name === "ledger" && config.LEDGER_URL !== undefined ? "PostgreSQL" : "file",
    path: paths[name],
    holds: holds[name],
    rebuilt: rebuilt[name],
    pageBytes: name === "ledger" ? undefined : pageBytes,
    isUsed: name !== "webhooks" || config.WEBHOOK_TARGET_SERVERS.length > 0,
  }));
}

/**
 * Compares what was found with what the folder remembers.
 *
 * @param recorded - Undefined: the folder does not know the database, and takes it as it is.
 */
export function judgeDatabase(
  known: KnownDatabase,
  recorded: RecordedDatabase | undefined,
  found: FoundDatabase,
): DatabaseFinding | undefined {
  const fault = faultOf(known, recorded, found);
  if (fault === undefined) return undefined;
  const isRebuilt = known.rebuilt !== undefined && !(known.name === "index" && fault === "damaged");
  const outcome = fault === "older" ? "noted" : isRebuilt ? "rebuilt" : "refused";
  const subject = known.place === "file" ? known.path : known.place;
  return { name: known.name, fault, outcome, subject, sentence: sentenceOf(known, fault, recorded, found) };
}

function faultOf(
  known: KnownDatabase,
  recorded: RecordedDatabase | undefined,
  found: FoundDatabase,
): DatabaseFault | undefined {
  if (recorded !== undefined && recorded.place !== known.place) return "moved";
  if (found.kind === "damaged") return "damaged";
  if (recorded === undefined) return undefined;
  if (found.kind === "marked") return identityFault(known, recorded, found);
  // Written before the database was made: the first start may have ended between the two.
  if (recorded.generation === 0) return undefined;
  if (found.kind === "absent") return "missing";
  if (found.kind === "empty") return "emptied";
  // A cache that was damaged has begun anew by itself.
  return known.rebuilt === undefined ? "foreign" : undefined;
}

function identityFault(
  known: KnownDatabase,
  recorded: RecordedDatabase,
  found: Readonly<{ id: string; generation?: number }>,
): DatabaseFault | undefined {
  if (found.id !== recorded.id) return "foreign";
  const isOlder = found.generation !== undefined && found.generation < recorded.generation;
  return isOlder && known.rebuilt === undefined ? "older" : undefined;
}

function sentenceOf(
  known: KnownDatabase,
  fault: DatabaseFault,
  recorded: RecordedDatabase | undefined,
  found: FoundDatabase,
): string {
  const { name, rebuilt } = known;
  const file = known.place === "file" ? known.path : "the PostgreSQL database of LEDGER_URL";
  const accept = `cairn doctor --accept-loss ${name}`;
  const anew = `or begin anew without ${known.holds}: ${accept}`;
  if (rebuilt !== undefined && fault !== "damaged") {
    if (fault === "foreign")
      return `${file} belongs to another data folder: it is used as it is; to build it again: ${accept}`;
    return `${file} is ${fault === "missing" ? "missing" : "empty"}: ${rebuilt}`;
  }
  switch (fault) {
    case "damaged":
      assert(found.kind === "damaged", "a damaged file says why");
      return `${file} is damaged (${found.reason}): ${damagedAdvice(known, accept)}`;
    case "missing":
      return `${file} is missing: restore it from a backup, ${anew}`;
    case "emptied":
      return `${file} is empty: restore it from a backup, ${anew}`;
    case "foreign": {
      const whose = found.kind === "marked" ? "belongs to another data folder" : "has no id of this data folder";
      return `${file} ${whose}: put the right one back, or use this one from now on: ${accept}`;
    }
    case "moved":
      return movedSentence(known, recorded, accept);
    case "older":
      return `${file} is an older copy than the one of the last start: what was written since is lost`;
  }
}

function damagedAdvice(known: KnownDatabase, accept: string): string {
  if (known.name === "index")
    return `it can be built again from the chain, from START_HEIGHT on: ${accept} sets it aside, then start again`;
  if (known.rebuilt !== undefined) return `the next start begins it anew, and ${known.rebuilt}`;
  return `restore it from a backup, it cannot be built again; or begin anew without ${known.holds}: ${accept}`;
}

function movedSentence({ path }: KnownDatabase, recorded: RecordedDatabase | undefined, accept: string): string {
  const [here, there] =
    recorded?.place === "PostgreSQL"
      ? ["on PostgreSQL, but LEDGER_URL is not set: set it", path]
      : [`in ${path}, but LEDGER_URL names another one: unset it`, "the one of LEDGER_URL"];
  return `the ledger of this data folder is ${here}, or leave its credits behind and use ${there}: ${accept}`;
}

/** A file's name within its folder, as people say it. */
export function shortName({ place, path }: KnownDatabase): string {
  return place === "file" ? basename(path) : "the ledger on PostgreSQL";
}
