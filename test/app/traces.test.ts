/**
 * Traces of a running program: the spans of one request through a thread, the ledger and its sources; what a caller's
 * `traceparent` decides; and that a collector that is down changes nothing for clients.
 * Source: docs/operating.md#traces.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openTraceCollector, type ReceivedSpan, type TraceCollector } from "../support/trace-collector.ts";
import { eventually } from "../support/until.ts";
import { testItem } from "../support/upload.ts";
import { openUploadStack, sendItem, type UploadStack } from "../support/upload-stack.ts";

/** A stack whose node is behind a proxy that records `traceparent`. */
async function openTraced(environment: Readonly<Record<string, string>>) {
  const received: Readonly<{ path: string; traceparent: string | null }>[] = [];
  let proxy: ReturnType<typeof Bun.serve> | undefined;
  const stack = await openUploadStack({
    environment,
    before: (url) => {
      proxy = Bun.serve({
        hostname: "127.0.0.1",
        port: 0,
        fetch: (request) => {
          const { pathname, search } = new URL(request.url);
          received.push({ path: pathname, traceparent: request.headers.get("traceparent") });
          return fetch(`${url}${pathname}${search}`, request);
        },
      });
      return `http://127.0.0.1:${proxy.port}`;
    },
  });
  const close = async () => {
    await stack.close();
    await proxy?.stop(true);
  };
  return { stack, received, close };
}

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
let nextTrace = 0;

/** The headers of a caller with a trace of its own. */
function newTrace(flags = "01") {
  nextTrace += 1;
  const id = `${traceId.slice(0, 24)}${String(nextTrace).padStart(8, "0")}`;
  return { id, headers: { traceparent: `00-${id}-00f067aa0ba902b7-${flags}` } };
}

