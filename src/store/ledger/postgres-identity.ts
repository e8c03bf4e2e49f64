/**
 * The identity of a ledger on PostgreSQL: a random id in a table of its own, so that a data folder knows its ledger.
 *
 * Several programs may share a ledger: the id is the same for all of them, and there is no generation.
 * @module
 */
import { openPool, type PostgresConnection } from "./postgres-connection.ts";
import { sqlStateOf } from "./postgres-errors.ts";

/** What was found in the database of a URL. `empty`: no ledger; `unmarked`: a ledger without an id. */
export type PostgresIdentity = Readonly<{ kind: "empty" | "unmarked" }> | Readonly<{ kind: "marked"; id: string }>;

/** What the server says of a table that another process makes at the same moment. */
const madeByAnother = ["42P07", "42710", "23505"];

/**
 * Reads the id; writes nothing.
 *
 * @throws Error when the server cannot be reached. The URL holds a password: the message does not name it.
 */
export function readPostgresIdentity(url: string): Promise<PostgresIdentity> {
  return withConnection(url, identityOn);
}

/**
 * Gives the database an id where it has none.
 *
 * @param id - A random one. @returns The id that the database has now: another process may have been first.
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
    if (found.kind !== "marked") throw new Error("the ledger did not keep its id");
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
      return await work(connection);
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
