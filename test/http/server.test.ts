/**
 * What every response has in common, whatever the route: ids, CORS, failures, methods, limits, and how a listener ends.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { Elysia } from "elysia";
import { Failure } from "../../src/failures.ts";
import { readBody, readJsonBody } from "../../src/http/request-body.ts";
import { contextOf } from "../../src/http/request-context.ts";
import { createRequestMetrics } from "../../src/http/request-metrics.ts";
import { jsonResponse, pageResponse, textResponse } from "../../src/http/responses.ts";
import { createMetrics } from "../../src/lib/metrics.ts";
import { header, type WireResponse, wire } from "../support/gateway-server.ts";
import { openServer } from "../support/http-server.ts";
import { connectRaw } from "../support/raw-request.ts";
import { createRecordingLog } from "../support/recording-log.ts";
import { eventually } from "../support/until.ts";

const { log, lines } = createRecordingLog();
let seenAborted = 0;

/** The next request to a slow route: resolves on arrival, and gets its response when released. */
let slow = createSlow();

function createSlow() {
  return { begun: Promise.withResolvers<void>(), goOn: Promise.withResolvers<void>() };
}

function routes() {
  return new Elysia({ strictPath: true })
    .get("/text", () => textResponse("text"))
    .get("/json", () => jsonResponse({ a: [1, "ü"] }))
    .get("/page", () => pageResponse("<p>page", "default-src 'self'"))
    .get("/empty", () => new Response(null, { status: 204 }))
    .get("/items/:id", ({ params }) => textResponse(params.id))
    .put("/items/:id", () => textResponse("put"))
    .post("/items/:id/send", () => textResponse("sent"))
    .get("/svc/admin/debug", () => jsonResponse({}))
    .post("/echo", async ({ request }) => jsonResponse(await readJsonBody(request, 1_000)), { parse: "none" })
    .post("/size", async ({ request }) => textResponse(String((await readBody(request, 1_000)).byteLength)), {
      parse: "none",
    })
    .get("/fail/:code", ({ params }) => {
      throw new Failure(params.code as "busy", { inside: "detail" });
    })
    .get("/defect", () => {
      throw new TypeError("the inside");
    })
    .get("/slow", async ({ request }) => {
      const { begun, goOn } = slow;
      request.signal.addEventListener("abort", () => {
        seenAborted += 1;
        goOn.resolve();
      });
      begun.resolve();
      await goOn.promise;
      request.signal.throwIfAborted();
      return textResponse("late");
    })
    .get("/slow-defect", async ({ request }) => {
      const left = new Promise((resolve) => request.signal.addEventListener("abort", resolve));
      slow.begun.resolve();
      await left;
      throw new TypeError("broken without a client");
    })
    .get("/scheme", ({ request }) => textResponse(contextOf(request).scheme))
    .get("/host", ({ request }) => textResponse(contextOf(request).target.host));
}

function open(more: Partial<Parameters<typeof openServer>[0]> = {}) {
  const metrics = createMetrics();
  const stats = createRequestMetrics(metrics, log);
  const server = openServer({
    hostname: "127.0.0.1",
    port: 0,
    app: routes(),
    bodyBytesMax: 1e6,
    log,
    stats,
    ...more,
  });
  return { server, metrics };
}

const { server, metrics } = open();
const trusting = open({ isTrustedProxy: () => true });
afterAll(async () => {
  await server.close(500);
  await trusting.server.close(500);
});

const ask = (line: string, more = "", port = server.port) => wire(port, `${line} HTTP/1.1${more}`);
const said = (response: WireResponse) => [response.status, response.body.toString()];

