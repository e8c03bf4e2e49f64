/**
 * DuckDB over one folder: in memory, and locked so that SQL reaches no other file, no network and no setting.
 *
 * The library has 70 MB. It is loaded when the first engine opens, never before.
 * Source: docs/reference/columnar.md#duckdb; https://duckdb.org/docs/stable/operations_manual/securing_duckdb/overview.
 * @module
 */
import type { DuckDBConnection, DuckDBInstance, DuckDBResult } from "@duckdb/node-api";
import { failureOf, fault } from "../lib/http-client.ts";
import { printableLines } from "../lib/printable.ts";
import { createSemaphore } from "../lib/semaphore.ts";
import { isTimeout, withDeadline } from "../lib/stop.ts";
import { loadDuckdb } from "./duckdb-library.ts";

export type DuckdbOptions = Readonly<{
  /** The only folder that SQL may read. Absolute, without symbolic links. */
  folder: string;
  /** Where a binary writes the library that it embeds. */
  libraryFolder: string;
  memoryBytesMax: number;
  threads: number;
  /** Folder for what exceeds the memory; without one, a query that exceeds it fails. */
  spillFolder?: string;
}>;

/** A value of a row: of a type of the package `@duckdb/node-api`, whose `String` is DuckDB's text. */
export type DuckdbValue = unknown;

/** A running statement: columns, and rows that are read on demand. */
export type DuckdbRows = Readonly<{
  columns: readonly string[];
  /** @returns The next rows, some 2,000; none at the end. */
  next: () => Promise<readonly (readonly DuckdbValue[])[]>;
}>;

/** A DuckDB engine. Calls throw a `Failure` that names DuckDB, or the reason of the signal. */
export type Duckdb = Readonly<{
  /**
   * Runs a statement on a connection of its own, and passes its rows to `read`.
   *
   * @param timeoutMs - Includes the wait for a connection, and `read`.
   */
  query: <Result>(sql: string, limits: QueryLimits, read: (rows: DuckdbRows) => Promise<Result>) => Promise<Result>;
  /**
   * Parses and binds one statement; several statements are `other`. Binding EXPORT DATABASE creates its folder, so the
   * caller excludes statements by their first word before.
   */
  kindOf: (sql: string, limits: QueryLimits) => Promise<StatementKind>;
  close: () => void;
}>;

export type QueryLimits = Readonly<{ signal: AbortSignal; timeoutMs: number }>;

/** The kind of a statement; the caller permits no other kinds than the first two. */
export type StatementKind = "select" | "explain" | "other";

/** Statements at once. Each takes its share of threads and memory. */
const connectionsMax = 4;
const waitingMax = 256;

/** A statement that does not end by this time after it is interrupted is abandoned with its connection. */
const graceMs = 5_000;

/** An interruption before the execution begins has no effect, so it is repeated. */
const interruptEveryMs = 50;

const messageLengthMax = 500;

