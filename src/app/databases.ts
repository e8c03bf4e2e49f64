/**
 * The databases of a data folder at the start of the program: a lost one prevents the start, a new one gets an id, and
 * `databases.json` records the id and the generation of each. A recorded database that is missing was lost.
 *
 * Order of writes: an entry of generation 0 before a database is created, the id and the generation within the
 * database, then the generation of the entry. After a crash the next start accepts the folder as it is, and every
 * database that ever held anything is recorded.
 * @module
 */

import { readFileSync } from "node:fs";
import { basename } from "node:path";
import type { Config } from "../config/settings.ts";
import type { HealthCheck } from "../gateway/health.ts";
import { assert } from "../lib/assert.ts";
import { isJsonObject, type JsonObject, readJson } from "../lib/json.ts";
import type { Log, LogFields } from "../lib/log.ts";
import { replaceFile } from "../store/durable-file.ts";
import { type DatabaseIdentity, type DatabaseState, readIdentity, writeIdentity } from "../store/identity.ts";
import { markPostgres, type PostgresIdentity, readPostgresIdentity } from "../store/ledger/postgres-ledger.ts";
import { pageBytes, removeDatabase } from "../store/sqlite.ts";
import { misuse } from "./complaints.ts";
import { type DatabaseName, type DataFolder, databaseNames } from "./data-folder.ts";

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

