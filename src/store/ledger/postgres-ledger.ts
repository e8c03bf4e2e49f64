/**
 * The ledger on PostgreSQL: the same transactions as on SQLite, for operators with a database server.
 * @module
 */
import type { ReservedSQL } from "bun";
import { Failure } from "../../failures.ts";
import { checkValues, type LedgerDatabase, type Row, type Value, type Work } from "./ledger-database.ts";
import { migrate } from "./ledger-migration.ts";
import {
  createReads,
  createWrites,
  type Fault,
  isLate,
  openedLedger,
  type Reads,
  runWork,
  type Session,
  type Statements,
  withinTime,
} from "./ledger-transactions.ts";

/** Connections for reads; each takes some 5,000 a second. */
const readersMax = 4;

/** SQLSTATEs of a table, or its row type, that another process creates at the same moment. */
const madeByAnother = ["42P07", "42710", "23505"];

/**
 * Opens the ledger in the URL's database and brings it to the newest version.
 *
 * @param url - `postgres://user:password@host:port/database`; its role may make tables there.
 * @throws Error when the server cannot be reached, or a newer program wrote the ledger.
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
    // The URL has a password, so the message does not name it.
    const reason = error instanceof Error ? reasonOf(error) : String(error);
    throw new Error(`cannot open the ledger on PostgreSQL: ${reason}`, { cause: error });
  }
}

/** Texts compare by their bytes, as on SQLite, regardless of the database's collation. */
function inByteOrder(statement: string): string {
  return statement.replace(/\bTEXT\b/g, 'TEXT COLLATE "C"');
}

/** Creates the table that transactions lock. */
async function makeLock(pool: Pool): Promise<void> {
  const connection = await pool.reserve();
  try {
    const command = connection.command(`CREATE TABLE IF NOT EXISTS ${lockTable} (nothing BIGINT)`);
    await withinTime(command, commandTimeoutMs);
  } catch (error) {
    if (!madeByAnother.includes(sqlStateOf(error) ?? "")) throw error;
  } finally {
    connection.release();
  }
}

function reasonOf(error: Error): string {
  return error.cause instanceof Error ? error.cause.message : error.message;
}

/** A pool of connections to one database. */
type Pool = Readonly<{
  /** Returns a connection that belongs to the caller until `release`; waits for a free one or opens one. */
  reserve: () => Promise<PostgresConnection>;
  close: () => Promise<void>;
}>;

/** A connection. `?` marks parameters; integers are bigint. */
type PostgresConnection = Statements &
  Readonly<{
    /** Sends a command without rows. @returns The command tag: `BEGIN`, `COMMIT`, `ROLLBACK`. */
    command: (sql: string) => Promise<string>;
    /** Returns it to the pool. */
    release: () => void;
    /** Closes it, even while it is busy; the pool opens a new one. */
    discard: () => Promise<void>;
  }>;

/** Timeout of a new connection. Seconds. */
const connectSeconds = 10;

/** Settings of every session, in milliseconds. */
const sessionSettings = {
  application_name: "cairn",
  // A confirmed commit is on the disk, regardless of the server's default.
  synchronous_commit: "on",
  statement_timeout: "10000",
  // Shorter than the statement timeout: a lock timeout means that others are busy.
  lock_timeout: "8000",
  // A program that hangs, or a machine that is gone, must not keep its locks.
  idle_in_transaction_session_timeout: "30000",
  client_min_messages: "warning",
} as const;

/**
 * Opens a pool; connects when the first connection is requested.
 *
 * @param url - `postgres://…`
 * @param connectionsMax - At most so many at once; further callers wait.
 */
function openPool(url: string, connectionsMax: number): Pool {
  // Not imported by name: that loads the client, 13 ms of every start, also with a ledger on SQLite.
  const sql = new Bun.SQL(url, {
    max: connectionsMax,
    bigint: true,
    connectionTimeout: connectSeconds,
    connection: sessionSettings,
  });
  return {
    reserve: async () => asConnection(await sql.reserve()),
    close: () => sql.close({ timeout: 0 }),
  };
}

function asConnection(reserved: ReservedSQL): PostgresConnection {
  return {
    all: async (sql, values) => {
      checkValues(values);
      const rows: Record<string, unknown>[] = await reserved.unsafe(numbered(sql), [...values]);
      return rows.map(readRow);
    },
    run: async (sql, values) => {
      checkValues(values);
      const response = await reserved.unsafe(numbered(sql), [...values]);
      return response.affectedRows;
    },
    command: async (sql) => (await reserved.unsafe(sql)).command,
    release: () => reserved.release(),
    discard: () => reserved.close({ timeout: 0 }),
  };
}

