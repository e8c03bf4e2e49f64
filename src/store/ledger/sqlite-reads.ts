/**
 * The reads of a ledger file: one snapshot after another, beside the writer.
 * @module
 */
import type { Work } from "./database.ts";
import { createReads, type Reads } from "./reads.ts";
import { runWork } from "./run-work.ts";
import type { Connection } from "./sqlite-connection.ts";
import { explained } from "./sqlite-errors.ts";

/** Creates the read side of a connection that stays the caller's. */
export function createSqliteReads(connection: Connection): Reads {
  let last: Promise<unknown> = Promise.resolve();

  async function snapshot<Result>(work: Work<Result>): Promise<Result> {
    try {
      connection.run("BEGIN", []);
      return await runWork(connection, work);
    } catch (error) {
      throw explained(error);
    } finally {
      if (connection.inTransaction()) connection.run("ROLLBACK", []);
    }
  }

  return createReads((work) => {
    const mine = last.then(() => snapshot(work));
    // The next one comes after this one, however it ends; its own caller hears of a failure.
    last = mine.catch(() => "ended");
    return mine;
  });
}
