/**
 * Heads of requests: cookies never lock a client out, everything else in a head has a limit, and an ambiguous request
 * is rejected, from memory and from routes, by HTTP/1.1 and by HTTP/2.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync } from "node:fs";
import http2 from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Elysia } from "elysia";
import { readBody } from "../../src/http/request-body.ts";
import { limits } from "../../src/http/request-limits.ts";
import { textResponse } from "../../src/http/responses.ts";
import type { HttpServer } from "../../src/http/server.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { makeCertificate, openssl } from "../support/certificates.ts";
import { header, wire } from "../support/gateway-server.ts";
import { describeWith } from "../support/helpers.ts";
import { openTestServer, type TestServerOptions } from "../support/http-server.ts";

function open(more: Partial<TestServerOptions> = {}): HttpServer {
  return openTestServer({
    app: new Elysia({ strictPath: true })
      .get("/a", () => textResponse("a"))
      .post("/size", async ({ request }) => textResponse(String((await readBody(request, 100)).byteLength)), {
        parse: "none",
      }),
    cachedResponse: ({ url }) => (url.endsWith("/hit") ? new Response("hit") : undefined),
    withoutRouter: ({ path }) =>
      path === "/read" ? () => ({ pattern: "/read", response: new Response("read") }) : undefined,
    ...more,
  });
}

const server = open();
afterAll(() => server.close(100));

const ask = (target: string, lines: readonly string[] = []) =>
  wire(server.port, [`GET ${target} HTTP/1.1`, ...lines].join("\r\n"));

/** Cookies as a browser sends them: in one line, each of the largest size that browsers keep. */
const cookies = (count: number) => {
  const each = (index: number) => `c${index}=${"x".repeat(4_096 - 2 - String(index).length)}`;
  return `Cookie: ${Array.from({ length: count }, (_, index) => each(index)).join("; ")}`;
};

describe("X4: cookies", () => {
  test.each([
    [0, 200, ""],
    [3, 200, ""],
    [5, 200, '"cookies"'],
    [20, 200, '"cookies"'],
    [31, 200, '"cookies"'],
    [33, 431, ""], // by the runtime: docs/operating.md, "Cookies"
  ])("%i of 4 KiB: %i, and what is to be deleted: %j", async (count, status, cleared) => {
    const response = await ask("/a", count === 0 ? [] : [cookies(count)]);
    expect([response.status, header(response, "clear-site-data")]).toEqual([status, cleared]);
  });

  test("keep no response in memory from being served", async () => {
    expect((await ask("/hit", [cookies(20)])).body.toString()).toBe("hit");
  });

  test("are deleted by a response without the router", async () => {
    const response = await ask("/read", [cookies(20)]);
    expect([response.body.toString(), header(response, "clear-site-data")]).toEqual(["read", '"cookies"']);
  });
});

describe("everything else in a head", () => {
  const long = (bytes: number) => `X-Long: ${"x".repeat(bytes)}`;
  test.each([
    ["a header of 15 KiB", "/a", [long(15_000)], 200],
    ["a header of 17 KiB", "/a", [long(17_000)], 431],
    ["four headers of 5 KiB", "/a", [1, 2, 3, 4].map((at) => `X-${at}: ${"x".repeat(5_000)}`), 431],
    ["a query of 17 KiB", `/a?${"x".repeat(17_000)}`, [], 431],
    ["a header of 15 KiB, without the router", "/read", [long(15_000)], 200],
    ["a header of 17 KiB, without the router", "/read", [long(17_000)], 431],
    ["a query of 17 KiB, without the router", `/read?${"x".repeat(17_000)}`, [], 431],
    ["a header of 17 KiB beside cookies", "/a", [cookies(20), long(17_000)], 431],
    ["a header of 15 KiB beside cookies", "/a", [cookies(20), long(15_000)], 200],
  ])("has 16 KiB: %s", async (_name, target, lines, status) => {
    const response = await ask(target, lines);
    expect(response.status).toBe(status);
    if (status === 431) expect(response.body.toString()).toBe('"Request Header Fields Too Large"');
    expect(limits.headerBytesMax).toBe(16_384);
  });
});

