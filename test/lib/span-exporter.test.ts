/**
 * The export of spans: batches in the published JSON, a bounded queue, and a collector that is down, slow or faulty.
 * Ending a span never waits.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import { assert } from "../../src/lib/assert.ts";
import { openHttp } from "../../src/lib/http-client.ts";
import { createMetrics } from "../../src/lib/metrics.ts";
import { createSpanWriter } from "../../src/lib/otlp-json.ts";
import { openSpanExporter, type SpanExporter, spansWaitingMax } from "../../src/lib/span-exporter.ts";
import { createTracer, endSpan, type InstantSpan, inSpan, type Span, startSpan, traced } from "../../src/lib/spans.ts";
import { createSampler } from "../../src/lib/trace-context.ts";
import { createRecordingLog } from "../support/recording-log.ts";
import { openTraceCollector, readExport, type TraceCollector } from "../support/trace-collector.ts";
import { eventually } from "../support/until.ts";

const openWriter = () => createSpanWriter({ "service.name": "test" }, { name: "cairn", version: "0" });

/** The spans as a collector reads them. */
function readBack(ended: readonly (Span | InstantSpan)[], onFault: (fault: string) => void) {
  const writer = openWriter();
  for (const span of ended) writer.add(span);
  const batch = writer.take();
  expect([batch?.count, writer.take()]).toEqual([ended.length, undefined]);
  return readExport(JSON.parse(new TextDecoder().decode(batch?.body)), onFault);
}
const always = createSampler("always_on", 1);
const opened: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

/** A tracer of a sampler that records everything. */
function tracerOf(options: Parameters<typeof createTracer>[0]) {
  const { begin } = createTracer(options);
  return (traceparent: string | null): Span => {
    const span = begin(traceparent);
    assert(span !== undefined, "every trace is recorded");
    return span;
  };
}

type Options = Partial<Parameters<typeof openSpanExporter>[0]>;

/** An exporter with short waits, and its counts by outcome. */
function openExporter(url: string, options: Options = {}) {
  const metrics = createMetrics();
  const { log, lines } = createRecordingLog();
  const exporter: SpanExporter = openSpanExporter({
    url: `${url}/v1/traces`,
    headers: { authorization: "Bearer key" },
    writer: openWriter(),
    metrics,
    log,
    random: () => 0,
    everyMs: 1,
    attempts: { attempts: 3, firstMs: 1, longestMs: 1 },
    ...options,
  });
  opened.push(exporter.close);
  const counts = async (): Promise<Readonly<Record<string, number>>> => {
    const found = (await metrics.text()).matchAll(/^trace_spans_total\{outcome="(\w+)"\} (\d+)$/gm);
    return Object.fromEntries([...found].map(([, outcome, count]) => [outcome, Number(count)]));
  };
  const begin = tracerOf({
    sampler: always,
    record: exporter.add,
    drop: exporter.drop,
    isOwn: () => false,
  });
  return { exporter, counts, lines, begin };
}

function openCollector(...given: Parameters<typeof openTraceCollector>): TraceCollector {
  const collector = openTraceCollector(...given);
  opened.push(collector.close);
  return collector;
}

function endMany(begin: (traceparent: null) => Span, count: number): void {
  for (let each = 0; each < count; each += 1) endSpan(begin(null));
}

