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
import { type DatabaseIdentity, type DatabaseState, readIdentity, writeIdentity } from "../store/database-identity.ts";
import { replaceFile } from "../store/durable-file.ts";
import { markPostgres, type PostgresIdentity, readPostgresIdentity } from "../store/ledger/postgres-ledger.ts";
import { pageBytes, removeDatabase } from "../store/sqlite.ts";
import { misuse } from "./complaints.ts";
import { type DatabaseName, type DataFolder, databaseNames } from "./data-folder.ts";

/** A database in the record of a folder. */
export type RecordedDatabase = DatabaseIdentity &
  Readonly<{
    /** `file`: in the folder; `PostgreSQL`: the ledger of LEDGER_URL. */
    place: DatabasePlace;
  }>;

/** Where a database is located. */
export type DatabasePlace = "file" | "PostgreSQL";

/** The record of a folder: its databases by name. */
export type DatabaseRecord = ReadonlyMap<DatabaseName, RecordedDatabase>;

/** Reads the record; undefined if it is absent or invalid. @throws Error when the file cannot be read. */
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

/** Writes the record durably and atomically. */
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

/** A database of a folder, according to the settings. */
export type KnownDatabase = Readonly<{
  name: DatabaseName;
  place: DatabasePlace;
  /** The file, also when the database is elsewhere. */
  path: string;
  /** Content that is lost with the database. */
  holds: string;
  /** How the program rebuilds the database; undefined if it cannot. */
  rebuilt: string | undefined;
  /** Page size of a new file, bytes; undefined: the default of SQLite. */
  pageBytes: number | undefined;
  /** Whether this start opens it. */
  isUsed: boolean;
}>;

/**
 * A fault of a database.
 *
 * moved  the settings name another place of the ledger than at the last start
 * older  an older copy of the same database: its generation is before that of the last start
 */
export type DatabaseFault = "missing" | "emptied" | "foreign" | "damaged" | "moved" | "older";

/** A fault, its consequence, and a sentence for the operator. */
export type DatabaseFinding = Readonly<{
  name: DatabaseName;
  fault: DatabaseFault;
  /** `rejected`: the program does not start; `rebuilt`: it starts and builds the database again; `noted`: it starts. */
  outcome: "rejected" | "rebuilt" | "noted";
  /** The file, or `PostgreSQL`. */
  subject: string;
  /** The fault and its remedy. */
  sentence: string;
}>;

/** The state of a database at its expected place. */
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
 * Compares a found database with the record of its folder.
 *
 * @param recorded - Undefined: the database is new to the folder and is accepted.
 */
export function compareDatabase(
  known: KnownDatabase,
  recorded: RecordedDatabase | undefined,
  found: FoundDatabase,
): DatabaseFinding | undefined {
  const fault = faultOf(known, recorded, found);
  if (fault === undefined) return undefined;
  const isRebuilt = known.rebuilt !== undefined && !(known.name === "index" && fault === "damaged");
  const outcome = fault === "older" ? "noted" : isRebuilt ? "rebuilt" : "rejected";
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
  // The entry precedes the database: the first start may have ended between the two writes.
  if (recorded.generation === 0) return undefined;
  if (found.kind === "absent") return "missing";
  if (found.kind === "empty") return "emptied";
  // A damaged cache was created again without an id.
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
  const anew = `or start without ${known.holds}: ${accept}`;
  if (rebuilt !== undefined && fault !== "damaged") {
    if (fault === "foreign")
      return `${file} belongs to another data folder: it is used as it is; to build it again: ${accept}`;
    return `${file} is ${fault === "missing" ? "missing" : "empty"}: ${rebuilt}`;
  }
  switch (fault) {
    case "damaged":
      assert(found.kind === "damaged", "a damaged file has a reason");
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
      return `${file} is an older copy than the one of the last start: later changes are lost`;
  }
}

function damagedAdvice(known: KnownDatabase, accept: string): string {
  if (known.name === "index")
    return `it can be built again from the chain, from START_HEIGHT on: ${accept} renames it, then start again`;
  if (known.rebuilt !== undefined) return `the next start creates it again, and ${known.rebuilt}`;
  return `restore it from a backup, it cannot be built again; or start without ${known.holds}: ${accept}`;
}

function movedSentence({ path }: KnownDatabase, recorded: RecordedDatabase | undefined, accept: string): string {
  const [here, there] =
    recorded?.place === "PostgreSQL"
      ? ["on PostgreSQL, but LEDGER_URL is not set: set it", path]
      : [`in ${path}, but LEDGER_URL names another one: unset it`, "the one of LEDGER_URL"];
  return `the ledger of this data folder is ${here}, or leave its credits behind and use ${there}: ${accept}`;
}

/** The name of a database in messages. */
export function shortName({ place, path }: KnownDatabase): string {
  return place === "file" ? basename(path) : "the ledger on PostgreSQL";
}

