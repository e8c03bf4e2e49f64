/**
 * The writing connection of a ledger on PostgreSQL.
 *
 * Transactions are SERIALIZABLE, and each takes one lock first, so that they run one after another in all processes:
 * all of them write the same few accounts (a provider's, the revenue), so that side by side they would but undo
 * each other. `LOCK TABLE` is the way to it because it takes no snapshot: what is read later is as it is then.
 * Source: PostgreSQL §13.2.3, §13.5, LOCK; docs/decisions/070-ledger.md.
 * @module
 */
import { Failure } from "../../failures.ts";
import type { Pool, PostgresConnection } from "./postgres-connection.ts";
import { sharedFaultOf, unavailable } from "./postgres-errors.ts";
import { withinTime } from "./run-work.ts";
import type { Session } from "./session.ts";

/** The table that is locked; it has no rows. */
export const lockTable = "ledger_lock";

/** Longest wait for a command that only begins or ends something: above what the server lets a statement take. */
const commandTimeoutMs = 15_000;
/** Longest wait for a transaction to be undone before its connection is thrown away. */
const abandonTimeoutMs = 2_000;

/** Creates the session of a pool of one connection, which stays the caller's. */
export function createPostgresSession(pool: Pool): Session {
  let open: PostgresConnection | undefined;
  /** Commands that nothing waited for: they go with the statement that follows, in one message. */
  let sent: Promise<string>[] = [];

  function connection(): PostgresConnection {
    if (open === undefined) throw new Error("the ledger has no open transaction");
    return open;
  }

  function send(sql: string): void {
    const response = connection().command(sql);
    sent.push(response);
    // Whoever commits hears of it; until then it is nobody's.
    response.catch(() => "told by commit");
  }

  async function discard(): Promise<void> {
    const lost = open;
    open = undefined;
    try {
      await lost?.discard();
    } catch {
      // It was lost before: the next transaction makes a new one.
    }
  }

  async function beginOnce(): Promise<void> {
    open ??= await pool.reserve();
    sent = [];
    const began = open.command("BEGIN ISOLATION LEVEL SERIALIZABLE");
    const locked = open.command(`LOCK TABLE ${lockTable} IN EXCLUSIVE MODE`);
    await withinTime(Promise.all([began, locked]), commandTimeoutMs);
  }

  async function begin(): Promise<void> {
    const isOld = open !== undefined;
    try {
      await beginOnce();
    } catch (error) {
      await discard();
      if (sharedFaultOf(error) === "again")
        throw new Failure("busy", { reason: "another process holds the ledger" }, error);
      // A connection that was idle may have been closed from the other side: nothing has been asked of it yet.
      if (!isOld) throw unavailable("the ledger's database cannot be reached", error);
      await begin();
    }
  }

  return {
    statements: {
      all: (sql, values) => connection().all(sql, values),
      run: (sql, values) => connection().run(sql, values),
    },
    begin,
    mark: () => send("SAVEPOINT work"),
    keep: () => send("RELEASE SAVEPOINT work"),
    undo: () => {
      send("ROLLBACK TO SAVEPOINT work");
      send("RELEASE SAVEPOINT work");
    },
    commit: async () => {
      const ending = connection().command("COMMIT");
      const responses = await withinTime(Promise.all([ending, ...sent]), commandTimeoutMs);
      // A transaction that has failed is rolled back by COMMIT, without an error.
      if (responses[0] !== "COMMIT") throw unavailable("the ledger could not commit", responses[0]);
    },
    abandon: async () => {
      try {
        await withinTime(connection().command("ROLLBACK"), abandonTimeoutMs);
      } catch {
        // Whatever was the matter with it, its end undoes the transaction.
        await discard();
      }
    },
    durable: async () => undefined,
    faultOf: sharedFaultOf,
  };
}