describe("the JSON", () => {
  test("is what the schema allows, for any text", () => {
    const names = ["GET /{id}", '"}],"', "\u0000\u001f\\", "\ud800", "é🙂", "x".repeat(10_000)];
    const ended: Span[] = [];
    const begin = tracerOf({
      sampler: always,
      record: (span) => ended.push(span),
      drop: () => undefined,
      isOwn: () => false,
    });
    for (const name of names) {
      const span = begin(null);
      span.name = name;
      span.attributes = { text: name, whole: -5, large: Number.MAX_SAFE_INTEGER, part: 0.25, yes: true };
      span.error = name;
      endSpan(span);
    }
    const faults: string[] = [];
    const { spans, resource } = readBack(ended, (fault) => faults.push(fault));
    expect(faults).toEqual([]);
    expect(resource).toEqual({ "service.name": "test" });
    expect(spans.map(({ name }) => name)).toEqual(names.map((name) => name.slice(0, 256).toWellFormed()));
    expect(spans[0]?.attributes).toEqual({
      text: "GET /{id}",
      whole: -5,
      large: Number.MAX_SAFE_INTEGER,
      part: 0.25,
      yes: true,
      "error.type": "GET /{id}",
    });
    expect(spans[0]).toMatchObject({ kind: 2, status: { code: 2 } });
    expect(spans[0]?.parentSpanId).toBeUndefined();
  });

  test("of a response from memory has the path of its URL, and the trace of its caller", () => {
    const paths = ["/", '/raw/é"\\🙂', `/${"x".repeat(300)}`, "/a/b"];
    const shared = { name: "GET /{id}", attributes: { "http.response.status_code": 200 }, encoded: undefined };
    const place = { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", parentId: "" };
    const ended = paths.flatMap((path) =>
      ["", "?key=/secret"].map((query): InstantSpan => {
        const url = `http://127.0.0.1:3000${path}${query}`;
        return { place, atMs: 1_764_129_172_007, shared, url, requestId: undefined, size: 1_024 };
      }),
    );
    const child: InstantSpan = {
      place: { ...place, parentId: "00f067aa0ba902b7" },
      atMs: 1_764_129_172_007,
      shared: { name: '"\u0000', attributes: { part: 0.5 }, encoded: undefined },
      url: "http://127.0.0.1/child",
      requestId: 'the "request"',
      size: 0,
    };
    const faults: string[] = [];
    const { spans } = readBack([...ended, child], (fault) => faults.push(fault));
    expect(faults).toEqual([]);
    expect(spans.slice(0, -1).map(({ attributes }) => attributes["url.path"])).toEqual(
      paths.flatMap((path) => [path.slice(0, 256), path.slice(0, 256)]),
    );
    const { spanId: _, ...first } = spans[0] ?? {};
    expect(first).toEqual({
      traceId: place.traceId,
      startTimeUnixNano: "1764129172007000000",
      endTimeUnixNano: "1764129172007000000",
      flags: 1,
      kind: 2,
      name: "GET /{id}",
      attributes: { "http.response.status_code": 200, "http.response.body.size": 1_024, "url.path": "/" },
      status: {},
    } as object);
    expect(spans.at(-1)).toMatchObject({
      name: '"\u0000',
      parentSpanId: "00f067aa0ba902b7",
      attributes: {
        part: 0.5,
        "http.response.body.size": 0,
        "url.path": "/child",
        "cairn.request_id": 'the "request"',
      },
    });
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
  });

  test("of long spans, and in the memory of an earlier batch, is whole", () => {
    const writer = openWriter();
    const { begin } = createTracer({ sampler: always, record: writer.add, drop: () => undefined, isOwn: () => false });
    for (const text of ["🙂\n".repeat(100), "short"]) {
      for (let each = 0; each < 300; each += 1) {
        const span = begin(null);
        assert(span !== undefined, "every trace is recorded");
        span.attributes = { text, each };
        endSpan(span);
      }
      const batch = writer.take();
      assert(batch !== undefined, "300 spans are a batch");
      const faults: string[] = [];
      const { spans } = readExport(JSON.parse(new TextDecoder().decode(batch.body)), (fault) => faults.push(fault));
      expect(faults).toEqual([]);
      expect(spans.map(({ attributes }) => attributes["each"])).toEqual(Array.from({ length: 300 }, (_, each) => each));
      expect(spans[299]?.attributes["text"]).toBe(text.slice(0, 256).toWellFormed());
      writer.reuse(batch);
    }
  });

  test("has the times of the clock", () => {
    const ended: Span[] = [];
    const before = Date.now();
    const begin = tracerOf({
      sampler: always,
      record: (span) => ended.push(span),
      drop: () => undefined,
      isOwn: () => false,
    });
    endSpan(begin(null));
    const after = Date.now();
    const { spans } = readBack(ended, () => undefined);
    const [start, end] = [spans[0]?.startTimeUnixNano, spans[0]?.endTimeUnixNano].map((nanos) => BigInt(nanos ?? 0));
    expect((start ?? 0n) / 1_000_000n).toBeGreaterThanOrEqual(BigInt(before - 1));
    expect((end ?? 0n) / 1_000_000n).toBeLessThanOrEqual(BigInt(after + 1));
  });
});

describe("the export", () => {
  test("sends all spans, with the operator's headers", async () => {
    const collector = openCollector();
    const { begin, counts } = openExporter(collector.url);
    endMany(begin, 1_500);
    await eventually(counts, ({ exported }) => exported === 1_500);
    expect(collector.spans.length).toBe(1_500);
    expect(new Set(collector.spans.map(({ spanId }) => spanId)).size).toBe(1_500);
    expect(collector.faults).toEqual([]);
    expect(collector.headers()?.get("authorization")).toBe("Bearer key");
    expect(collector.requests()).toBeGreaterThanOrEqual(3);
  });

  test("sends nothing while there is no span", async () => {
    const collector = openCollector();
    const { exporter, counts } = openExporter(collector.url);
    await exporter.close();
    expect([collector.requests(), await counts()]).toEqual([0, {}]);
  });

  test.each([429, 502, 503, 504])("repeats a batch after status %p", async (status) => {
    let times = 0;
    const collector = openCollector(() => {
      times += 1;
      return times < 3 ? new Response(null, { status }) : Response.json({});
    });
    const { begin, counts } = openExporter(collector.url);
    endMany(begin, 1);
    await eventually(counts, ({ exported }) => exported === 1);
    expect(collector.requests()).toBe(3);
  });

  test.each([400, 401, 404, 500, 302])(
    "drops a batch after status %p, counts it, and reports it once",
    async (status) => {
      const collector = openCollector(() => new Response(null, { status }));
      const { begin, counts, lines } = openExporter(collector.url);
      endMany(begin, 2);
      await eventually(counts, ({ failed }) => failed === 2);
      endMany(begin, 3);
      await eventually(counts, ({ failed }) => failed === 5);
      expect(collector.requests()).toBe(2);
      const reports = lines.filter(({ message }) => message === "traces could not be exported");
      expect(reports.map(({ reason }) => reason)).toEqual([`status ${status}`]);
    },
  );

  test("drops a batch after the last attempt, and reports when the collector is back", async () => {
    const closed = openTraceCollector();
    closed.close();
    const { begin, counts } = openExporter(closed.url);
    endMany(begin, 1);
    await eventually(counts, ({ failed }) => failed === 1);

    let isDown = true;
    const collector = openCollector(() => (isDown ? new Response(null, { status: 500 }) : Response.json({})));
    const again = openExporter(collector.url);
    endMany(again.begin, 1);
    await eventually(again.counts, ({ failed }) => failed === 1);
    isDown = false;
    endMany(again.begin, 1);
    await eventually(again.counts, ({ exported }) => exported === 1);
    expect(again.lines.map(({ message }) => message)).toEqual([
      "traces could not be exported",
      "traces are exported again",
    ]);
  });

  test("a response without JSON counts as accepted", async () => {
    const collector = openCollector(() => new Response("<html>"));
    const { begin, counts } = openExporter(collector.url);
    endMany(begin, 1);
    await eventually(counts, ({ exported }) => exported === 1);
  });

  test.each([
    ["a text", { rejectedSpans: "2" }, { exported: 1, rejected: 2 }],
    ["a number", { rejectedSpans: 2 }, { exported: 1, rejected: 2 }],
    ["more than were sent", { rejectedSpans: "99" }, { rejected: 3 }],
    ["negative", { rejectedSpans: "-1" }, { exported: 3 }],
    ["no number", { rejectedSpans: {} }, { exported: 3 }],
  ])("spans that the collector rejects are counted: %s", async (_name, partialSuccess, expected) => {
    const collector = openCollector(() => Response.json({ partialSuccess }));
    const { begin, counts } = openExporter(collector.url);
    endMany(begin, 3);
    await eventually(counts, (count) => Object.keys(count).length > 0);
    expect(await counts()).toEqual(expected);
  });

  test("a slow collector fills the queue; more spans are dropped and counted, and nothing waits", async () => {
    const hang = Promise.withResolvers<void>();
    const collector = openCollector(() => hang.promise.then(() => Response.json({})));
    const { begin, counts } = openExporter(collector.url);
    endMany(begin, 1);
    await eventually(
      async () => collector.requests(),
      (requests) => requests === 1,
    );
    endMany(begin, spansWaitingMax + 10);
    expect(await counts()).toEqual({ queue_full: 10 });
    hang.resolve();
    await eventually(counts, ({ exported = 0 }) => exported === spansWaitingMax + 1);
  });

  test("an attempt has a timeout", async () => {
    const hang = Promise.withResolvers<void>();
    const collector = openCollector(() => hang.promise.then(() => Response.json({})));
    const { begin, counts } = openExporter(collector.url, { timeoutMs: 20 });
    endMany(begin, 1);
    await eventually(counts, ({ failed }) => failed === 1);
    expect(collector.requests()).toBe(3);
    hang.resolve();
  });
});

describe("the stop", () => {
  test("sends what is queued", async () => {
    const collector = openCollector();
    const { begin, counts, exporter } = openExporter(collector.url, { everyMs: 60_000 });
    await eventually(
      async () => collector.requests(),
      () => true,
    );
    endMany(begin, 100);
    await exporter.close();
    expect([collector.spans.length, await counts()]).toEqual([100, { exported: 100 }]);
  });

  test("sends the batch whose attempt it interrupts", async () => {
    let requests = 0;
    const first = Promise.withResolvers<void>();
    const collector = openCollector(() => {
      requests += 1;
      return requests === 1 ? first.promise.then(() => Response.json({})) : Response.json({});
    });
    const { begin, counts, exporter } = openExporter(collector.url);
    endMany(begin, 1);
    await eventually(
      async () => collector.requests(),
      (count) => count === 1,
    );
    await exporter.close();
    first.resolve();
    expect([requests, await counts()]).toEqual([2, { exported: 1 }]);
  });

  test("drops and counts what a collector that is down does not take, and what ends later", async () => {
    const closed = openTraceCollector();
    closed.close();
    const { begin, counts, exporter } = openExporter(closed.url, { everyMs: 60_000 });
    endMany(begin, 700);
    await exporter.close();
    endMany(begin, 1);
    const { failed = 0, queue_full = 0 } = await counts();
    expect([failed, queue_full]).toEqual([700, 1]);
  });
});

describe("calls to other machines", () => {
  const timeouts = { firstByteMs: 10_000, stallMs: 10_000, totalMs: 10_000 };

  /** A machine, and the ended spans of calls to it; `isOwn` says whose it is. */
  function openMachine(isOwn: boolean, respond: (request: Request) => Response) {
    const received: (string | null)[] = [];
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: (request) => {
        received.push(request.headers.get("traceparent"));
        return respond(request);
      },
    });
    opened.push(() => server.stop(true));
    const ended: Span[] = [];
    const origin = `http://127.0.0.1:${server.port}`;
    const begin = tracerOf({
      sampler: always,
      record: (span) => ended.push(span),
      drop: () => undefined,
      isOwn: (asked) => isOwn && asked === origin,
    });
    return { origin, received, ended, root: begin(null), port: server.port ?? 0 };
  }
  const never = new AbortController().signal;

  test("a streamed body has a span with its bytes, which ends with the body", async () => {
    const { origin, ended, root, received, port } = openMachine(true, () => new Response("x".repeat(5_000)));
    const http = openHttp(timeouts);
    opened.push(http.close);
    const stream = await inSpan(root, () => http.stream({ method: "GET", url: `${origin}/secret` }, never));
    expect([stream.kind, ended.length]).toEqual(["stream", 0]);
    if (stream.kind === "stream") for await (const _ of stream.body);
    expect(ended.map(({ error }) => error)).toEqual([undefined]);
    expect(ended.map(({ attributes }) => attributes)).toEqual([
      {
        "http.request.method": "GET",
        "server.address": "127.0.0.1",
        "server.port": port,
        "http.response.status_code": 200,
        "http.response.body.size": 5_000,
      },
    ]);
    expect(received).toEqual([`00-${root.trace.traceId}-${ended[0]?.spanId}-01`]);
  });

  test("a reader that leaves ends the span of a stream", async () => {
    const { origin, ended, root } = openMachine(true, () => new Response("x".repeat(5_000)));
    const http = openHttp(timeouts);
    opened.push(http.close);
    const stream = await inSpan(root, () => http.stream({ method: "GET", url: origin }, never));
    if (stream.kind === "stream") stream.cancel();
    expect(ended.map(({ attributes }) => attributes["http.response.body.size"])).toEqual([0]);
  });

  test("a status of an error, a fault and an aborted call are errors of their spans", async () => {
    const { origin, ended, root } = openMachine(true, () => new Response(null, { status: 404 }));
    const http = openHttp(timeouts);
    opened.push(http.close);
    const closed = openTraceCollector();
    closed.close();
    const aborted = AbortSignal.abort(new DOMException("left", "AbortError"));
    await inSpan(root, async () => {
      await http.whole({ method: "GET", url: origin }, 10, never);
      await http.whole({ method: "GET", url: closed.url }, 10, never);
      await http.whole({ method: "GET", url: origin }, 10, aborted).catch(() => undefined);
    });
    expect(ended.map(({ error }) => error)).toEqual(["404", "connect", "AbortError"]);
  });

  test("machines of others get no traceparent", async () => {
    const stranger = openMachine(false, () => new Response("x"));
    const learned = openMachine(true, () => new Response("x"));
    const { port } = learned;
    const reach = async () =>
      ({ kind: "reached", url: `http://127.0.0.1:${port}`, host: "127.0.0.1", serverName: "127.0.0.1" }) as const;
    const [http, reaching] = [openHttp(timeouts), openHttp(timeouts, reach)];
    opened.push(http.close, reaching.close);
    await inSpan(stranger.root, () => http.whole({ method: "GET", url: stranger.origin }, 10, never));
    await inSpan(learned.root, () => reaching.whole({ method: "GET", url: learned.origin }, 10, never));
    expect([stranger.received, learned.received]).toEqual([[null], [null]]);
    expect([stranger.ended.length, learned.ended.length]).toEqual([1, 1]);
  });
});

