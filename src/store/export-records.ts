/**
 * Exports that were asked for: what of, where to, and how each ended. The last one is what a status tells.
 * @module
 */
import type { Database } from "bun:sqlite";
import type { Clock } from "../lib/clock.ts";
import { prepare, prepareQuery } from "./sqlite.ts";

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

/** How an export stands. `interrupted`: the process ended before the export did. */
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

type Row = Omit<ExportRecord, "request"> & Readonly<{ request: string }>;

/** Opens the records over the writing connection of their file. */
export function createExportRecords(db: Database, clock: Clock): ExportRecords {
  const begin = prepare(db, "INSERT INTO exports (state, request, started_at) VALUES ('running', ?, ?)");
  const trim = prepare(db, "DELETE FROM exports WHERE number <= (SELECT max(number) FROM exports) - ?");
  const end = prepare(db, "UPDATE exports SET state = ?, ended_at = ?, error = ? WHERE state = 'running'");
  const last = prepareQuery<Row>(
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