describe("a request's id", () => {
  test.each(["a", "A-b_c.d:1", "x".repeat(128)])("%s is stored", async (id) => {
    expect(header(await ask("GET /text", `\r\nX-Request-Id: ${id}`), "x-request-id")).toBe(id);
  });
  test.each(["", "x".repeat(129), "a b", "ü", "a/b", "a,b", "<script>"])("%j is replaced", async (id) => {
    expect(header(await ask("GET /text", `\r\nX-Request-Id: ${id}`), "x-request-id")).toMatch(/^[A-Za-z0-9_-]{22}$/);
  });
  test("is in every response and in its log line", async () => {
    for (const line of [
      "GET /nowhere",
      "GET /defect",
      "GET /fail/busy",
      "PUT /text",
      "OPTIONS /text",
      "HEAD /json",
      "GET /%zz",
    ]) {
      const id = `on-${line.replace(/[^a-zA-Z]/g, "-")}`;
      const response = await ask(line, `\r\nX-Request-Id: ${id}`);
      expect(header(response, "x-request-id")).toBe(id);
      expect(
        lines.find((found) => found["message"] === "request completed" && found["requestId"] === id),
      ).toMatchObject({
        method: line.split(" ")[0],
        status: response.status,
      });
    }
  });
  test("made here is never made twice", async () => {
    const made = await Promise.all(Array.from({ length: 50 }, () => ask("GET /text")));
    expect(new Set(made.map((response) => header(response, "x-request-id"))).size).toBe(50);
  });
});

describe("a path", () => {
  test.each([
    ["/text", 200, "text"],
    ["/%74ext", 200, "text"],
    ["/text?a=%zz", 200, "text"],
    ["/items/a%20b", 200, "a b"],
    ["/items/%61bc", 200, "abc"],
    ["/items/a%2Fb", 200, "a/b"],
    ["/items/%2561bc", 200, "%61bc"],
    ["/x/../text", 200, "text"],
    ["/x/%2e%2e/text", 200, "text"],
    ["/text/", 404, '"Not Found"'],
    ["//text", 404, '"Not Found"'],
    ["/TEXT", 404, '"Not Found"'],
    ["/%2574ext", 404, '"Not Found"'],
    ["/items", 404, '"Not Found"'],
    ["/items/", 404, '"Not Found"'],
    ["/items/a/b", 404, '"Not Found"'],
    ["/items//b", 404, '"Not Found"'],
    ["/", 404, '"Not Found"'],
    ["/%zz", 400, '"Malformed path"'],
    ["/items/%", 400, '"Malformed path"'],
    ["/items/%c3%28", 400, '"Malformed path"'],
    ["/items/%ff", 400, '"Malformed path"'],
  ])("%s responds with %d %s", async (path, status, body) => {
    expect(said(await ask(`GET ${path}`))).toEqual([status, body]);
  });
});

describe("a host", () => {
  test.each([
    ["a.test", 200, "a.test"],
    ["A.TEST:80", 200, "a.test"],
    ["gw", 200, "localhost"],
    ["x", 200, "localhost"],
    ["[::1]:3000", 200, "[::1]:3000"],
    ["a b", 400, '"Malformed Host"'],
    ["a/b", 400, '"Malformed Host"'],
    ["u@a", 400, '"Malformed Host"'],
  ])("%s responds with %d %s", async (host, status, body) => {
    const response = await ask("GET /text", `\r\nHost: ${host}`);
    expect(response.status).toBe(status);
    if (status === 400) expect(response.body.toString()).toBe(body);
  });
  test("is not needed by HTTP/1.0", async () => {
    const socket = await Bun.connect({
      hostname: "127.0.0.1",
      port: server.port,
      socket: {
        open: (opened) => void opened.write("GET /text HTTP/1.0\r\n\r\n"),
        data: (from, bytes) => responded.resolve(`${from.remoteAddress}${bytes.toString()}`),
      },
    });
    const responded = Promise.withResolvers<string>();
    expect(await responded.promise).toContain("HTTP/1.1 200 OK");
    socket.end();
  });
  test("cannot be read as anything else by a route", async () => {
    expect(said(await ask("GET /host", "\r\nHost: Gateway.Example:8080"))).toEqual([200, "gateway.example:8080"]);
  });
});

