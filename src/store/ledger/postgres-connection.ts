/**
 * Connections to a ledger on PostgreSQL: their settings, `?` in statements, and rows in which integers are bigint.
 *
 * @module
 */
import { type ReservedSQL, SQL } from "bun";
import { checkValues } from "./check-values.ts";
import type { Row, Value } from "./database.ts";
import type { Statements } from "./run-work.ts";

/** A pool of connections to one database. */
export type Pool = Readonly<{
  /** A connection that is the caller's until `release`; waits for one, or makes one. */
  reserve: () => Promise<PostgresConnection>;
  close: () => Promise<void>;
}>;

/** A connection. */
export type PostgresConnection = Statements &
  Readonly<{
    /** Sends a command that answers nothing. @returns What it says it did: `BEGIN`, `COMMIT`, `ROLLBACK`. */
    command: (sql: string) => Promise<string>;
    /** Gives it back. */
    release: () => void;
    /** Ends it, whatever it is doing; its place is taken by a new one. */
    discard: () => Promise<void>;
  }>;

/** How long a connection may take to be made. Seconds. */
const connectSeconds = 10;

/** What the server holds every session to. Milliseconds. */
const sessionSettings = {
  application_name: "cairn",
  // A commit that is answered is on the disk, whatever the server's own default.
  synchronous_commit: "on",
  statement_timeout: "10000",
  // Shorter, so that it is told apart: a lock that is not to be had says that others are busy.
  lock_timeout: "8000",
  // A program that hangs, or a machine that is gone, must not keep its locks.
  idle_in_transaction_session_timeout: "30000",
  client_min_messages: "warning",
} as const;

/**
 * Opens a pool; connects when the first connection is asked for.
 *
 * @param url - `postgres://…`
 * @param connectionsMax - At most so many at once; whoever comes then waits.
 */
export function openPool(url: string, connectionsMax: number): Pool {
  const sql = new SQL(url, {
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

/** 32-bit integers and truths come as numbers and booleans; a ledger knows bigint alone. */
function readRow(row: Readonly<Record<string, unknown>>): Row {
  const read: Record<string, Value> = {};
  for (const name in row) read[name] = readValue(row[name]);
  return read;
}

function readValue(value: unknown): Value {
  if (typeof value === "string" || typeof value === "bigint" || value === null) return value;
  if (typeof value === "boolean") return value ? 1n : 0n;
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  throw new Error(`a ledger has texts and whole numbers, not ${Bun.inspect(value)}`);
}
