/**
 * The databases of a data folder at the start of the program: those that are lost refuse the start, new ones are
 * given an id, and the folder remembers all of them.
 *
 * Order of writes: an entry of generation 0 before a database is made, the id and the generation within the database,
 * then the generation of the entry. So a crash leaves a folder that the next start takes as it is, and a database
 * that ever held anything is remembered.
 * @module
 */

import type { Config } from "../config/settings.ts";
import type { Log } from "../lib/log.ts";
import { readIdentity, writeIdentity } from "../store/identity.ts";
import { markPostgres, readPostgresIdentity } from "../store/ledger/postgres-ledger.ts";
import { removeDatabase } from "../store/sqlite.ts";
import { misuse } from "./complaints.ts";
import type { DatabaseName, DataFolder } from "./data-folder.ts";
import {
  type DatabaseRecord,
  type RecordedDatabase,
  readDatabaseRecord,
  writeDatabaseRecord,
} from "./database-record.ts";
import {
  type DatabaseFinding,
  type FoundDatabase,
  judgeDatabase,
  type KnownDatabase,
  knownDatabases,
} from "./known-databases.ts";

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

type Settings = Pick<Config, "LEDGER_URL" | "WEBHOOK_TARGET_SERVERS">;

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
  // A cache that was damaged is made anew when it is opened. Of what is built again no generation is kept.
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
