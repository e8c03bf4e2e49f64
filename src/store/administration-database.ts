/**
 * Requests of an operator, except for the block list: transactions to be found and indexed, and exports.
 *
 * The index can be rebuilt from the chain, an operator's requests cannot: they have a file of their own,
 * synced before a call returns. One process opens it.
 * @module
 */
import type { Database } from "bun:sqlite";
import type { Id } from "../arweave/id.ts";
import { type Clock, unixSeconds } from "../lib/clock.ts";
import { closeDatabase, openForWriting, prepare, prepareQuery } from "./sqlite.ts";

/** An operator's requests. */
export type Administration = Readonly<{ staged: Staged; exports: ExportRecords; close: () => void }>;

const migrations = [
  `CREATE TABLE staged (
     id TEXT PRIMARY KEY,
     is_bundle INTEGER NOT NULL,
     bypass_filter INTEGER NOT NULL,
     first_staged_at INTEGER NOT NULL,
     last_staged_at INTEGER NOT NULL,
     revision INTEGER NOT NULL DEFAULT 0,
     attempts INTEGER NOT NULL DEFAULT 0,
     due_at INTEGER NOT NULL,
     reason TEXT
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX staged_due ON staged (due_at);
   CREATE TABLE exports (
     number INTEGER PRIMARY KEY,
     state TEXT NOT NULL CHECK (state IN ('running', 'completed', 'errored', 'interrupted')),
     request TEXT NOT NULL,
     started_at INTEGER NOT NULL,
     ended_at INTEGER,
     error TEXT
   ) STRICT;`,
  "ALTER TABLE staged ADD COLUMN is_found INTEGER NOT NULL DEFAULT 0;",
];

/** A few thousand ids and a hundred exports. */
const cacheBytes = 2 ** 20;

/**
 * Opens the file, creating it when absent. An export that ran when the process ended is interrupted from now
 * on.
 */
export function openAdministration(path: string, clock: Clock): Administration {
  const db = openForWriting(path, { migrations, synchronous: "FULL", cacheBytes });
  return {
    staged: createStaged(db, clock),
    exports: createExportRecords(db, clock),
    close: () => closeDatabase(db),
  };
}

/** What is wanted of an id. */
export type StagingRequest = Readonly<{
  id: Id;
  /** Whether it is to be unbundled, also when its tags do not say that it is a bundle. */
  isBundle: boolean;
  /** Whether the filters are passed over. */
  bypassFilter: boolean;
}>;

/** An id that waits. */
export type StagedRow = StagingRequest &
  Readonly<{
    /** Unix seconds. */
    firstStagedAt: number;
    lastStagedAt: number;
    /** Times it was looked for since it was last asked for. */
    attempts: number;
    /** Why the last attempt failed. */
    reason: string | null;
    /** Grows each time it is asked for. */
    revision: number;
    /** Whether writing it to the index was begun. */
    isFound: boolean;
  }>;

/** The ids that wait. */
export type Staged = Readonly<{
  /** Adds a request, or merges it into the existing one and makes that due. Returns false when too many wait. */
  add: (request: StagingRequest) => boolean;
  /** Those that are due, longest due first. */
  due: (nowMs: number, limit: number) => readonly StagedRow[];
  /** When the next one is due, Unix milliseconds; undefined when none waits. */
  nextDueAt: () => number | undefined;
  /** Notes a failed attempt. Nothing happens when it was asked for again meanwhile. */
  postpone: (row: StagedRow, dueAtMs: number, reason: string) => void;
  /** Notes that the id was found and is about to be written to the index. */
  found: (id: Id) => void;
  /** Takes an id out: it was found, or given up. Nothing happens when it was asked for again meanwhile. */
  remove: (row: StagedRow) => void;
  find: (id: Id) => StagedRow | undefined;
  count: () => number;
}>;

/** Ids that wait at once: days of work for one node, and a list that is still quick to search. */
export const stagedMax = 10_000;

type StoredTransaction = Omit<StagedRow, "isBundle" | "bypassFilter" | "isFound"> &
  Readonly<{ isBundle: number; bypassFilter: number; isFound: number }>;

