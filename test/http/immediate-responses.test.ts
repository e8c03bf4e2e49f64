/**
 * Responses that one read makes, before the routes: which requests get them, and what is noted of them.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import { Elysia } from "elysia";
import { createBodyMemory } from "../../src/http/body-memory.ts";
import { createRequestMetrics } from "../../src/http/request-metrics.ts";
import { createRequestSpans } from "../../src/http/request-spans.ts";
import { bodySizeOf, textResponse, withBodySize } from "../../src/http/responses.ts";
import type { HttpServer } from "../../src/http/server.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createMetrics } from "../../src/lib/metrics.ts";
import { createTracer, type Span } from "../../src/lib/spans.ts";
import { createSampler } from "../../src/lib/trace-context.ts";
import { openTestServer, type TestServerOptions } from "../support/http-server.ts";
import { createRecordingLog } from "../support/recording-log.ts";

const text = "read";
let server: HttpServer;
let reads = 0;
afterEach(() => server.close(100));

function open(more: Partial<TestServerOptions> = {}): void {
  reads = 0;
  const respond = () => {
    reads += 1;
    return { pattern: "/record/:id", response: withBodySize(new Response(text), text.length) };
  };
  server = openTestServer({
    app: new Elysia({ strictPath: true }).get("/record/:id", () => textResponse("routed")),
    withoutRouter: ({ path }) => (path.startsWith("/record/") ? respond : undefined),
    ...more,
  });
}

async function ask(init: RequestInit = {}) {
  const response = await fetch(`${server.url}/record/1`, init);
  return { body: await response.text(), headers: response.headers };
}

describe("a response that one read makes", () => {
  test("has the id of its request, or a new one", async () => {
    open();
    expect((await ask({ headers: { "X-Request-Id": "mine" } })).headers.get("x-request-id")).toBe("mine");
    expect((await ask()).headers.get("x-request-id")).toMatch(/^[\w-]{22}$/);
    expect(reads).toBe(2);
  });

  test("is for GET only", async () => {
    open();
    expect((await ask({ method: "HEAD" })).headers.get("content-length")).toBe(String("routed".length));
    expect((await ask({ method: "OPTIONS" })).headers.get("access-control-allow-methods")).toBe("GET, HEAD, OPTIONS");
    expect(reads).toBe(0);
  });

  test("is made by the route, which closes the connection, once the server drains", async () => {
    open();
    server.drain();
    const { body, headers } = await ask();
    expect([body, headers.get("connection"), reads]).toEqual(["routed", "close", 0]);
  });

  test("is made by the route while responses use all of their memory", async () => {
    const memory = createBodyMemory({ responseBytesMax: 2 ** 20, requestBytesMax: 2 ** 20, metrics: createMetrics() });
    open({ memory: { ...memory, isExhausted: () => true } });
    expect([(await ask()).body, reads]).toEqual(["routed", 0]);
  });

  test.each([
    ["a body that responses share", new Blob([new Uint8Array(100_000)]), "noted"],
    ["a body below 16 KiB of its own", new Uint8Array(2 ** 14 - 1), "noted"],
    ["a larger one, which needs its memory before it is sent", new Uint8Array(2 ** 14), "settled"],
  ] as const)("has its memory counted: %s", async (_what, body, expected) => {
    const budgets = { responseBytesMax: 2 ** 20, requestBytesMax: 2 ** 20 };
    const memory = createBodyMemory({ ...budgets, metrics: createMetrics() });
    const counted: string[] = [];
    open({
      memory: {
        ...memory,
        noteSent: (_request, _listener, response) => counted.push(`noted ${bodySizeOf(response)}`),
        open: (request, listener) => {
          const account = memory.open(request, listener);
          const settle = (response: Response) => {
            counted.push(`settled ${bodySizeOf(response)}`);
            return account.settle(response);
          };
          return { ...account, settle };
        },
      },
      withoutRouter: () => () => {
        const note = body instanceof Blob ? body : body.length;
        return { pattern: "/record/:id", response: withBodySize(new Response(body), note) };
      },
    });
    const size = body instanceof Blob ? body.size : body.length;
    expect([(await ask()).body.length, ...counted]).toEqual([size, `${expected} ${size}`]);
  });

  test("leaves the request to its route, and an error to the log, where the read makes none", async () => {
    const { log, lines } = createRecordingLog();
    const failing = () => {
      throw new Error("damaged");
    };
    open({ withoutRouter: () => failing, log });
    expect((await ask({ headers: { "X-Request-Id": "mine" } })).body).toBe("routed");
    expect(lines.filter(({ level }) => level === "warn")).toMatchObject([{ requestId: "mine" }]);
  });

  test("has the time of its read counted, also where the read makes none and its route responds", async () => {
    const readMs = 20;
    for (const response of [new Response(text), undefined]) {
      const stats = createRequestMetrics(createMetrics(), silentLog);
      const read = () => {
        Bun.sleepSync(readMs);
        return response && { pattern: "/record/:id", response };
      };
      open({ stats, withoutRouter: () => read });
      expect((await ask()).body).toBe(response === undefined ? "routed" : text);
      expect(stats.recent().requests[0]?.durationMs).toBeGreaterThanOrEqual(readMs - 1);
      await server.close(100);
    }
  });

  test("is counted by its route, with its size", async () => {
    const stats = createRequestMetrics(createMetrics(), silentLog);
    open({ stats });
    await ask();
    const [noted] = stats.recent().requests;
    expect(noted).toMatchObject({ method: "GET", path: "/record/1", route: "/record/{id}", status: 200, bytes: 4 });
    expect(stats.totals()).toMatchObject({ responses: 1, bytes: 4, content: { memory: { responses: 0 } } });
  });

  test("ends the span of its request", async () => {
    const spans: Span[] = [];
    const tracer = createTracer({
      sampler: createSampler("always_on", 1),
      record: (span) => spans.push(span),
      drop: () => undefined,
      isOwn: () => false,
    });
    open({ spans: createRequestSpans(tracer, () => undefined) });
    expect((await ask()).body).toBe(text);
    expect(spans.map(({ shared }) => shared?.name)).toEqual(["GET /record/{id}"]);
  });
});