describe("a failure", () => {
  test.each([
    ["busy", 503, '"Service busy"', "5", "no-store"],
    ["source_failed", 502, '"No source could provide valid data"', "5", "no-store"],
    ["source_timeout", 504, '"Sources did not respond in time"', "5", "no-store"],
    ["not_found", 404, '"Not Found"', "", "no-store"],
    ["blocked", 451, '"Blocked by this gateway\'s content policy"', "", "no-store"],
    ["invalid_id", 400, '"Invalid ID"', "", ""],
    ["too_many_requests", 429, '"Too Many Requests"', "1", ""],
  ])("%s gets %d %s", async (code, status, body, retry, cache) => {
    const response = await ask(`GET /fail/${code}`);
    expect(said(response)).toEqual([status, body]);
    expect([
      header(response, "content-type"),
      header(response, "retry-after"),
      header(response, "cache-control"),
    ]).toEqual(["application/json; charset=utf-8", retry, cache]);
  });
  test("that is a defect says nothing of the inside, and is logged whole", async () => {
    const response = await ask("GET /defect", "\r\nX-Request-Id: d1");
    expect(said(response)).toEqual([500, '"Internal Server Error"']);
    expect(header(response, "cache-control")).toBe("no-store");
    const line = lines.find((found) => found["message"] === "defect" && found["requestId"] === "d1");
    expect(line).toMatchObject({ level: "error", error: { name: "TypeError", message: "the inside" } });
  });
  test("writes its context to the log", async () => {
    await ask("GET /fail/busy", "\r\nX-Request-Id: f1");
    expect(lines.find((found) => found["requestId"] === "f1" && found["code"] === "busy")).toMatchObject({
      level: "warn",
      context: { inside: "detail" },
    });
  });
});

describe("a method that a path has not", () => {
  test.each([
    ["POST /text", "GET, HEAD, OPTIONS"],
    ["DELETE /items/a", "GET, HEAD, PUT, OPTIONS"],
    ["GET /items/a/send", "POST, OPTIONS"],
    ["HEAD /items/a/send", "POST, OPTIONS"],
    ["PATCH /echo", "POST, OPTIONS"],
  ])("%s gets 405, allowed: %s", async (line, allow) => {
    const response = await ask(line, "\r\nContent-Length: 0");
    expect([response.status, header(response, "allow")]).toEqual([405, allow]);
    expect(header(response, "cache-control")).toBe("no-store");
    if (!line.startsWith("HEAD")) expect(response.body.toString()).toBe('"Method Not Allowed"');
  });
  test("of an unknown path is 404", async () => {
    for (const method of ["POST", "PUT", "DELETE"])
      expect((await ask(`${method} /nowhere`, "\r\nContent-Length: 0")).status).toBe(404);
  });
});

describe("HEAD", () => {
  test.each([
    "/text",
    "/json",
    "/page",
    "/empty",
    "/items/abc",
    "/nowhere",
    "/fail/busy",
    "/fail/not_found",
    "/defect",
  ])("of %s has the headers of GET", async (path) => {
    const [got, head] = [
      await ask(`GET ${path}`, "\r\nX-Request-Id: h"),
      await ask(`HEAD ${path}`, "\r\nX-Request-Id: h"),
    ];
    const sorted = (response: WireResponse) =>
      response.headers.filter(([name]) => name !== "date").toSorted(([a], [b]) => (a < b ? -1 : 1));
    expect(head.status).toBe(got.status);
    expect(sorted(head)).toEqual(sorted(got));
    expect(header(head, "date")).toMatch(/GMT$/);
    expect(head.body.length).toBe(0);
  });
});