/** Statements with `$1` for `?`; the rules have a few hundred. */
const numberedStatements = new Map<string, string>();
const numberedMax = 1_000;

/** Writes `$1, $2, …` for the `?` of a statement, but for those within quotes. */
export function numbered(sql: string): string {
  const known = numberedStatements.get(sql);
  if (known !== undefined) return known;
  let count = 0;
  const written = sql.replace(/'[^']*'|"[^"]*"|\?/g, (part) => {
    if (part !== "?") return part;
    count += 1;
    return `$${count}`;
  });
  if (numberedStatements.size >= numberedMax) numberedStatements.clear();
  numberedStatements.set(sql, written);
  return written;
}

/** Converts 32-bit integers and booleans to bigint. */
function readRow(row: Readonly<Record<string, unknown>>): Row {
  const read: Record<string, Value> = {};
  for (const name in row) read[name] = readValue(row[name]);
  return read;
}

function readValue(value: unknown): Value {
  if (typeof value === "string" || typeof value === "bigint" || value === null) return value;
  if (typeof value === "boolean") return value ? 1n : 0n;
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  throw new Error(`invalid value ${Bun.inspect(value)} in a ledger row: expected a text or an integer`);
}

// Transactions are SERIALIZABLE, and each takes one lock first, so that they run one after another in all processes:
// all of them write the same few accounts (a provider's, the revenue), so concurrent ones would only conflict.
// `LOCK TABLE` takes no snapshot: later reads see the state after the lock.
// Source: PostgreSQL §13.2.3, §13.5, LOCK; docs/decisions/070-ledger.md.

/** The table that is locked; it has no rows. */
const lockTable = "ledger_lock";

/** Longest wait for a command that begins or ends a transaction: above the server's statement timeout. */
const commandTimeoutMs = 15_000;
/** Longest wait for a rollback, or for the end of a snapshot, before the connection is closed. */
const abandonTimeoutMs = 2_000;

/** Creates the session of a pool of one connection. The caller closes the pool. */
function createPostgresSession(pool: Pool): Session {
  let open: PostgresConnection | undefined;
  /** Commands that were not awaited: they are pipelined with the next statement. */
  let sent: Promise<string>[] = [];

  function connection(): PostgresConnection {
    if (open === undefined) throw new Error("the ledger has no open transaction");
    return open;
  }

  function send(sql: string): void {
    const response = connection().command(sql);
    sent.push(response);
    // `commit` awaits it; until then a rejection must not count as unhandled.
    response.catch(() => "reported by commit");
  }

  async function discardOpen(): Promise<void> {
    const lost = open;
    open = undefined;
    if (lost !== undefined) await discard(lost);
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
      await discardOpen();
      if (sharedFaultOf(error) === "again")
        throw new Failure("busy", { reason: "another process holds the ledger" }, error);
      // A connection that was idle may have been closed from the other side: nothing was executed on it yet.
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
        // Closing the connection rolls the transaction back.
        await discardOpen();
      }
    },
    durable: async () => undefined,
    faultOf: sharedFaultOf,
  };
}

