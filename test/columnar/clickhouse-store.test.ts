/**
 * The ClickHouse store with servers that are down, slow, or not ClickHouse. test/stores has its tests with an engine.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ClickhouseOptions, openClickhouseStore } from "../../src/columnar/clickhouse-store.ts";
import type { ExportedFile } from "../../src/columnar/partition.ts";
import { explainError, Failure } from "../../src/failures.ts";
import { temporaryFolder } from "../store/folder.ts";

const password = "a-secret-password";

type Respond = (request: Request) => Response | Promise<Response>;

/** A server that has all tables, and responds to other statements as given. */
function openServer(respond: Respond) {
  const requests: Request[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch: async (request) => {
      requests.push(request.clone());
      const isTable = (await request.clone().text()).startsWith("CREATE ");
      return isTable ? new Response("") : await respond(request);
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    requests,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

const storeOf = (url: string, options: Partial<ClickhouseOptions> = {}) =>
  openClickhouseStore({ url, user: "reader", password, queryMs: 20_000, loadMs: 20_000, ...options });

/** The description of the failure of a query, and the time that it took. */
async function failureOf(url: string, options: Partial<ClickhouseOptions> = {}, signal = new AbortController().signal) {
  const store = storeOf(url, options);
  const started = performance.now();
  const error: unknown = await store.select("SELECT 1", signal).then(
    (rows) => new Error(`no failure: ${JSON.stringify(rows)}`),
    (fault: unknown) => fault,
  );
  await store.close();
  return { error, text: explainError(error), ms: performance.now() - started };
}

const rowsOf = (data: unknown, meta: unknown = [{ name: "a" }], rows = (data as unknown[]).length) =>
  Response.json({ meta, data, rows });

/** Connections to it are rejected. */
const unusedUrl = async (): Promise<string> => {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("") });
  const url = `http://127.0.0.1:${server.port}`;
  await server.stop(true);
  return url;
};

describe("a ClickHouse server", () => {
  test("that is down fails calls at once, by name", async () => {
    const url = await unusedUrl();
    const { text, error, ms } = await failureOf(url);
    expect(text).toContain(`ClickHouse at ${url}: ECONNREFUSED`);
    expect(error).toBeInstanceOf(Failure);
    expect(ms).toBeLessThan(10_000);
  });

  test("that does not respond, or stops within a response, fails calls within their time", async () => {
    const silent: Respond = () => new Promise(() => undefined);
    const stalling: Respond = () =>
      new Response(new ReadableStream({ start: (stream) => stream.enqueue(Buffer.from('{"meta"')) }));
    for (const respond of [silent, stalling]) {
      await using server = openServer(respond);
      const { text, error, ms } = await failureOf(server.url, { queryMs: 500 });
      expect(text).toContain(`ClickHouse at ${server.url}: nothing within 600 ms`);
      expect(error).toMatchObject({ code: "source_timeout" });
      expect(ms).toBeGreaterThan(400);
    }
  });

  test.each([
    ["HTML", () => new Response("<html>welcome</html>")],
    ["an empty body", () => new Response("")],
    ["rows that are cut", () => new Response('{"meta":[{"name":"a"}],"data":[["1"],["2"')],
    ["fewer rows than it states", () => rowsOf([["1"]], [{ name: "a" }], 2)],
    ["a row without a column", () => rowsOf([["1", "2"], ["1"]], [{ name: "a" }, { name: "b" }])],
    ["a row that is not a valid list", () => rowsOf([{ a: "1" }])],
    ["another object", () => Response.json({ data: [["1"]] })],
    ["bytes", () => new Response(new Uint8Array([0xff, 0xfe, 0, 1]))],
  ] satisfies [string, Respond][])("that responds with %s does not give rows", async (_what, respond) => {
    await using server = openServer(respond);
    const { text, error } = await failureOf(server.url);
    expect(text).toContain(`ClickHouse at ${server.url}: not a response of ClickHouse`);
    expect(error).toMatchObject({ code: "source_failed" });
  });

  test("that sends more than a response may have is an error", async () => {
    const piece = new Uint8Array(2 ** 20).fill(32);
    let sent = 0;
    await using server = openServer(
      () =>
        new Response(
          new ReadableStream({
            pull: (stream) => {
              sent += 1;
              if (sent > 200) stream.close();
              else stream.enqueue(piece);
            },
          }),
        ),
    );
    const { text } = await failureOf(server.url, { queryMs: 20_000 });
    expect(text).toContain(`ClickHouse at ${server.url}: more than 67108864 bytes`);
    expect(sent).toBeLessThan(150);
  });

  test.each([
    [404, "Code: 81. DB::Exception: Database x does not exist. (UNKNOWN_DATABASE)\nmore", "status 404: Code: 81. DB::"],
    [500, `Code: 1. the key ${password} is wrong`, "the key … is wrong"],
    [502, "", "status 502"],
    [500, "\u001b[2Jx".padEnd(2_000, "y"), "\\x1b[2Jxyyy"],
    [302, "", "status 302"],
  ])("that responds %d is named with the first line of its message", async (status, body, expected) => {
    await using server = openServer(() => new Response(body, { status, headers: { location: "http://127.0.0.1:9" } }));
    const { text } = await failureOf(server.url);
    expect(text).toContain(`ClickHouse at ${server.url}: status ${status}`);
    expect(text).toContain(expected);
    expect(text).not.toContain("more");
    expect(text).not.toContain(password);
    expect(text.length).toBeLessThan(800);
  });

  test("receives the user and the password in headers only, and the limits of a query", async () => {
    await using server = openServer(() => rowsOf([["1"]]));
    const store = storeOf(`${server.url}/proxy/`, { database: "own", queryMs: 2_500 });
    expect(await store.select("SELECT 1", new AbortController().signal)).toEqual([["1"]]);
    await store.close();
    for (const { headers, url } of server.requests) {
      expect([headers.get("x-clickhouse-user"), headers.get("x-clickhouse-key")]).toEqual(["reader", password]);
      expect(url).not.toContain(password);
      expect(new URL(url).pathname).toBe("/proxy/");
    }
    const last = new URL(server.requests.at(-1)?.url ?? "").searchParams;
    expect([last.get("readonly"), last.get("max_execution_time"), last.get("database")]).toEqual(["2", "3", "own"]);
    expect(server.requests.filter(({ url }) => url.includes("readonly")).length).toBe(1);
  });

  test("that a caller leaves ends with the caller's reason", async () => {
    await using server = openServer(() => new Promise(() => undefined));
    const stopping = new AbortController();
    const failed = failureOf(server.url, { queryMs: 60_000 }, stopping.signal);
    await Bun.sleep(50); // the query is running
    stopping.abort(new Error("left"));
    expect((await failed).text).toBe("left");
  });
});

describe("a load into ClickHouse", () => {
  const partitionOf = (folder: string, given: Partial<ExportedFile> = {}) => {
    writeFileSync(join(folder, "blocks.parquet"), "PAR1");
    const file: ExportedFile = { table: "blocks", path: "blocks.parquet", rows: 7, bytes: 4, sha256: "", ...given };
    return { folder, start: 5, end: 9, files: [file] };
  };
  const errorOf = async (url: string, partition: ReturnType<typeof partitionOf>): Promise<string> => {
    const store = storeOf(url);
    const { signal } = new AbortController();
    const text = await store.load(partition, signal).then(() => "", explainError);
    await store.close();
    return text;
  };
  const statementOf = async (request: Request): Promise<string> =>
    new URL(request.url).searchParams.get("query") ?? (await request.clone().text());

  test("fails when the server responds to a statement with a page", async () => {
    using folder = temporaryFolder();
    const page = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("welcome") });
    const text = await errorOf(`http://127.0.0.1:${page.port}`, partitionOf(folder.path));
    expect(text).toContain(`ClickHouse at http://127.0.0.1:${page.port}: not a response of ClickHouse: welcome`);
    await page.stop(true);
  });

  test("fails when the server has another number of rows, and shows none of them", async () => {
    using folder = temporaryFolder();
    await using server = openServer(async (request) =>
      (await statementOf(request)).startsWith("SELECT")
        ? rowsOf([["6", "0", "0", "0"]], [1, 2, 3, 4])
        : new Response(""),
    );
    expect(await errorOf(server.url, partitionOf(folder.path))).toBe(
      `ClickHouse at ${server.url} has 6 rows of blocks for heights 5 to 9, its files have 7`,
    );
    const statements = await Promise.all(server.requests.map(statementOf));
    expect(statements.filter((sql) => sql.includes(".`loads`") || sql.includes(".loads (load")).length).toBe(1);
  });

  test("fails when a file is missing or has another size, before it is sent", async () => {
    using folder = temporaryFolder();
    await using server = openServer(() => new Response(""));
    const cut = partitionOf(folder.path, { bytes: 5 });
    expect(await errorOf(server.url, cut)).toBe("blocks.parquet has 4 bytes, its record says 5");
    const missing = partitionOf(folder.path, { path: "other.parquet" });
    expect(await errorOf(server.url, missing)).toBe("other.parquet has 0 bytes, its record says 4");
    expect(server.requests.some(({ url }) => url.includes("Parquet"))).toBe(false);
  });

  test("sends the bytes of the file, and its statement in the URL", async () => {
    using folder = temporaryFolder();
    await using server = openServer(() => new Response("", { status: 500 }));
    const insert = openServer(() => new Response(""));
    await errorOf(insert.url, partitionOf(folder.path));
    const sent = insert.requests.find(({ url }) => url.includes("Parquet"));
    expect(await sent?.text()).toBe("PAR1");
    expect(new URL(sent?.url ?? "").searchParams.get("query")).toMatch(
      /^INSERT INTO `cairn`.blocks_rows \(.*FORMAT Parquet$/s,
    );
    expect(await errorOf(server.url, partitionOf(folder.path))).toContain("status 500");
    await insert[Symbol.asyncDispose]();
  });
});