describe("CORS", () => {
  test("lets every page read every response but those of administration", async () => {
    for (const line of ["GET /text", "GET /nowhere", "GET /defect", "POST /text", "HEAD /json", "GET /%zz"]) {
      const response = await ask(line, "\r\nOrigin: https://app.example\r\nContent-Length: 0");
      expect([
        header(response, "access-control-allow-origin"),
        header(response, "access-control-expose-headers"),
      ]).toEqual(["*", "*, Authorization"]);
      expect(header(response, "access-control-allow-credentials")).toBe("");
    }
    for (const path of [
      "/svc/admin/debug",
      "/svc/admin/nowhere",
      "/ar-io/admin/x",
      "/svc/%61dmin/debug",
      "/svc/console",
    ])
      expect(header(await ask(`GET ${path}`, "\r\nOrigin: https://app.example"), "access-control-allow-origin")).toBe(
        "",
      );
  });

  test("responds to a preflight with 204 and the allowed methods and headers", async () => {
    const asked = "X-Foo, range, X-Turbo-Source-Id, x-ar-io-hops, x-ar-io-\u00fc";
    const response = await ask(
      "OPTIONS /items/a",
      `\r\nOrigin: https://app.example\r\nAccess-Control-Request-Method: PUT\r\nAccess-Control-Request-Headers: ${asked}`,
    );
    expect([response.status, response.body.length]).toEqual([204, 0]);
    expect(header(response, "access-control-allow-origin")).toBe("*");
    expect(header(response, "access-control-max-age")).toBe("86400");
    expect(header(response, "access-control-allow-methods")).toBe("GET, HEAD, PUT, OPTIONS");
    expect(header(response, "access-control-allow-headers").split(", ")).toEqual([
      "Content-Type",
      "Range",
      "If-None-Match",
      "If-Range",
      "Authorization",
      "X-Signature",
      "X-Nonce",
      "X-Public-Key",
      "X-Signature-Type",
      "X-Payment",
      "Payment-Signature",
      "X-Paid-By",
      "X-Data-Item-Tags",
      "X-Chunking-Version",
      "X-Request-Id",
      "traceparent",
      "x-turbo-source-id",
      "x-ar-io-hops",
    ]);
  });

  test("responds to preflights of every path except those of administration", async () => {
    expect((await ask("OPTIONS /whatever")).status).toBe(204);
    const admin = await ask("OPTIONS /svc/admin/debug");
    expect([admin.status, header(admin, "access-control-allow-methods")]).toEqual([405, ""]);
  });
});

describe("a body", () => {
  const posted = async (path: string, body: BodyInit, headers: Record<string, string> = {}) => {
    const response = await fetch(`${server.url}${path}`, { method: "POST", body, headers });
    return [response.status, await response.text()];
  };
  test.each([
    ['{"a":1}', 200, '{"a":1}'],
    ["[]", 200, "[]"],
    ["", 400, '"Malformed JSON body"'],
    ["{", 400, '"Malformed JSON body"'],
    ["{'a':1}", 400, '"Malformed JSON body"'],
    [`"${"x".repeat(2_000)}"`, 413, '"Payload too large"'],
  ])("%j as JSON responds with %d", async (body, status, text) => {
    expect(await posted("/echo", body, { "content-type": "application/json" })).toEqual([status, text]);
    expect(await posted("/echo", body, { "content-type": "text/plain" })).toEqual([status, text]);
  });
  test("that is not UTF-8 is not JSON", async () => {
    expect(await posted("/echo", new Uint8Array([0x22, 0xff, 0x22]))).toEqual([400, '"Malformed JSON body"']);
  });
  test.each([
    [1_000, 200],
    [1_001, 413],
    [900_000, 413],
  ])("of %d bytes, at most 1,000: %d, announced or not", async (size, status) => {
    const bytes = new Uint8Array(size);
    expect((await posted("/size", bytes))[0]).toBe(status);
    const stream = new ReadableStream({
      start(controller) {
        for (let at = 0; at < size; at += 700) controller.enqueue(bytes.subarray(at, at + 700));
        controller.close();
      },
    });
    expect((await posted("/size", stream))[0]).toBe(status);
  });
  test("beyond the listener's own limit is rejected before a route sees it", async () => {
    const response = await fetch(`${server.url}/size`, { method: "POST", body: new Uint8Array(1_000_001) });
    expect(response.status).toBe(413);
  });
  test("headers beyond 16 KiB are rejected", async () => {
    expect((await ask("GET /text", `\r\nX-Long: ${"x".repeat(15_000)}`)).status).toBe(200);
    expect((await ask("GET /text", `\r\nX-Long: ${"x".repeat(17_000)}`)).status).toBe(431);
  });
});

describe("a proxy", () => {
  test.each([
    ["trusted", trusting.server.port, "https", "https"],
    ["trusted", trusting.server.port, "ftp", "http"],
    ["trusted", trusting.server.port, "https, http", "http"],
    ["not trusted", server.port, "https", "http"],
  ])("that is %s on port %d says %s: the scheme is %s", async (_kind, port, forwarded, scheme) => {
    expect(said(await ask("GET /scheme", `\r\nX-Forwarded-Proto: ${forwarded}`, port))).toEqual([200, scheme]);
  });
});