/** Opens the list over the writing connection of its file. */
export function createStaged(db: Database, clock: Clock): Staged {
  const columns = `id, is_bundle AS isBundle, bypass_filter AS bypassFilter, first_staged_at AS firstStagedAt,
    last_staged_at AS lastStagedAt, attempts, reason, revision, is_found AS isFound`;
  const add = prepare(
    db,
    `INSERT INTO staged (id, is_bundle, bypass_filter, first_staged_at, last_staged_at, due_at)
     VALUES (?1, ?2, ?3, ?4, ?4, 0)
     ON CONFLICT DO UPDATE SET is_bundle = max(is_bundle, excluded.is_bundle),
       bypass_filter = max(bypass_filter, excluded.bypass_filter), last_staged_at = excluded.last_staged_at,
       revision = revision + 1, attempts = 0, due_at = 0`,
  );
  const postpone = prepare(
    db,
    "UPDATE staged SET attempts = attempts + 1, due_at = ?, reason = ? WHERE id = ? AND revision = ?",
  );
  const found = prepare(db, "UPDATE staged SET is_found = 1 WHERE id = ?");
  const remove = prepare(db, "DELETE FROM staged WHERE id = ? AND revision = ?");
  const find = prepareQuery<StoredTransaction>(db, `SELECT ${columns} FROM staged WHERE id = ?`);
  const due = prepareQuery<StoredTransaction>(
    db,
    `SELECT ${columns} FROM staged WHERE due_at <= ? ORDER BY due_at LIMIT ?`,
  );
  const next = prepareQuery<{ at: number | null }>(db, "SELECT min(due_at) AS at FROM staged");
  const count = prepareQuery<{ count: number }>(db, "SELECT count(*) AS count FROM staged");

  return {
    add: ({ id, isBundle, bypassFilter }) => {
      if (find.get(id) === undefined && (count.get()?.count ?? 0) >= stagedMax) return false;
      add.run(id, isBundle ? 1 : 0, bypassFilter ? 1 : 0, unixSeconds(clock));
      return true;
    },
    due: (nowMs, limit) => due.all(nowMs, limit).map(stagedOf),
    nextDueAt: () => next.get()?.at ?? undefined,
    postpone: ({ id, revision }, dueAtMs, reason) => {
      postpone.run(dueAtMs, reason, id, revision);
    },
    found: (id) => {
      found.run(id);
    },
    remove: ({ id, revision }) => {
      remove.run(id, revision);
    },
    find: (id) => {
      const row = find.get(id);
      return row === undefined ? undefined : stagedOf(row);
    },
    count: () => count.get()?.count ?? 0,
  };
}

function stagedOf({ isBundle, bypassFilter, isFound, ...row }: StoredTransaction): StagedRow {
  return { ...row, isBundle: isBundle === 1, bypassFilter: bypassFilter === 1, isFound: isFound === 1 };
}

/** What is exported, and where to. */
export type ExportRequest = Readonly<{
  /** As the operator wrote it. */
  outputDir: string;
  /** Its real path. */
  folder: string;
  /** Heights, both inclusive. */
  startHeight: number;
  endHeight: number;
  /** Rows a file has at most; 0 is no limit. */
  maxFileRows: number;
  /** Heights that share files. */
  heightPartitionSize: number;
  skipL1Transactions: boolean;
  skipL1Tags: boolean;
}>;

/** State of an export. `interrupted`: the process ended before the export did. */
export type ExportState = "running" | "completed" | "errored" | "interrupted";

/** One export. Times are Unix milliseconds. */
export type ExportRecord = Readonly<{
  state: ExportState;
  request: ExportRequest;
  startedAt: number;
  /** Null while it runs, and when nobody saw its end. */
  endedAt: number | null;
  error: string | null;
}>;

/** The exports. */
export type ExportRecords = Readonly<{
  /** Notes that one begins. */
  begin: (request: ExportRequest) => void;
  /** Notes how the one that runs ended; nothing happens when none runs. */
  end: (state: Exclude<ExportState, "running">, error: string | null) => void;
  /** The last one; undefined when there was none yet. */
  last: () => ExportRecord | undefined;
}>;

/** Exports that are remembered. */
const recordsMax = 100;

type StoredExport = Omit<ExportRecord, "request"> & Readonly<{ request: string }>;

/** Opens the records over the writing connection of their file. */
export function createExportRecords(db: Database, clock: Clock): ExportRecords {
  const begin = prepare(db, "INSERT INTO exports (state, request, started_at) VALUES ('running', ?, ?)");
  const trim = prepare(db, "DELETE FROM exports WHERE number <= (SELECT max(number) FROM exports) - ?");
  const end = prepare(db, "UPDATE exports SET state = ?, ended_at = ?, error = ? WHERE state = 'running'");
  const last = prepareQuery<StoredExport>(
    db,
    `SELECT state, request, started_at AS startedAt, ended_at AS endedAt, error FROM exports
     ORDER BY number DESC LIMIT 1`,
  );
  db.run("UPDATE exports SET state = 'interrupted' WHERE state = 'running'");
  return {
    begin: (request) => {
      begin.run(JSON.stringify(request), clock());
      trim.run(recordsMax);
    },
    end: (state, error) => {
      end.run(state, clock(), error);
    },
    last: () => {
      const row = last.get();
      // This file alone writes the column.
      return row === undefined ? undefined : { ...row, request: JSON.parse(row.request) as ExportRequest };
    },
  };
}
