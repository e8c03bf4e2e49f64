/**
 * The writing connection of a ledger file.
 *
 * A commit goes to the log without waiting for the disk; `durable` waits for all that was committed before it.
 * @module
 */
import { Failure } from "../../failures.ts";
import { createGroupSync } from "./group-sync.ts";
import type { Session } from "./session.ts";
import type { Connection } from "./sqlite-connection.ts";
import { isBusy, sharedFaultOf } from "./sqlite-errors.ts";

/** How long the lock of another process is waited for. */
const lockTimeoutMs = 10_000;
/** First and longest pause between two tries to take it: short, for a busy process leaves it for moments only. */
const lockPauseMs = { first: 1, longest: 4 } as const;

/**
 * Creates the session of a connection that stays the caller's.
 *
 * @param sync - Brings the log to the disk, off the event loop.
 */
export function createSqliteSession(connection: Connection, sync: () => Promise<void>): Session {
  const run = (sql: string) => {
    connection.run(sql, []);
  };
  return {
    statements: connection,
    begin: () => begin(connection),
    mark: () => run("SAVEPOINT work"),
    keep: () => run("RELEASE work"),
    undo: () => {
      run("ROLLBACK TO work");
      run("RELEASE work");
    },
    commit: async () => run("COMMIT"),
    abandon: async () => {
      try {
        if (connection.inTransaction()) run("ROLLBACK");
      } catch {
        // A file in which nothing can be undone cannot be begun with either, and that is told to whoever writes next.
      }
    },
    durable: createGroupSync(sync),
    faultOf: sharedFaultOf,
  };
}

/** Takes the lock for writing without holding up the event loop. */
async function begin(connection: Connection): Promise<void> {
  const deadline = performance.now() + lockTimeoutMs;
  let pauseMs: number = lockPauseMs.first;
  while (true) {
    try {
      connection.run("BEGIN IMMEDIATE", []);
      return;
    } catch (error) {
      if (!isBusy(error)) throw new Failure("database_unavailable", { reason: "cannot begin" }, error);
      if (performance.now() > deadline)
        throw new Failure("busy", { reason: "another process holds the ledger" }, error);
    }
    await Bun.sleep(pauseMs);
    pauseMs = Math.min(2 * pauseMs, lockPauseMs.longest);
  }
}