/** Opens an engine. @throws Failure when the library does not load or a limit is not accepted. */
export async function openDuckdb(options: DuckdbOptions): Promise<Duckdb> {
  const { folder, libraryFolder, memoryBytesMax, threads, spillFolder } = options;
  const { DuckDBInstance, StatementType } = await named(() => loadDuckdb(libraryFolder));
  const instance = await named(() =>
    DuckDBInstance.create(":memory:", {
      threads: String(threads),
      memory_limit: `${Math.ceil(memoryBytesMax / 2 ** 20)}MiB`,
      temp_directory: spillFolder ?? "",
      autoinstall_known_extensions: "false",
      autoload_known_extensions: "false",
      allow_community_extensions: "false",
    }),
  );
  const pool = createPool(instance);
  await pool.run({ signal: new AbortController().signal, timeoutMs: graceMs }, (connection) =>
    named(async () => {
      // Files never change under one name, and a query would read the metadata of each of them.
      await connection.run("SET GLOBAL parquet_metadata_cache = true");
      const folders = [...new Set([folder, literalPath(folder)])].map(quoted);
      await connection.run(`SET GLOBAL allowed_directories = [${folders.join(", ")}]`);
      await connection.run("SET GLOBAL enable_external_access = false");
      await connection.run("SET GLOBAL lock_configuration = true");
    }),
  );
  const statementKind = (type: number): StatementKind => {
    if (type === StatementType.SELECT) return "select";
    return type === StatementType.EXPLAIN ? "explain" : "other";
  };
  return {
    query: (sql, limits, read) =>
      pool.run(limits, async (connection) => {
        const result = await named(() => connection.stream(sql));
        return read({ columns: result.deduplicatedColumnNames(), next: () => named(() => nextRows(result)) });
      }),
    kindOf: (sql, limits) =>
      pool.run(limits, (connection) =>
        named(async () => {
          const extracted = await connection.extractStatements(sql);
          return extracted.count === 1 ? statementKind((await extracted.prepare(0)).statementType) : "other";
        }),
      ),
    close: () => {
      pool.close();
      instance.closeSync();
    },
  };
}

type Work<Result> = (connection: DuckDBConnection) => Promise<Result>;

/** Connections of an engine, each for one statement at a time. */
function createPool(instance: DuckDBInstance) {
  const idle: DuckDBConnection[] = [];
  const permits = createSemaphore(connectionsMax, waitingMax);
  let isOpen = true;

  /** Runs work with a connection, which is interrupted when the signal is aborted. */
  async function runWith<Result>(signal: AbortSignal, work: Work<Result>): Promise<Result> {
    const connection = idle.pop() ?? (await instance.connect());
    const abandoned = Promise.withResolvers<never>();
    let interrupts: Timer | undefined;
    let giveUp: Timer | undefined;
    const stop = () => {
      connection.interrupt();
      interrupts = setInterval(() => connection.interrupt(), interruptEveryMs);
      giveUp = setTimeout(() => abandoned.reject(signal.reason), graceMs);
    };
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    try {
      return await Promise.race([work(connection), abandoned.promise]);
    } finally {
      signal.removeEventListener("abort", stop);
      clearInterval(interrupts);
      clearTimeout(giveUp);
      if (isOpen && !signal.aborted) idle.push(connection);
      else connection.closeSync();
    }
  }

  async function withPermit<Result>(signal: AbortSignal, work: Work<Result>): Promise<Result> {
    const permit = permits.take(signal);
    if (permit === undefined) throw failureOf(fault("busy", `DuckDB: ${waitingMax} queries are waiting`));
    const release = await permit;
    try {
      return await runWith(signal, work);
    } finally {
      release();
    }
  }

  return {
    run: <Result>({ signal, timeoutMs }: QueryLimits, work: Work<Result>): Promise<Result> =>
      withDeadline(signal, timeoutMs, async (either) => {
        try {
          return await withPermit(either, work);
        } catch (error) {
          signal.throwIfAborted();
          if (isTimeout(either.reason)) throw failureOf(fault("timeout", `DuckDB: no result after ${timeoutMs} ms`));
          throw error;
        }
      }),
    close: () => {
      isOpen = false;
      for (const connection of idle.splice(0)) connection.closeSync();
    },
  };
}

async function nextRows(result: DuckDBResult): Promise<readonly (readonly DuckdbValue[])[]> {
  const chunk = await result.fetchChunk();
  return chunk === null || chunk.rowCount === 0 ? [] : chunk.getRows();
}

/** Runs a call of DuckDB; its errors become failures that name DuckDB. */
async function named<Result>(call: () => Promise<Result>): Promise<Result> {
  try {
    return await call();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw failureOf(fault("status", `DuckDB: ${printableLines(message.trim()).slice(0, messageLengthMax)}`));
  }
}

/** A text of SQL. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** A path without characters that DuckDB would expand. */
export function literalPath(path: string): string {
  return path.replaceAll(/[*?[]/g, "[$&]");
}