describe("spans", () => {
  test("steps are children of the step that they are in, also after waits", async () => {
    const collector = openCollector();
    const { begin, counts } = openExporter(collector.url);
    const root = begin(null);
    await inSpan(root, async () => {
      await traced("outer", async () => {
        await Promise.resolve();
        await traced("inner", async () => undefined);
      });
      await traced("failing", () => Promise.reject(new TypeError("no"))).catch(() => undefined);
    });
    endSpan(root);
    await eventually(counts, ({ exported }) => exported === 4);
    const idOf = (name: string) => collector.spans.find((span) => span.name === name)?.spanId;
    expect(collector.spans.map(({ name, parentSpanId, status }) => [name, parentSpanId, status.code])).toEqual([
      ["inner", idOf("outer"), undefined],
      ["outer", idOf("request"), undefined],
      ["failing", idOf("request"), 2],
      ["request", undefined, undefined],
    ]);
    expect(new Set(collector.spans.map(({ traceId }) => traceId)).size).toBe(1);
  });

  test("a trace has at most 200 steps; more are dropped and counted", async () => {
    const collector = openCollector();
    const { begin, counts } = openExporter(collector.url);
    const root = begin(null);
    inSpan(root, () => {
      for (let step = 0; step < 203; step += 1) {
        const span = startSpan("step");
        if (span !== undefined) endSpan(span);
      }
    });
    endSpan(root);
    await eventually(counts, ({ exported }) => exported === 201);
    expect(await counts()).toEqual({ exported: 201, trace_full: 3 });
  });

  test("outside of a request there is no span", async () => {
    expect(startSpan("step")).toBeUndefined();
    expect(await traced("step", async (span) => span)).toBeUndefined();
  });
});