type Settings = Pick<Config, "LEDGER_URL" | "WEBHOOK_TARGET_SERVERS">;

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
export function knownDatabases(folder: DataFolder, config: Settings): readonly KnownDatabase[] {
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

/** A database, what the folder remembers of it, and what is there. */
export type ExaminedDatabase = Readonly<{
  known: KnownDatabase;
  recorded: RecordedDatabase | undefined;
  found: FoundDatabase;
  finding: DatabaseFinding | undefined;
}>;

/** All databases of a folder. */
export type Examination = Readonly<{
  databases: readonly ExaminedDatabase[];
  /** What the folder remembers; where its file was lost, what the databases say. */
  record: DatabaseRecord;
  /** Whether the file was lost: then databases of every start that are not there count as lost. */
  isRecordLost: boolean;
}>;

/** Databases that every start makes. */
const alwaysThere: readonly DatabaseName[] = ["ledger", "moderation", "administration"];

/**
 * Looks at all databases that the settings use; writes nothing.
 *
 * @throws Error when a file cannot be opened, or the server not be reached.
 */
export async function examineDatabases(folder: DataFolder, settings: Settings): Promise<Examination> {
  const used = knownDatabases(folder, settings).filter(({ isUsed }) => isUsed);
  const found: (readonly [KnownDatabase, FoundDatabase])[] = [];
  for (const known of used) found.push([known, await find(known, settings.LEDGER_URL)]);
  const written = readDatabaseRecord(folder.databases);
  const isRecordLost = written === undefined && found.some(([, { kind }]) => kind === "marked");
  const record = written ?? (isRecordLost ? recordFrom(found) : new Map());
  const databases = found.map(([known, state]) => {
    const recorded = record.get(known.name);
    return { known, recorded, found: state, finding: judgeDatabase(known, recorded, state) };
  });
  return { databases, record, isRecordLost };
}

function find(known: KnownDatabase, ledgerUrl: string | undefined): FoundDatabase | Promise<FoundDatabase> {
  if (known.place === "file" || ledgerUrl === undefined) return readIdentity(known.path);
  return readPostgresIdentity(ledgerUrl);
}

/** What a folder must have remembered whose databases carry ids. */
function recordFrom(found: readonly (readonly [KnownDatabase, FoundDatabase])[]): DatabaseRecord {
  const record = new Map<DatabaseName, RecordedDatabase>();
  for (const [{ name, place }, state] of found) {
    if (state.kind === "marked") {
      const generation = "generation" in state ? state.generation : 1;
      record.set(name, { place, id: state.id, generation });
    } else if (alwaysThere.includes(name) && state.kind !== "unmarked") {
      record.set(name, { place, id: crypto.randomUUID(), generation: 1 });
    }
  }
  return record;
}

/**
 * Looks at the databases of a folder before anything is opened, and marks those that this start uses.
 *
 * @throws Misuse when one is lost that cannot be built again; Error what the system says.
 */
export async function claimDatabases(folder: DataFolder, settings: Settings, log: Log): Promise<void> {
  const { databases, record, isRecordLost } = await examineDatabases(folder, settings);
  const findings = databases.flatMap(({ finding }) => (finding === undefined ? [] : [finding]));
  const refused = findings.filter(({ outcome }) => outcome === "refused");
  if (refused.length > 0) throw misuse(refused.map(({ sentence }) => sentence).join("\n"));
  if (isRecordLost) log.warn(`${folder.databases} is missing: it is written again from what the databases say`);
  for (const { sentence } of findings) log.warn(sentence);
  // Opened with a log beside it, a damaged cache may look whole until a page is read that the log does not have.
  for (const { known, found, finding } of databases)
    if (found.kind === "damaged" && finding?.outcome === "rebuilt") removeDatabase(known.path);

  const plan = databases.map((each) => ({ ...each, entry: entryOf(each) }));
  const isNew = plan.some(({ known, entry }) => record.get(known.name)?.id !== entry.id);
  if (isNew || isRecordLost)
    writeDatabaseRecord(
      folder.databases,
      merged(record, plan, ({ recorded, entry }) =>
        recorded?.id === entry.id ? recorded : { ...entry, generation: 0 },
      ),
    );
  try {
    const marked: (Planned & ExaminedDatabase)[] = [];
    for (const each of plan) marked.push({ ...each, entry: await mark(each, settings.LEDGER_URL) });
    writeDatabaseRecord(
      folder.databases,
      merged(record, marked, ({ entry }) => entry),
    );
  } catch (error) {
    // A full disk does not keep a folder that is known from being served: only the count of its starts stays.
    if (isNew || isRecordLost || !isDiskFull(error)) throw error;
    log.warn("the disk is full: the generation of the databases was not written", { error });
  }
}

const fullCodes = /^(ENOSPC|EDQUOT|SQLITE_FULL)$/;

function isDiskFull(error: unknown): boolean {
  return error instanceof Error && "code" in error && fullCodes.test(String(error.code));
}

type Planned = Readonly<{ entry: RecordedDatabase }>;

/** What the folder is to remember once the start is over. */
function entryOf({ known: { place }, recorded, found }: ExaminedDatabase): RecordedDatabase {
  const id = found.kind === "marked" ? found.id : (recorded?.id ?? crypto.randomUUID());
  const own = found.kind === "marked" && "generation" in found ? found.generation : 0;
  return { place, id, generation: Math.max(own, recorded?.generation ?? 0) + 1 };
}

/** Gives a database the identity of its entry. */
async function mark(
  { known, found, entry }: Planned & ExaminedDatabase,
  ledgerUrl: string | undefined,
): Promise<RecordedDatabase> {
  if (known.place === "PostgreSQL") {
    const id = ledgerUrl === undefined || found.kind === "marked" ? entry.id : await markPostgres(ledgerUrl, entry.id);
    return { ...entry, id };
  }
  // A damaged cache is created again when it is opened. A database that is rebuilt has no stored generation.
  const isLeft = known.rebuilt !== undefined && (found.kind === "marked" || found.kind === "damaged");
  if (!isLeft) writeIdentity(known.path, entry, known);
  return entry;
}

function merged<Each extends ExaminedDatabase & Planned>(
  record: DatabaseRecord,
  plan: readonly Each[],
  entryFor: (each: Each) => RecordedDatabase,
): DatabaseRecord {
  const all = new Map(record);
  for (const each of plan) all.set(each.known.name, entryFor(each));
  return all;
}

/** SQLite's words for damage; errors that come from threads have their message, and no code. */
const damagePattern = /database disk image is malformed|file is not a database|SQLITE_(CORRUPT|NOTADB)/;

/** Causes that are looked at. */
const causesMax = 8;

/** An error of a damaged database as one sentence for an operator; other errors as they are. */
export function explainDamage(error: unknown, folder: DataFolder, settings: Settings): unknown {
  const damage = damageIn(error, knownDatabases(folder, settings));
  return damage === undefined ? error : misuse(damage.sentence);
}

/** A log that records reports of damage, for health. */
export type DamageWatch = Readonly<{ log: Log; check: HealthCheck }>;

/** Watches a log. The first damage of each database is also written as an error of its own. */
export function watchDamage(log: Log, folder: DataFolder, settings: Settings): DamageWatch {
  const known = knownDatabases(folder, settings);
  const sentences = new Map<string, string>();
  const note = (fields: LogFields | undefined): void => {
    for (const value of Object.values(fields ?? {})) {
      const damage = damageIn(value, known);
      if (damage === undefined || sentences.has(damage.name)) continue;
      sentences.set(damage.name, damage.sentence);
      log.error(damage.sentence);
    }
  };
  return { log: watched(log, note), check: () => [...sentences.values()] };
}

function watched(log: Log, note: (fields: LogFields | undefined) => void): Log {
  const noting = (write: Log["info"]) => (message: string, fields?: LogFields) => {
    write(message, fields);
    note(fields);
  };
  return {
    ...log,
    warn: noting(log.warn),
    error: noting(log.error),
    with: (fields) => watched(log.with(fields), note),
  };
}

type Damage = Readonly<{ name: string; sentence: string }>;

function damageIn(error: unknown, known: readonly KnownDatabase[]): Damage | undefined {
  const messages = messagesOf(error);
  const reason = messages.map((message) => damagePattern.exec(message)?.[0]).find((found) => found !== undefined);
  if (reason === undefined) return undefined;
  const database = known.find(({ path }) => messages.some((message) => message.includes(path)));
  if (database === undefined)
    return { name: "", sentence: `a database is damaged (${reason}): cairn doctor tells which` };
  const finding = judgeDatabase(database, undefined, { kind: "damaged", reason });
  return { name: database.name, sentence: finding?.sentence ?? reason };
}

function messagesOf(error: unknown): readonly string[] {
  const messages: string[] = [];
  let each: unknown = error;
  while (each instanceof Error && messages.length < causesMax) {
    messages.push("code" in each ? `${each.message} ${each.code}` : each.message);
    each = each.cause;
  }
  return messages;
}