/** Creates snapshot reads on a small pool. The caller closes the pool. */
function createPostgresReads(pool: Pool): Reads {
  async function snapshot<Result>(work: Work<Result>, mayBeStale: boolean): Promise<Result> {
    let connection: PostgresConnection | undefined;
    try {
      connection = await pool.reserve();
      const began = connection.command("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
      const [, response] = await Promise.all([began, runWork(connection, work)]);
      await end(connection, "COMMIT");
      return response;
    } catch (error) {
      await undo(connection, error);
      // A connection that was idle may have been closed from the other side; a read can be repeated.
      if (mayBeStale && !isLate(error) && sharedFaultOf(error) === "lost") return await snapshot(work, false);
      throw explained(error);
    }
  }

  return createReads((work) => snapshot(work, true));
}

/** Leaves no open transaction: the connection is rolled back and released, or discarded. */
async function undo(connection: PostgresConnection | undefined, error: unknown): Promise<void> {
  if (connection === undefined) return;
  if (sharedFaultOf(error) === "lost") await discard(connection);
  else await end(connection, "ROLLBACK");
}

/** Ends a snapshot, which has changed nothing: without a response in time its connection is closed. */
async function end(connection: PostgresConnection, command: "COMMIT" | "ROLLBACK"): Promise<void> {
  try {
    await withinTime(connection.command(command), abandonTimeoutMs);
    connection.release();
  } catch {
    await discard(connection);
  }
}

async function discard(connection: PostgresConnection): Promise<void> {
  try {
    await connection.discard();
  } catch {
    // It was lost already, and the pool opens a new one.
  }
}

// Source: PostgreSQL, appendix A (error codes), §13.5 (errors after which a transaction runs again).

/** Conflicts with another transaction: serialization, deadlock, lock timeout. */
const conflictCodes = ["40001", "40P01", "55P03"];
/** A row that another transaction inserted after this one had not found it. */
const uniqueCode = "23505";
/** A write within a read; for a writer, a server that is a replica. */
const readOnlyCode = "25006";
/** Error classes of the environment: connection, resources, limits, operator intervention, system, server. */
const lossPattern = /^(08|25006|53|54|57|58|F0|XX)/;

/** The effect of a statement's error on its transaction. */
function sharedFaultOf(error: unknown): Fault {
  if (isLate(error)) return "lost";
  const state = sqlStateOf(error);
  if (state === undefined) return isClientError(error) ? "lost" : "own";
  if (conflictCodes.includes(state)) return "again";
  if (state === uniqueCode) return "unsure";
  return lossPattern.test(state) ? "lost" : "own";
}

/** Errors of the environment become `database_unavailable`; a defect (a write within a read) stays as it is. */
function explained(error: unknown): unknown {
  const fault = sharedFaultOf(error);
  if (isLate(error) || fault === "own" || fault === "unsure") return error;
  if (sqlStateOf(error) === readOnlyCode) return error;
  return unavailable("the ledger's database cannot be used", error);
}

function unavailable(reason: string, cause: unknown): Failure {
  return new Failure("database_unavailable", { reason }, cause);
}

/** The five-character SQLSTATE of a server error; `undefined` for other errors. */
function sqlStateOf(error: unknown): string | undefined {
  if (!(error instanceof Error && "errno" in error)) return undefined;
  return typeof error.errno === "string" && /^[0-9A-Z]{5}$/.test(error.errno) ? error.errno : undefined;
}

/** Bun's own connection errors: rejected, closed, timed out. */
function isClientError(error: unknown): boolean {
  return error instanceof Error && "code" in error && /^ERR_POSTGRES_/.test(String(error.code));
}

// A ledger has a random id in its own table, so that a data folder recognizes its ledger. Programs that share a
// ledger share the id, which has no generation.

/** The identity of the database. `empty`: no ledger; `unmarked`: a ledger without an id. */
export type PostgresIdentity = Readonly<{ kind: "empty" | "unmarked" }> | Readonly<{ kind: "marked"; id: string }>;

/**
 * Reads the id; writes nothing.
 *
 * @throws Error when the server cannot be reached. The URL has a password, so the message does not name it.
 */
export function readPostgresIdentity(url: string): Promise<PostgresIdentity> {
  return withConnection(url, identityOn);
}

/**
 * Writes an id to a database without one.
 *
 * @param id - A random id. @returns The id of the database: another process may have written it first.
 */
export function markPostgres(url: string, id: string): Promise<string> {
  return withConnection(url, async (connection) => {
    const table = "CREATE TABLE IF NOT EXISTS ledger_identity (one BIGINT PRIMARY KEY, id TEXT NOT NULL)";
    try {
      await connection.command(table);
    } catch (error) {
      if (!madeByAnother.includes(sqlStateOf(error) ?? "")) throw error;
    }
    await connection.run("INSERT INTO ledger_identity VALUES (1, ?) ON CONFLICT DO NOTHING", [id]);
    const found = await identityOn(connection);
    if (found.kind !== "marked") throw new Error("the ledger did not store its id");
    return found.id;
  });
}

async function identityOn(connection: PostgresConnection): Promise<PostgresIdentity> {
  const exists = async (table: string) =>
    (await connection.all(`SELECT to_regclass('${table}')::text AS found`, []))[0]?.["found"] != null;
  if (await exists("ledger_identity")) {
    const [row] = await connection.all("SELECT id FROM ledger_identity", []);
    if (typeof row?.["id"] === "string") return { kind: "marked", id: row["id"] };
  }
  return { kind: (await exists("ledger_version")) ? "unmarked" : "empty" };
}

async function withConnection<Result>(
  url: string,
  work: (connection: PostgresConnection) => Promise<Result>,
): Promise<Result> {
  const pool = openPool(url, 1);
  try {
    const connection = await pool.reserve();
    try {
      return await withinTime(work(connection), commandTimeoutMs);
    } finally {
      connection.release();
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`cannot open the ledger on PostgreSQL: ${reason}`, { cause: error });
  } finally {
    await pool.close();
  }
}
