/**
 * ClickHouse's HTTP interface over chdb, the engine in a process: `bun clickhouse-server.ts <folder> <port> [password]`
 * prints the port; 0 is a free one. The user is `default`. Statements run one after the other.
 *
 * The engine reads Parquet of an `input(...)` from a file only, so a body is written to a file before its statement
 * runs, and a body that was cut is rejected before.
 * Source: https://clickhouse.com/docs/interfaces/http.
 * @module
 */
import { mkdirSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { Session } from "chdb";

const [folder = "", port = "0", password = ""] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const engine = new Session(join(folder, "data"));

/** Parameters of a URL that are not settings. */
const parameters = new Set(["query", "database", "default_format"]);

/** Settings of the HTTP interface, which the engine alone does not have. */
const httpSettings = new Set(["wait_end_of_query", "cancel_http_readonly_queries_on_client_close"]);

type Settings = readonly (readonly [name: string, value: string])[];

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: Number(port),
  idleTimeout: 0,
  maxRequestBodySize: Number.MAX_SAFE_INTEGER,
  fetch: async (request) => {
    try {
      return new Response(await respond(request));
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const code = Number(/Code: (\d+)/.exec(message)?.[1] ?? 1002);
      const headers = { "x-clickhouse-exception-code": String(code) };
      return new Response(`${message} (version 26.7.2.1)\n`, { status: statusOf(code), headers });
    }
  },
});
process.stdout.write(`${server.port}\n`);
// Its input ends with the test that started it.
process.stdin.on("end", () => process.exit(0)).resume();

/** Source: github.com/ClickHouse/ClickHouse, src/Server/HTTP/exceptionCodeToHTTPStatus.cpp. */
function statusOf(code: number): number {
  if ([36, 44, 46, 47, 53, 62].includes(code)) return 400;
  if (code === 516) return 403;
  if ([60, 81].includes(code)) return 404;
  return code === 159 ? 408 : 500;
}

async function respond(request: Request): Promise<Uint8Array<ArrayBuffer>> {
  const { searchParams } = new URL(request.url);
  const user = request.headers.get("x-clickhouse-user") ?? "default";
  if (user !== "default" || (request.headers.get("x-clickhouse-key") ?? "") !== password) {
    const reason = "Authentication failed: password is incorrect, or there is no user with such name.";
    throw new Error(`Code: 516. DB::Exception: ${user}: ${reason} (AUTHENTICATION_FAILED)`);
  }
  const settings = [...searchParams].filter(([name]) => !parameters.has(name) && !httpSettings.has(name));
  const database = searchParams.get("database") ?? "default";
  const format = searchParams.get("default_format") ?? "TabSeparated";
  const inUrl = searchParams.get("query");
  if (inUrl === null) {
    const sql = await request.text();
    return inOrder(() => execute(sql, { database, settings, format }));
  }
  const body = join(folder, `${crypto.randomUUID()}.parquet`);
  try {
    await writeBody(request, body);
    return await inOrder(() => execute(withFile(inUrl, body), { database, settings, format }));
  } finally {
    rmSync(body, { force: true });
  }
}

async function writeBody(request: Request, path: string): Promise<void> {
  const file = await open(path, "w");
  try {
    for await (const piece of request.body ?? []) await file.writeFile(piece);
  } finally {
    await file.close();
  }
}

/** The statement that reads the body of an insert from a file. */
function withFile(sql: string, path: string): string {
  const read = /FROM input\('([^']*)'\) FORMAT Parquet$/;
  if (!read.test(sql)) throw new Error("Code: 48. DB::Exception: this server reads bodies of input(...) only");
  return sql.replace(read, (_all, structure: string) => `FROM file('${path}', 'Parquet', '${structure}')`);
}

let last: Promise<unknown> = Promise.resolve();

/** The engine has one session, whose settings a statement changes. */
function inOrder<Value>(work: () => Promise<Value>): Promise<Value> {
  const next = last.then(work, work);
  last = next;
  return next;
}

type Context = Readonly<{ database: string; settings: Settings; format: string }>;

/** Settings of the session. Most statements have those of the statement before. */
const current = new Map<string, string>();
let currentDatabase = "default";

async function execute(sql: string, { database, settings, format }: Context): Promise<Uint8Array<ArrayBuffer>> {
  // `readonly` cannot be unset, so it is part of its statement.
  const own = settings.filter(([name]) => name === "readonly").map(([name, value]) => `${name} = ${value}`);
  const wanted = new Map(settings.filter(([name]) => name !== "readonly"));
  for (const name of [...current.keys()].filter((each) => !wanted.has(each))) {
    await run(`SET ${name} = DEFAULT`);
    current.delete(name);
  }
  for (const [name, value] of wanted) {
    if (current.get(name) === value) continue;
    await run(`SET ${name} = '${value.replaceAll("'", "''")}'`);
    current.set(name, value);
  }
  if (database !== currentDatabase) await run(`USE ${database}`);
  currentDatabase = database;
  return await run(own.length === 0 ? sql : `${sql} SETTINGS ${own.join(", ")}`, format);
}

async function run(sql: string, format = "TabSeparated"): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return Uint8Array.from((await engine.queryAsync(sql, { format })).bytes());
  } catch (error) {
    // What the engine wrote before an error is at the start of the next result.
    await engine.queryAsync("SELECT 1", { format: "Null" });
    throw error;
  }
}