test("a caller who leaves ends the work for it", async () => {
  const before = seenAborted;
  await askAndLeave("/slow");
  await eventually(
    async () => seenAborted - before,
    (count) => count === 1,
  );
  expect(lines.filter((line) => line["message"] === "defect" && JSON.stringify(line).includes("Abort"))).toEqual([]);
});

test("a defect that comes up after the caller left is logged as any other", async () => {
  await askAndLeave("/slow-defect");
  const defect = await eventually(
    async () => lines.find((line) => line["message"] === "defect" && line["requestId"] === "left-1"),
    (line) => line !== undefined,
  );
  expect(defect).toMatchObject({ level: "error", error: { message: "broken without a client" } });
});

/** Asks, and leaves when the work has begun. */
async function askAndLeave(path: string): Promise<void> {
  slow = createSlow();
  const caller = await connectRaw(server.url);
  await caller.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: left-1\r\n\r\n`);
  await slow.begun.promise;
  caller.cut();
}

test("requests are counted by service, route, method and status", async () => {
  await ask("GET /items/abc");
  const labels = 'service="gateway",path="/items/{id}",method="GET",status_code="200"';
  expect((await metrics.text()).includes(`http_request_duration_seconds_count{${labels}} `)).toBe(true);
});

describe("routes of another service on the same listener", () => {
  let composed = 0;
  const mount = {
    serves: ({ path }: { path: string }) => path.startsWith("/other/"),
    app: () => {
      composed += 1;
      return new Elysia({ strictPath: true })
        .get("/other/text", () => textResponse("theirs"))
        .post("/other/items", () => textResponse("posted"));
    },
  };
  const mounting = open({ app: routes().get("/*", () => textResponse("content")), mounts: [mount] });
  afterAll(() => mounting.server.close(500));
  const askMounting = (line: string) => ask(line, "", mounting.server.port);

  test("are composed once, at the first request for them", async () => {
    expect([said(await askMounting("GET /text")), composed]).toEqual([[200, "text"], 0]);
    expect([said(await askMounting("GET /other/text")), composed]).toEqual([[200, "theirs"], 1]);
    expect([said(await askMounting("POST /other/items")), composed]).toEqual([[200, "posted"], 1]);
  });
  test("have no route of the listener's own, which matches every path", async () => {
    expect(said(await askMounting("GET /other/nothing"))).toEqual([404, '"Not Found"']);
    expect(said(await askMounting("GET /others"))).toEqual([200, "content"]);
  });
  test("name their methods", async () => {
    const rejected = await askMounting("GET /other/items");
    expect([rejected.status, header(rejected, "allow")]).toEqual([405, "POST, OPTIONS"]);
    const preflight = await askMounting("OPTIONS /other/items");
    expect(header(preflight, "access-control-allow-methods")).toBe("POST, OPTIONS");
  });
});

describe("closing", () => {
  test("completes responses in flight, accepts no new connections, and ends", async () => {
    const closing = open();
    slow = createSlow();
    const asked = wire(closing.server.port, "GET /slow HTTP/1.1");
    await slow.begun.promise;
    const closed = closing.server.close(20_000);
    slow.goOn.resolve();
    expect(said(await asked)).toEqual([200, "late"]);
    await closed;
    await expect(fetch(closing.server.url)).rejects.toThrow();
  });
  test("cuts what does not finish in time", async () => {
    const closing = open();
    slow = createSlow();
    const asked = wire(closing.server.port, "GET /slow HTTP/1.1");
    await slow.begun.promise;
    await closing.server.close(20);
    expect((await asked).status).toBe(0);
  });
  test("is announced to connections that stay open", async () => {
    const closing = open();
    expect(header(await ask("GET /text", "", closing.server.port), "connection")).toBe("");
    closing.server.drain();
    expect(header(await ask("GET /text", "", closing.server.port), "connection")).toBe("close");
    await closing.server.close(100);
  });
});