describe("H1: a request that could be read in two ways", () => {
  const host = (name: string) => `Host: ${name}`;
  const chunks = "0\r\n\r\n";
  const post = (lines: readonly string[], body: string) =>
    ["POST /size HTTP/1.1", "Host: a.example", ...lines, "", body].join("\r\n");
  const get = (target: string, lines: readonly string[]) => [`GET ${target} HTTP/1.1`, ...lines, "", ""].join("\r\n");
  const rows: readonly (readonly [name: string, request: string, status: number])[] = [
    ["one Host", get("/a", [host("a.example")]), 200],
    ...["/a", "/hit", "/read"].flatMap((target): (readonly [string, string, number])[] => [
      [`two Hosts, ${target}`, get(target, [host("a.example"), host("b.example")]), 400],
      [`one Host twice, ${target}`, get(target, [host("a.example"), host("a.example")]), 400],
      [`a Host and an empty one, ${target}`, get(target, [host("a.example"), "Host:"]), 400],
      [`an empty Host and one, ${target}`, get(target, ["Host:", host("a.example")]), 400],
      [`a list of Hosts, ${target}`, get(target, [host("a.example, b.example")]), 400],
    ]),
    ["no Host", get("/a", ["X: 1"]), 400],
    ["a space before the colon", get("/a", ["Host : a.example"]), 400],
    ["a folded Host", get("/a", ["Host: a.example", " b.example"]), 400],
    ["a user in the Host", get("/a", [host("user@a.example")]), 400],
    ["a user in the Host, /read", get("/read", [host("user@a.example")]), 400],
    ["a bare CR in a value", get("/a", [host("a.example"), "X: a\rb"]), 400],
    ["a NUL in a value", get("/a", [host("a.example"), "X: a\0b"]), 400],
    ["two different lengths", post(["Content-Length: 3", "Content-Length: 4"], "abcd"), 400],
    ["a list of lengths", post(["Content-Length: 3, 3"], "abc"), 400],
    ["a signed length", post(["Content-Length: +3"], "abc"), 400],
    ["a length and chunks", post(["Content-Length: 3", "Transfer-Encoding: chunked"], chunks), 400],
    ["an unknown coding", post(["Transfer-Encoding: xchunked"], chunks), 400],
    ["chunks that are not last", post(["Transfer-Encoding: chunked, identity"], chunks), 400],
    ["chunks twice", post(["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], chunks), 400],
    ["a chunk that ends in LF", post(["Transfer-Encoding: chunked"], `3\nabc\r\n${chunks}`), 400],
  ];
  test.each(rows)("%s", async (_name, request, status) => {
    expect(await statusOf(server.port, request)).toBe(status);
  });
});

/** The status of the first response; 0 when none came. */
async function statusOf(port: number, request: string): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  let text = "";
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data: (_socket, bytes) => {
        text += bytes.toString("latin1");
        if (text.includes("\r\n")) resolve(Number(text.split(" ")[1]));
      },
      close: () => resolve(0),
    },
  });
  socket.write(request);
  const status = await promise;
  socket.end();
  return status;
}

describeWith(openssl, "H1: by HTTP/2", () => {
  let secure: HttpServer;
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "cairn-heads-"));
    const { cert, key } = await makeCertificate(folder, "heads");
    secure = open({ certificate: { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") } });
  }, 30_000);
  afterAll(async () => {
    await secure.close(100);
    removeFolder(folder);
  });

  /** The status, or how the stream ended without one. */
  const askSecurely = (headers: http2.OutgoingHttpHeaders): Promise<number | string> =>
    new Promise((resolve) => {
      const client = http2.connect(`https://127.0.0.1:${secure.port}`, { rejectUnauthorized: false });
      client.on("error", () => resolve("no status"));
      const stream = client.request(headers);
      stream.on("response", (found) => resolve(Number(found[":status"])));
      stream.on("error", () => resolve("no status"));
      stream.on("close", () => {
        resolve("no status");
        client.destroy();
      });
      stream.resume();
      stream.end();
    });

  test.each([
    ["one authority", { ":authority": "a.example" }, 200],
    ["a Host that says the same", { ":authority": "a.example", host: "a.example" }, 200],
    ["a Host that says another", { ":authority": "a.example", host: "b.example" }, "no status"],
    ["a list", { ":authority": "a.example, b.example" }, 400],
    ["20 cookies of 4 KiB", { cookie: Array.from({ length: 20 }, (_, at) => `c${at}=${"x".repeat(4_090)}`) }, 200],
    ["a header of 17 KiB", { "x-long": "x".repeat(17_000) }, 431],
  ])("%s", async (_name, headers, expected) => {
    expect(await askSecurely({ ":path": "/a", ...headers })).toBe(expected);
  });
});