describe("a traced request", () => {
  let collector: TraceCollector;
  let traced: Awaited<ReturnType<typeof openTraced>>;
  let stack: UploadStack;
  beforeAll(async () => {
    collector = openTraceCollector();
    traced = await openTraced({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: "Authorization=Bearer%20key,x-tenant=one",
      OTEL_SERVICE_NAME: "gateway of a test",
    });
    ({ stack } = traced);
  }, 60_000);
  afterAll(async () => {
    await traced.close();
    expect(collector.faults).toEqual([]);
    collector.close();
  });

  const spansOf = async (id: string, isComplete: (spans: readonly ReceivedSpan[]) => boolean) =>
    await eventually(() => collector.spans.filter((span) => span.traceId === id), isComplete);
  const hasServer = (spans: readonly ReceivedSpan[]) => spans.some(({ kind }) => kind === 2);

  test("has a span with the values of the metrics, below the caller's", async () => {
    const { id, headers } = newTrace();
    const response = await fetch(`${stack.content}/info?key=secret`, {
      headers: { ...headers, "x-request-id": "mine" },
    });
    const bytes = (await response.arrayBuffer()).byteLength;
    const span = (await spansOf(id, hasServer)).find(({ kind }) => kind === 2);
    expect(span).toMatchObject({ name: "GET /info", kind: 2, parentSpanId: "00f067aa0ba902b7", status: {} });
    expect(span?.attributes).toEqual({
      "http.request.method": "GET",
      "http.route": "/info",
      "url.path": "/info",
      "url.scheme": "http",
      "http.response.status_code": 200,
      "http.response.body.size": bytes,
      "cairn.service": "gateway",
      "cairn.request_id": "mine",
    });
    expect(collector.resource()).toMatchObject({ "service.name": "gateway of a test" });
    expect(collector.headers()?.get("authorization")).toBe("Bearer key");
    expect(collector.headers()?.get("x-tenant")).toBe("one");
  });

  test("shows the query thread of GraphQL", async () => {
    const { id, headers } = newTrace();
    const body = JSON.stringify({ query: "{ blocks(first: 1) { edges { node { id } } } }" });
    const json = { ...headers, "content-type": "application/json" };
    const response = await fetch(`${stack.content}/graphql`, { method: "POST", headers: json, body });
    expect(response.status).toBe(200);
    await response.arrayBuffer();
    const spans = await spansOf(id, hasServer);
    const [thread, execution, server] = ["graphql.executeQuery", "graphql", "POST /graphql"].map((name) =>
      spans.find((span) => span.name === name),
    );
    expect(execution?.parentSpanId).toBe(server?.spanId ?? "");
    expect(thread?.parentSpanId).toBe(execution?.spanId ?? "");
    expect(thread?.kind).toBe(1);
    expect(Object.keys(thread?.attributes ?? {})).toEqual(["cairn.thread.wait_ms"]);
  });

  test("shows threads, ledger and announcement of an upload", async () => {
    const { id, headers } = newTrace();
    const item = testItem("traced");
    const response = await fetch(`${stack.uploads}/v1/tx`, { method: "POST", headers, body: item.bytes });
    expect(response.status).toBe(200);
    await response.arrayBuffer();
    const spans = await spansOf(id, hasServer);
    const server = spans.find(({ kind }) => kind === 2);
    expect(server?.attributes).toMatchObject({ "cairn.service": "upload", "http.route": "/tx" });
    const names = new Set(spans.map(({ name }) => name));
    for (const name of ["upload.intake", "ledger.write", "upload.receipt", "upload.announcement"])
      expect([...names]).toContain(name);
    const ledger = spans.find(({ name }) => name === "ledger.write");
    expect(ledger?.attributes).toEqual({ "db.system.name": "sqlite" });
    for (const span of spans) expect(span.traceId).toBe(id);
  });

  test("shows its sources, and the operator's node gets the trace", async () => {
    const { id, headers } = newTrace();
    const response = await fetch(`${stack.content}/wallet/${"A".repeat(43)}/balance`, { headers });
    expect(response.status).toBe(200);
    await response.arrayBuffer();
    const spans = await spansOf(id, hasServer);
    const server = spans.find(({ kind }) => kind === 2);
    const call = spans.find(({ kind }) => kind === 3);
    expect(call).toMatchObject({ name: "GET", parentSpanId: server?.spanId ?? "" });
    expect(call?.attributes).toMatchObject({
      "http.request.method": "GET",
      "server.address": "127.0.0.1",
      "http.response.status_code": 200,
      "http.response.body.size": 1,
    });
    const sent = traced.received.filter(({ traceparent }) => traceparent?.includes(id));
    expect(sent).toEqual([{ path: `/wallet/${"A".repeat(43)}/balance`, traceparent: `00-${id}-${call?.spanId}-01` }]);
  });

  test("from memory has a span too", async () => {
    const item = testItem("in memory");
    await sendItem(stack.uploads, item.bytes);
    const url = `${stack.content}/raw/${item.id}`;
    await eventually(
      async () => (await fetch(url)).status,
      (status) => status === 200,
    );
    const readAgain = async () => {
      const { id, headers } = newTrace();
      await (await fetch(url, { headers: { ...headers, "x-request-id": "again" } })).arrayBuffer();
      const [span] = await spansOf(id, hasServer);
      return span;
    };
    const span = await eventually(readAgain, (each) => each?.attributes["cairn.content.from"] === "memory");
    expect(span).toMatchObject({ name: "GET /raw/{id}", parentSpanId: "00f067aa0ba902b7" });
    expect(span?.attributes).toMatchObject({
      "http.response.status_code": 200,
      "url.path": `/raw/${item.id}`,
      "cairn.request_id": "again",
    });
  });

  test("that fails has the status of its error", async () => {
    const { id, headers } = newTrace();
    await (await fetch(`${stack.content}/svc/nothing`, { headers, method: "PROPFIND" })).arrayBuffer();
    const [span] = await spansOf(id, hasServer);
    expect(span).toMatchObject({ name: "_OTHER", status: {} });
    expect(span?.attributes).toMatchObject({ "http.request.method": "_OTHER", "http.response.status_code": 404 });
    expect(span?.attributes["http.route"]).toBeUndefined();
  });

  test("is not recorded when its caller has decided so; the node is notified of that", async () => {
    const { id, headers } = newTrace("00");
    await (await fetch(`${stack.content}/wallet/${"B".repeat(43)}/balance`, { headers })).arrayBuffer();
    const later = newTrace();
    await (await fetch(`${stack.content}/info`, { headers: later.headers })).arrayBuffer();
    await spansOf(later.id, hasServer);
    expect(collector.spans.filter((span) => span.traceId === id)).toEqual([]);
    const sent = traced.received.flatMap(({ traceparent }) => (traceparent?.includes(id) ? [traceparent] : []));
    expect(sent.map((each) => each.slice(-3))).toEqual(["-00"]);
  });

  test("begins a trace of its own after a hostile traceparent", async () => {
    const hostile = `00-${"0".repeat(32)}-00f067aa0ba902b7-01`;
    const headers = { traceparent: hostile, "x-request-id": "hostile" };
    await (await fetch(`${stack.content}/info`, { headers })).arrayBuffer();
    const span = await eventually(
      () => collector.spans.find(({ attributes }) => attributes["cairn.request_id"] === "hostile"),
      (found) => found !== undefined,
    );
    expect(span?.traceId).not.toBe("0".repeat(32));
    expect(span?.parentSpanId).toBeUndefined();
  });

  test("is counted", async () => {
    const text = await (await fetch(`${stack.content}/metrics`)).text();
    expect(Number(/^trace_spans_total\{outcome="exported"\} (\d+)$/m.exec(text)?.[1])).toBeGreaterThan(0);
  });
});

test("the last spans are sent at the stop", async () => {
  const collector = openTraceCollector();
  const { stack, close } = await openTraced({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  const { id, headers } = newTrace();
  await (await fetch(`${stack.content}/info`, { headers })).arrayBuffer();
  await close();
  // The request, and its call of the node.
  expect(collector.spans.flatMap((span) => (span.traceId === id ? [span.kind] : [])).toSorted()).toEqual([2, 3]);
  expect(collector.faults).toEqual([]);
  collector.close();
}, 60_000);

test("a collector that is down changes nothing for clients", async () => {
  const closed = openTraceCollector();
  closed.close();
  const { stack, close } = await openTraced({ OTEL_EXPORTER_OTLP_ENDPOINT: closed.url });
  const item = testItem("without a collector");
  await sendItem(stack.uploads, item.bytes);
  await eventually(
    async () => (await fetch(`${stack.content}/raw/${item.id}`)).status,
    (status) => status === 200,
  );
  await close();
}, 60_000);

test("without an endpoint, no request is traced, and a caller's header goes no further", async () => {
  const { stack, received, close } = await openTraced({});
  const { headers } = newTrace();
  await (await fetch(`${stack.content}/wallet/${"C".repeat(43)}/balance`, { headers })).arrayBuffer();
  expect(received.filter(({ traceparent }) => traceparent !== null)).toEqual([]);
  expect(await (await fetch(`${stack.content}/metrics`)).text()).not.toContain("trace_spans_total");
  await close();
}, 60_000);