/** A database, its entry in the record, its state, and the finding of the comparison. */
export type ExaminedDatabase = Readonly<{
  known: KnownDatabase;
  recorded: RecordedDatabase | undefined;
  found: FoundDatabase;
  finding: DatabaseFinding | undefined;
}>;

/** The result of {@link examineDatabases}. */
export type Examination = Readonly<{
  databases: readonly ExaminedDatabase[];
  /** The record of the folder. A lost record is reconstructed from the databases. */
  record: DatabaseRecord;
  /** Whether the record was lost. Then an absent database that every start creates counts as lost. */
  isRecordLost: boolean;
}>;

/** Databases that every start creates. */
const alwaysThere: readonly DatabaseName[] = ["ledger", "moderation", "administration"];

/**
 * Examines databases. Writes nothing.
 *
 * @param isWanted - By default those that the settings use.
 * @throws Error when a file cannot be opened, or the server cannot be reached.
 */
export async function examineDatabases(
  folder: DataFolder,
  settings: Settings,
  isWanted = ({ isUsed }: KnownDatabase): boolean => isUsed,
): Promise<Examination> {
  const used = knownDatabases(folder, settings).filter(isWanted);
  const found: (readonly [KnownDatabase, FoundDatabase])[] = [];
  for (const known of used) found.push([known, await find(known, settings.LEDGER_URL)]);
  const written = readDatabaseRecord(folder.databases);
  const isRecordLost = written === undefined && found.some(([, { kind }]) => kind === "marked");
  const record = written ?? (isRecordLost ? recordFrom(found) : new Map());
  const databases = found.map(([known, state]) => {
    const recorded = record.get(known.name);
    return { known, recorded, found: state, finding: compareDatabase(known, recorded, state) };
  });
  return { databases, record, isRecordLost };
}

function find(known: KnownDatabase, ledgerUrl: string | undefined): FoundDatabase | Promise<FoundDatabase> {
  if (known.place === "file" || ledgerUrl === undefined) return readIdentity(known.path);
  return readPostgresIdentity(ledgerUrl);
}

/** Reconstructs a record from databases with ids. */
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
 * Examines the databases of a folder before any of them is opened, and marks those that this start uses.
 *
 * @throws Misuse when a database that cannot be rebuilt is lost; errors of the system.
 */
export async function claimDatabases(folder: DataFolder, settings: Settings, log: Log): Promise<void> {
  const { databases, record, isRecordLost } = await examineDatabases(folder, settings);
  const findings = databases.flatMap(({ finding }) => (finding === undefined ? [] : [finding]));
  const rejected = findings.filter(({ outcome }) => outcome === "rejected");
  if (rejected.length > 0) throw misuse(rejected.map(({ sentence }) => sentence).join("\n"));
  if (isRecordLost) log.warn(`${folder.databases} is missing: it is written again from the ids in the databases`);
  for (const { sentence } of findings) log.warn(sentence);
  // With its write-ahead log, a damaged cache may seem intact until a page outside the log is read.
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
    // A full disk does not prevent the start on a known folder: only the generation is not incremented.
    if (isNew || isRecordLost || !isDiskFull(error)) throw error;
    log.warn("the disk is full: the generation of the databases was not written", { error });
  }
}

const fullCodes = /^(ENOSPC|EDQUOT|SQLITE_FULL)$/;

function isDiskFull(error: unknown): boolean {
  return error instanceof Error && "code" in error && fullCodes.test(String(error.code));
}

type Planned = Readonly<{ entry: RecordedDatabase }>;

/** The entry of a database after a successful start. */
function entryOf({ known: { place }, recorded, found }: ExaminedDatabase): RecordedDatabase {
  const id = found.kind === "marked" ? found.id : (recorded?.id ?? crypto.randomUUID());
  const own = found.kind === "marked" && "generation" in found ? found.generation : 0;
  return { place, id, generation: Math.max(own, recorded?.generation ?? 0) + 1 };
}

/** Writes the identity of the entry into the database. */
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

/** Messages and codes of SQLite for damage. Errors from threads have only the message. */
const damagePattern = /database disk image is malformed|file is not a database|SQLITE_(CORRUPT|NOTADB)/;

/** Most causes of an error that are searched. */
const causesMax = 8;

/** Replaces the error of a damaged database by a sentence for the operator; returns other errors unchanged. */
export function explainDamage(error: unknown, folder: DataFolder, settings: Settings): unknown {
  const damage = damageIn(error, knownDatabases(folder, settings));
  return damage === undefined ? error : misuse(damage.sentence);
}

/** A log that recognizes reports of damage, and the health check of them. */
export type DamageWatch = Readonly<{ log: Log; check: HealthCheck }>;

/** Wraps a log. The first damage of each database is also logged as a separate error. */
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
    return { name: "", sentence: `a database is damaged (${reason}): cairn doctor reports which` };
  const finding = compareDatabase(database, undefined, { kind: "damaged", reason });
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
