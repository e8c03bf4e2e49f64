/**
 * What an operator has asked for beside refusals: transactions to be found and indexed, and exports.
 *
 * The index can be rebuilt from the chain, an operator's wishes cannot: this file is of its own, and synced
 * before a call returns. One process holds it.
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { createExportRecords, type ExportRecords } from "./export-records.ts";
import { closeDatabase, openForWriting } from "./sqlite.ts";
import { createStaged, type Staged } from "./staged-rows.ts";

/** An operator's wishes. */
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
