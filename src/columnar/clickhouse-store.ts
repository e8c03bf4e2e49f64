/**
 * The ClickHouse store: partitions are inserted from their Parquet files over HTTP, and read with SELECT.
 *
 * A load inserts its rows under a new number, counts them, and becomes visible by one insert into `loads`, which also
 * ends the loads that it replaces. A load that ends early leaves rows that no query sees; a later load removes them.
 * Source: docs/reference/columnar.md#clickhouse; https://clickhouse.com/docs/interfaces/http.
 * @module
 */
import { join } from "node:path";
import type { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import { type Fault, failureOf, fault, type HttpRequest, type HttpTimeouts, openHttp } from "../lib/http-client.ts";
import { isJsonArray, isJsonObject, type JsonValue, readJson } from "../lib/json.ts";
import { printable } from "../lib/printable.ts";
import { createSemaphore } from "../lib/semaphore.ts";
import {
  type ClickhousePlace,
  copyRows,
  countRows,
  createTables,
  deleteRows,
  fromRanges,
  insertFile,
  listLoads,
  loadStates,
  recordLoads,
} from "./clickhouse-tables.ts";
import type { ColumnStore } from "./column-store.ts";
import { exportTables } from "./export-tables.ts";
import type { LoadedPartition, PartitionHeights } from "./partition.ts";

/** A ClickHouse server, or a node of a cluster. */
export type ClickhouseOptions = Readonly<{
  /** Base URL of the HTTP interface, without user information. */
  url: string;
  user?: string | undefined;
  password?: string | undefined;
  /** A–Z, a–z, 0–9 and _; created when it does not exist. */
  database?: string;
  /** Tables are replicated and distributed in this cluster; undefined is one node. */
  cluster?: string | undefined;
  /** Maximum time of a query; of a statement or an insert of one file. Milliseconds. */
  queryMs?: number;
  loadMs?: number;
}>;

const queryMsDefault = 60_000;

/** A file of a million rows takes seconds. */
const loadMsDefault = 5 * 60_000;

/** The server ends a query by itself; the client waits this much longer, for its message. */
const waitFactor = 1.2;

/** A page has some hundred rows. Bytes. */
const responseBytesMax = 64 * 2 ** 20;

const messageLengthMax = 300;

/** Loads of one process run one after the other: each removes rows that others left. */
const waitingLoadsMax = 1_000;

/** Numbers of loads are random, and safe integers. */
const loadBits = 52n;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

type Row = readonly (string | null)[];

/** The request of one statement. */
type Statement = Readonly<{
  sql: string;
  /** The body of an insert; the statement is in the URL then. */
  file?: Blob;
  settings?: Readonly<Record<string, string>>;
}>;

/** A load that has rows. */
type Load = PartitionHeights & Readonly<{ load: number; state: number }>;

/** Opens the store. The first load creates the tables; opening connects to nothing. */
export function openClickhouseStore(options: ClickhouseOptions): ColumnStore {
  const { database = "cairn", cluster, queryMs = queryMsDefault, loadMs = loadMsDefault } = options;
  const place: ClickhousePlace = { database, cluster };
  const queries = openClient(options, timeoutsOf(queryMs * waitFactor));
  const loads = openClient(options, timeoutsOf(loadMs));
  const permits = createSemaphore(1, waitingLoadsMax);
  let hasTables = false;

  return {
    kind: "clickhouse",
    load: async (partition, signal) => {
      const permit = permits.take(signal);
      if (permit === undefined) throw failureOf(fault("busy", `${waitingLoadsMax} loads are waiting`));
      const release = await permit;
      try {
        // Queries do not create tables: without them, rows that the index expects here are lost.
        if (!hasTables)
          for (const sql of createTables(place)) await loads.run({ sql, settings: statementSettings(place) }, signal);
        hasTables = true;
        await loadPartition(partition, { place, client: loads, signal });
      } finally {
        release();
      }
    },
    from: (table, ranges) => fromRanges(table, place, ranges),
    select: async (sql, signal) => {
      const settings = { ...selectSettings(queryMs), database };
      return readRows(await queries.run({ sql, settings }, signal), queries.name);
    },
    close: async () => {
      queries.close();
      loads.close();
    },
  };
}

/** @param totalMs - Of a whole call, most of which the server works without sending a byte. */
function timeoutsOf(totalMs: number): HttpTimeouts {
  return { firstByteMs: totalMs, stallMs: totalMs, totalMs };
}

/** Settings of statements that change something. */
function statementSettings({ cluster }: ClickhousePlace): Readonly<Record<string, string>> {
  return cluster === undefined ? {} : { distributed_ddl_output_mode: "none" };
}

const insertSettings = {
  // The number of the load makes an insert idempotent; equal blocks of two loads must both be stored.
  insert_deduplicate: "0",
  max_partitions_per_insert_block: "0",
  async_insert: "0",
  // Of a cluster: the insert ends when all nodes have their rows.
  distributed_foreground_insert: "1",
};

function selectSettings(queryMs: number): Readonly<Record<string, string>> {
  return {
    readonly: "2",
    default_format: "JSONCompact",
    max_execution_time: String(Math.max(1, Math.ceil(queryMs / 1_000))),
    // An error after the first row changes the status, too.
    wait_end_of_query: "1",
    cancel_http_readonly_queries_on_client_close: "1",
    // A larger set of places is compared row by row: the index would test each of them (measured: 40 × slower).
    use_index_for_in_with_subqueries_max_values: "20000",
    // Numbers that JSON would round are text.
    output_format_json_quote_64bit_integers: "1",
    output_format_json_quote_decimals: "1",
    output_format_json_quote_64bit_floats: "1",
    output_format_json_quote_denormals: "1",
  };
}

/** A load in progress. */
type Loading = Readonly<{ place: ClickhousePlace; client: Client; signal: AbortSignal }>;

async function loadPartition(partition: LoadedPartition, { place, client, signal }: Loading): Promise<void> {
  const { folder, files, start, end } = partition;
  const change = (sql: string) => client.run({ sql, settings: insertSettings }, signal);
  const current = { load: newLoad(), start, end };
  await change(recordLoads(place, [{ ...current, state: loadStates.begun }]));
  for (const { table, path, bytes } of files) {
    const file = Bun.file(join(folder, path));
    // A file that is missing has no bytes.
    if (file.size !== bytes) throw new Error(`${path} has ${file.size} bytes, its record says ${bytes}`);
    const sql = insertFile(table, place, current.load);
    await client.run({ sql, file, settings: insertSettings }, signal);
  }
  await checkCounts(partition, current.load, { place, client, signal });
  const replaced = (await readLoads({ place, client, signal })).filter(
    (other) => other.state === loadStates.visible && other.start <= end && other.end >= start,
  );
  const rest = await copyRest(replaced, partition, { place, client, signal });
  await change(
    recordLoads(place, [
      ...[current, ...rest].map((load) => ({ ...load, state: loadStates.visible })),
      ...replaced.map((load) => ({ ...load, state: loadStates.replaced })),
    ]),
  );
  await removeUnseen({ place, client, signal });
}

/** A random number: two loads never share one. */
function newLoad(): number {
  const [random = 0n] = crypto.getRandomValues(new BigUint64Array(1));
  return Number(random >> (64n - loadBits));
}

async function checkCounts(
  partition: LoadedPartition,
  load: number,
  { place, client, signal }: Loading,
): Promise<void> {
  const [counts = []] = readRows(
    await client.run({ sql: countRows(place, load, partition), settings: selectSettings(loadMsDefault) }, signal),
    client.name,
  );
  for (const [index, table] of exportTables.entries()) {
    const expected = partition.files.reduce((sum, file) => sum + (file.table === table ? file.rows : 0), 0);
    if (counts[index] === String(expected)) continue;
    const heights = `heights ${partition.start} to ${partition.end}`;
    throw new Error(`${client.name} has ${counts[index]} rows of ${table} for ${heights}, its files have ${expected}`);
  }
}

/** Keeps the rows of replaced loads that are outside the new heights, under new numbers. */
async function copyRest(
  replaced: readonly Load[],
  { start, end }: PartitionHeights,
  { place, client, signal }: Loading,
): Promise<readonly Omit<Load, "state">[]> {
  const rest = replaced.flatMap((load) => [
    { from: load.load, load: newLoad(), start: load.start, end: Math.min(load.end, start - 1) },
    { from: load.load, load: newLoad(), start: Math.max(load.start, end + 1), end: load.end },
  ]);
  const copies = rest.filter((copy) => copy.start <= copy.end);
  for (const { from, ...copy } of copies) {
    const begun = recordLoads(place, [{ ...copy, state: loadStates.begun }]);
    await client.run({ sql: begun, settings: insertSettings }, signal);
    for (const table of exportTables) {
      const sql = copyRows(table, place, { from, to: copy.load, heights: copy });
      await client.run({ sql, settings: insertSettings }, signal);
    }
  }
  return copies;
}

async function readLoads({ place, client, signal }: Loading): Promise<readonly Load[]> {
  const body = await client.run({ sql: listLoads(place), settings: selectSettings(loadMsDefault) }, signal);
  return readRows(body, client.name).map((row) => {
    const [load = 0, start = 0, end = 0, state = 0] = row.map(Number);
    return { load, start, end, state };
  });
}

/** Removes rows that no query sees: of replaced loads, and of loads that ended early. */
async function removeUnseen({ place, client, signal }: Loading): Promise<void> {
  const settings = { ...statementSettings(place), lightweight_deletes_sync: "2" };
  try {
    for (const unseen of await readLoads({ place, client, signal })) {
      if (unseen.state === loadStates.visible) continue;
      for (const table of exportTables)
        await client.run({ sql: deleteRows(table, place, unseen.load, unseen), settings }, signal);
      const sql = recordLoads(place, [{ ...unseen, state: loadStates.removed }]);
      await client.run({ sql, settings: insertSettings }, signal);
    }
  } catch (error) {
    // The load is complete. The other rows take space until the next load removes it.
    if (signal.aborted) throw error;
  }
}

/** Sends statements to one server. */
type Client = Readonly<{
  /** The server, as errors name it. */
  name: string;
  /** Returns the body: empty, except of a SELECT. */
  run: (statement: Statement, signal: AbortSignal) => Promise<Uint8Array>;
  close: () => void;
}>;

function openClient({ url, user, password }: ClickhouseOptions, timeouts: HttpTimeouts): Client {
  const http = openHttp(timeouts);
  const base = new URL(url);
  const name = `ClickHouse at ${base.origin}${base.pathname.replace(/\/$/, "")}`;
  const headers = {
    "content-type": "application/octet-stream",
    ...(user === undefined ? {} : { "x-clickhouse-user": user }),
    ...(password === undefined ? {} : { "x-clickhouse-key": password }),
  };
  return {
    name,
    run: async (statement, signal) => {
      const request: HttpRequest = { method: "POST", headers, ...bodyOf(statement, base) };
      const response = await http.whole(request, responseBytesMax, signal);
      const problem =
        response.kind === "fault" ? response : problemOf(response.status, response.headers, response.body);
      if (problem !== undefined) throw failureNamed(name, problem, password);
      assert(response.kind === "response", "a fault was thrown");
      const isRead = statement.settings?.["default_format"] !== undefined;
      if (!isRead && response.body.length > 0) throw unexpectedBody(name, response.body);
      return response.body;
    },
    close: http.close,
  };
}

function bodyOf({ sql, file, settings = {} }: Statement, base: URL): Pick<HttpRequest, "url" | "body"> {
  const url = new URL(base);
  for (const [setting, value] of Object.entries(settings)) url.searchParams.set(setting, value);
  if (file === undefined) return { url: url.href, body: encoder.encode(sql) };
  url.searchParams.set("query", sql);
  return { url: url.href, body: file };
}

/** ClickHouse's code of a query that took too long. */
const timeoutExceeded = "159";

function problemOf(status: number, headers: Headers, body: Uint8Array): Fault | undefined {
  const code = headers.get("x-clickhouse-exception-code");
  if (status === 200 && code === null) return undefined;
  const [line = ""] = decoder.decode(body.subarray(0, messageLengthMax * 4)).split("\n", 1);
  const detail = line.trim() === "" ? `status ${status}` : `status ${status}: ${shortened(line)}`;
  return fault(code === timeoutExceeded ? "timeout" : "status", detail, status);
}

function shortened(line: string): string {
  return printable(line.trim().slice(0, messageLengthMax));
}

/** The failure for a fault; a server may repeat the password, which is neither logged nor sent to clients. */
function failureNamed(name: string, problem: Fault, password: string | undefined): Failure {
  const detail = `${name}: ${problem.detail}`;
  const shown = password === undefined || password === "" ? detail : detail.replaceAll(password, "…");
  return failureOf({ ...problem, detail: shown });
}

function unexpectedBody(name: string, body: Uint8Array): Failure {
  const start = shortened(decoder.decode(body.subarray(0, messageLengthMax)));
  return failureOf(fault("malformed", `${name}: not a response of ClickHouse: ${start}`));
}

/** Reads a response of JSONCompact: every row has every column, and no row is missing. */
function readRows(body: Uint8Array, name: string): readonly Row[] {
  const value = readJson(decoder.decode(body));
  const { meta, data, rows } = isJsonObject(value) ? value : {};
  if (!isJsonArray(meta) || !isJsonArray(data) || rows !== data.length) throw unexpectedBody(name, body);
  return data.map((row) => {
    if (!isJsonArray(row) || row.length !== meta.length) throw unexpectedBody(name, body);
    return row.map(textOf);
  });
}

function textOf(value: JsonValue): string | null {
  if (value === null || typeof value === "string") return value;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
