/**
 * The ledger on SQLite: one writer in the process, several processes on a file, group commit.
 *
 * Transactions run one after another on the main thread; those that wait together share one, each within a savepoint,
 * so that one of them can fail alone. A commit goes to the log without waiting; then one `fdatasync` of the log, off
 * the event loop, makes all of them durable, and only then are they answered. That is what `synchronous=FULL` does,
 * but for many at once. SQLite itself synchronises log and file around checkpoints (NORMAL).
 * Source: docs/decisions/070-ledger.md.
 * @module
 */
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import type { LedgerDatabase } from "./database.ts";
import { openedLedger } from "./opened.ts";
import { migrate } from "./schema.ts";
import { type Connection, connectForReading, connectForWriting } from "./sqlite-connection.ts";
import { createSqliteReads } from "./sqlite-reads.ts";
import { createSqliteSession } from "./sqlite-session.ts";
import { createWrites } from "./writes.ts";

/** How the file is opened. */
export type SqliteLedgerOptions = Readonly<{
  /** Made when absent, in a folder that exists; its log and index lie beside it. */
  path: string;
  /** Brings the log to the disk; tests make it slow or fail. */
  sync?: (log: FileHandle) => Promise<void>;
}>;

/**
 * Opens the ledger and brings it to the newest version.
 *
 * @throws Error when the file is no ledger, or a newer program's.
 */
export async function openSqliteLedger(options: SqliteLedgerOptions): Promise<LedgerDatabase> {
  const { path, sync = (log: FileHandle) => log.datasync() } = options;
  const opened: (() => Promise<void> | void)[] = [];
  const closeAll = async () => {
    for (const close of opened.splice(0).reverse()) await close();
  };
  try {
    const writer = closing(connectForWriting(path), opened);
    // The log exists as soon as the file has been read.
    writer.all("SELECT count(*) AS tables FROM sqlite_schema", []);
    await syncFolder(dirname(path));
    const log = await open(`${path}-wal`, "r");
    opened.push(() => log.close());
    const writes = createWrites(createSqliteSession(writer, () => sync(log)));
    await writes.write((tx) => migrate(tx, inSqlite));
    const reads = createSqliteReads(closing(connectForReading(path), opened));
    return openedLedger("sqlite", writes, reads, closeAll);
  } catch (error) {
    await closeAll();
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`cannot open the ledger ${path}: ${reason}`, { cause: error });
  }
}

/**
 * A statement of the schema as SQLite is told it: tables hold to their types, so that a sum which left the integers is
 * refused, and lie in the order of their keys, once instead of twice (measured: half the bytes).
 */
function inSqlite(statement: string): string {
  if (!statement.startsWith("CREATE TABLE")) return statement;
  const stored = statement.includes("PRIMARY KEY") ? "STRICT, WITHOUT ROWID" : "STRICT";
  return `${statement.replace(/\bBIGINT\b/g, "INTEGER")} ${stored}`;
}

function closing(connection: Connection, opened: (() => void)[]): Connection {
  opened.push(connection.close);
  return connection;
}

/** Brings the names of new files to the disk: SQLite does so only when it synchronises by itself. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
