/**
 * The reads of a ledger on PostgreSQL: each sees one state, on a connection of a small pool.
 * @module
 */
import type { Work } from "./database.ts";
import type { Pool, PostgresConnection } from "./postgres-connection.ts";
import { explained, sharedFaultOf } from "./postgres-errors.ts";
import { createReads, type Reads } from "./reads.ts";
import { isLate, runWork } from "./run-work.ts";

/** Creates the read side of a pool that stays the caller's. */
export function createPostgresReads(pool: Pool): Reads {
  async function snapshot<Result>(work: Work<Result>, mayBeStale: boolean): Promise<Result> {
    let connection: PostgresConnection | undefined;
    try {
      connection = await pool.reserve();
      const began = connection.command("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
      const [, response] = await Promise.all([began, runWork(connection, work)]);
      await connection.command("COMMIT");
      connection.release();
      return response;
    } catch (error) {
      await undo(connection, error);
      // A connection that was idle may have been closed from the other side; a read can be asked again.
      if (mayBeStale && !isLate(error) && sharedFaultOf(error) === "lost") return await snapshot(work, false);
      throw explained(error);
    }
  }

  return createReads((work) => snapshot(work, true));
}

/** Leaves no transaction behind: the connection goes back clean, or not at all. */
async function undo(connection: PostgresConnection | undefined, error: unknown): Promise<void> {
  if (connection === undefined) return;
  try {
    if (sharedFaultOf(error) === "lost") await connection.discard();
    else {
      await connection.command("ROLLBACK");
      connection.release();
    }
  } catch {
    // It was lost already, and the pool makes a new one; the caller is told of the first error.
  }
}
