/**
 * The ledger on PostgreSQL: the same transactions as on SQLite, for operators who have a database server.
 *
 * @module
 */
import type { LedgerDatabase } from "./database.ts";
import { openedLedger } from "./opened.ts";
import { openPool, type Pool } from "./postgres-connection.ts";
import { sqlStateOf } from "./postgres-errors.ts";
import { createPostgresReads } from "./postgres-reads.ts";
import { createPostgresSession, lockTable } from "./postgres-session.ts";
import { migrate } from "./schema.ts";
import { createWrites } from "./writes.ts";

/** Connections for reads; each answers some 5,000 a second. */
const readersMax = 4;

/** What the server says when two make the same table, with the type of its rows, at once. */
const madeByAnother = ["42P07", "42710", "23505"];

/**
 * Opens the ledger in the URL's database and brings it to the newest version.
 *
 * @param url - `postgres://user:password@host:port/database`; its role may make tables there.
 * @throws Error when the server cannot be reached, or the ledger is a newer program's.
 */
export async function openPostgresLedger(url: string): Promise<LedgerDatabase> {
  const writer = openPool(url, 1);
  const readers = openPool(url, readersMax);
  const closePools = async () => {
    await Promise.all([writer.close(), readers.close()]);
  };
  try {
    await makeLock(writer);
    const writes = createWrites(createPostgresSession(writer));
    await writes.write((tx) => migrate(tx, inByteOrder));
    const reads = createPostgresReads(readers);
    return openedLedger("postgres", writes, reads, closePools);
  } catch (error) {
    await closePools();
    // The URL holds a password: it is not told.
    const reason = error instanceof Error ? reasonOf(error) : String(error);
    throw new Error(`cannot open the ledger on PostgreSQL: ${reason}`, { cause: error });
  }
}

/** Texts compare by their bytes, as on SQLite, whatever the language of the database. */
function inByteOrder(statement: string): string {
  return statement.replace(/\bTEXT\b/g, 'TEXT COLLATE "C"');
}

/** Makes the table that transactions lock, before there is one that could be locked to do so. */
async function makeLock(pool: Pool): Promise<void> {
  const connection = await pool.reserve();
  try {
    await connection.command(`CREATE TABLE IF NOT EXISTS ${lockTable} (nothing BIGINT)`);
  } catch (error) {
    if (!madeByAnother.includes(sqlStateOf(error) ?? "")) throw error;
  } finally {
    connection.release();
  }
}

function reasonOf(error: Error): string {
  return error.cause instanceof Error ? error.cause.message : error.message;
}
