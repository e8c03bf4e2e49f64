/**
 * Database of an operator's requests, except for the block list: staged transactions and exports.
 *
 * Unlike the index, these requests cannot be rebuilt from the chain. They have a separate file, and each write is
 * synced before its call returns. Only one process opens the file.
 * @module
 */
import type { Database } from "bun:sqlite";
import type { Id } from "../arweave/id.ts";
import { type Clock, unixSeconds } from "../lib/clock.ts";
import { closeDatabase, openForWriting, prepare, prepareQuery } from "./sqlite.ts";

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

/** Enough for a few thousand ids and a hundred exports. */
const cacheBytes = 2 ** 20;

/** Opens the file; creates it when absent. Exports that were running when the process ended become `interrupted`. */
export function openAdministration(path: string, clock: Clock): Administration {
  const db = openForWriting(path, { migrations, synchronous: "FULL", cacheBytes });
  return {
    staged: createStaged(db, clock),
    exports: createExportRecords(db, clock),
    close: () => closeDatabase(db),
  };
}

/** A request to find and index one id. */
export type StagingRequest = Readonly<{
  id: Id;
  /** Whether the id is unbundled even when its tags do not declare a bundle. */
  isBundle: boolean;
  /** Whether the filters are skipped. */
  bypassFilter: boolean;
}>;

/** A staged id. */
export type StagedRow = StagingRequest &
  Readonly<{
    /** Unix seconds. */
    firstStagedAt: number;
    lastStagedAt: number;
    /** Failed attempts since the last request for the id. */
    attempts: number;
    /** Why the last attempt failed. */
    reason: string | null;
    /** Grows with each request for the id. */
    revision: number;
    /** Whether writing the item to the index has begun. */
    isFound: boolean;
  }>;

/** The staged ids. */
export type Staged = Readonly<{
  /** Adds a request, or merges it into the existing one and makes that due. Returns false when the list is full. */
  add: (request: StagingRequest) => boolean;
  /** The due rows, longest due first. */
  due: (nowMs: number, limit: number) => readonly StagedRow[];
  /** When the next row is due, Unix milliseconds; undefined when the list is empty. */
  nextDueAt: () => number | undefined;
  /** Records a failed attempt. Has no effect when the id was requested again meanwhile. */
  postpone: (row: StagedRow, dueAtMs: number, reason: string) => void;
  /** Records that the id was found and is about to be written to the index. */
  found: (id: Id) => void;
  /** Removes an id that was indexed or given up. Has no effect when the id was requested again meanwhile. */
  remove: (row: StagedRow) => void;
  find: (id: Id) => StagedRow | undefined;
  count: () => number;
}>;

/** Limit of staged ids: days of work for one node, and a list that is still quick to search. */
export const stagedMax = 10_000;

type StoredTransaction = Omit<StagedRow, "isBundle" | "bypassFilter" | "isFound"> &
  Readonly<{ isBundle: number; bypassFilter: number; isFound: number }>;

/** @param db - The writing connection of the file. */
function createStaged(db: Database, clock: Clock): Staged {
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

/** Range, format and destination of an export. */
export type ExportRequest = Readonly<{
  /** The path as the operator wrote it. */
  outputDir: string;
  /** Its real path. */
  folder: string;
  /** Heights, both inclusive. */
  startHeight: number;
  endHeight: number;
  /** Maximum rows of a file; 0 is no limit. */
  maxFileRows: number;
  /** Number of heights that share files. */
  heightPartitionSize: number;
  skipL1Transactions: boolean;
  skipL1Tags: boolean;
}>;

/** State of an export. `interrupted`: the process ended before the export did. */
type ExportState = "running" | "completed" | "errored" | "interrupted";

/** One export. Times are Unix milliseconds. */
export type ExportRecord = Readonly<{
  state: ExportState;
  request: ExportRequest;
  startedAt: number;
  /** Null while the export runs, and when the process ended before the export. */
  endedAt: number | null;
  error: string | null;
}>;

export type ExportRecords = Readonly<{
  /** Records the start of an export. */
  begin: (request: ExportRequest) => void;
  /** Records the end of the running export; has no effect when none runs. */
  end: (state: Exclude<ExportState, "running">, error: string | null) => void;
  /** The newest export; undefined before the first. */
  last: () => ExportRecord | undefined;
}>;

/** Export records that are stored; older ones are deleted. */
const recordsMax = 100;

type StoredExport = Omit<ExportRecord, "request"> & Readonly<{ request: string }>;

/** @param db - The writing connection of the file. */
function createExportRecords(db: Database, clock: Clock): ExportRecords {
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
