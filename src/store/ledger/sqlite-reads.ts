/**
 * The reads of a ledger file: one snapshot after another, beside the writer.
 * @module
 */
import { Failure } from "../../failures.ts";
import type { Work } from "./database.ts";
import { waitingMax } from "./limits.ts";
import type { Reads } from "./reads.ts";
import { runWork } from "./run-work.ts";
import type { Connection } from "./sqlite-connection.ts";
import { explained } from "./sqlite-errors.ts";

/** Creates the read side of a connection that stays the caller's. */
export function createReads(connection: Connection): Reads {
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  let finished = false;

  async function snapshot<Answer>(work: Work<Answer>): Promise<Answer> {
    try {
      connection.run("BEGIN", []);
      return await runWork(connection, work);
    } catch (error) {
      throw explained(error);
    } finally {
      waiting -= 1;
      if (connection.inTransaction()) connection.run("ROLLBACK", []);
    }
  }

  return {
    read: <Answer>(work: Work<Answer>): Promise<Answer> => {
      if (finished)
        return Promise.reject(new Failure("database_unavailable", { reason: "the ledger is closed" }));
      if (waiting >= waitingMax)
        return Promise.reject(new Failure("busy", { reason: "too many ledger reads wait" }));
      waiting += 1;
      const mine = last.then(() => snapshot(work));
      // The next one comes after this one, however it ends; its own caller hears of a failure.
      last = mine.catch(() => "ended");
      return mine;
    },
    finish: async () => {
      finished = true;
      await last;
    },
  };
}
