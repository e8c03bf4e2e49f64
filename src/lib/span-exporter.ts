/**
 * Sends ended spans to a collector by OTLP over HTTP, in batches and in the background. Requests never wait for it: a
 * span that finds the queue full is dropped and counted.
 * Source: OTLP 1.5, "OTLP/HTTP Request", "OTLP/HTTP Response", "Failures"; docs/decisions/101-traces.md.
 * @module
 */
import { type Http, openHttp } from "./http-client.ts";
import { isJsonObject, readJson } from "./json.ts";
import type { Log } from "./log.ts";
import { openBackgroundLoop } from "./loop.ts";
import type { Metrics } from "./metrics.ts";
import type { SpanBatch, SpanWriter } from "./otlp-json.ts";
import { type RetryPlan, retry } from "./retry.ts";
import type { InstantSpan, Span } from "./spans.ts";
import { withDeadline } from "./stop.ts";

export type SpanExporter = Readonly<{
  /** Queues a span, or drops it. Never throws. */
  add: (span: Span | InstantSpan) => void;
  /** Counts a span that was dropped before it began. */
  drop: () => void;
  /** Sends what is queued, for at most {@link flushMsMax}. */
  close: () => Promise<void>;
}>;

type SpanExporterOptions = Readonly<{
  /** The URL of the collector's traces. */
  url: string;
  headers: Readonly<Record<string, string>>;
  writer: SpanWriter;
  metrics: Metrics;
  log: Log;
  random: () => number;
  /** Time between two batches, unless more than a batch is waiting. Milliseconds. */
  everyMs?: number;
  attempts?: RetryPlan;
  /** Timeout of an attempt. Milliseconds. */
  timeoutMs?: number;
}>;

/** Spans that wait in memory; about 700 bytes each. */
export const spansWaitingMax = 8_192;

/** Spans of one request, as by the default of the OpenTelemetry SDKs. */
const spansPerBatch = 512;

const everyMsDefault = 1_000;
const attemptsDefault: RetryPlan = { attempts: 4, firstMs: 1_000, longestMs: 5_000 };
/** The default of `OTEL_EXPORTER_OTLP_TIMEOUT`. */
const timeoutMsDefault = 10_000;

/** Longest delay of a stop. Milliseconds. */
const flushMsMax = 3_000;

/** A response is a short record. */
const responseBytesMax = 64 * 2 ** 10;

/** Outcomes of spans; the label of the metric. */
const outcomes = ["exported", "queue_full", "trace_full", "failed", "rejected"] as const;

/** Result of one attempt. */
type Sent =
  | Readonly<{ kind: "accepted"; rejected: number }>
  | Readonly<{ kind: "failed"; reason: string; isTemporary: boolean }>;

export function openSpanExporter(options: SpanExporterOptions): SpanExporter {
  const { metrics, log, random, everyMs = everyMsDefault, timeoutMs = timeoutMsDefault } = options;
  const http = openHttp({ firstByteMs: timeoutMs, stallMs: timeoutMs, totalMs: timeoutMs });
  const queue = createQueue(options.writer);
  const spans = metrics.counter({
    name: "trace_spans_total",
    help: "Ended spans by outcome: exported; or dropped because of a limit, or by the collector.",
    labels: { outcome: outcomes },
  });
  const count = (outcome: (typeof outcomes)[number], by = 1) => {
    if (by > 0) spans.inc({ outcome }, by);
  };
  const reports = createReports(log);

  const settle = (batch: SpanBatch, sent: Sent): void => {
    reports.note(sent);
    const rejected = sent.kind === "failed" ? 0 : Math.min(sent.rejected, batch.count);
    const failed = sent.kind === "failed" ? batch.count : 0;
    count("failed", failed);
    count("rejected", rejected);
    count("exported", batch.count - rejected - failed);
    // The memory of a failed batch may still be read by an attempt that timed out.
    if (sent.kind === "accepted") options.writer.reuse(batch);
  };
  const exportBatch = async (signal: AbortSignal): Promise<void> => {
    const batch = queue.take();
    if (batch === undefined) return;
    const attempt = () => send(http, options, batch.body, signal);
    const isFinal = (sent: Sent) => sent.kind === "accepted" || !sent.isTemporary;
    try {
      settle(batch, await retry(options.attempts ?? attemptsDefault, signal, random, attempt, isFinal));
    } catch (error) {
      if (!signal.aborted) throw error;
      queue.putBack(batch); // the last attempt is made by `close`
    }
  };

  const loop = openBackgroundLoop(
    "traces",
    async (signal) => {
      await exportBatch(signal);
      return queue.hasFullBatch() ? 0 : everyMs;
    },
    (error) => {
      log.error("defect", { error });
      return everyMs;
    },
  );
  let isClosed = false;
  const flush = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      const batch = queue.take();
      if (batch === undefined) break;
      const sent = await send(http, options, batch.body, signal).catch(stopped);
      settle(batch, sent);
      if (sent.kind === "failed") break;
    }
    count("failed", queue.waiting());
  };

  return {
    add: (span) => {
      if (isClosed || queue.waiting() >= spansWaitingMax) count("queue_full");
      else if (queue.add(span)) loop.wake();
    },
    drop: () => count("trace_full"),
    close: async () => {
      await loop.close();
      isClosed = true;
      await withDeadline(new AbortController().signal, flushMsMax, flush);
      http.close();
    },
  };
}

/** Batches in order, the last of which is still written. */
function createQueue(writer: SpanWriter) {
  const full: SpanBatch[] = [];
  let waiting = 0;
  return {
    /** @returns Whether a batch has become full. */
    add: (span: Span | InstantSpan): boolean => {
      writer.add(span);
      waiting += 1;
      if (writer.count() < spansPerBatch) return false;
      const batch = writer.take();
      if (batch !== undefined) full.push(batch);
      return true;
    },
    /** The oldest batch, which is smaller than a full one if there is none. */
    take: (): SpanBatch | undefined => {
      const batch = full.shift() ?? writer.take();
      waiting -= batch?.count ?? 0;
      return batch;
    },
    putBack: (batch: SpanBatch): void => {
      full.unshift(batch);
      waiting += batch.count;
    },
    hasFullBatch: () => full.length > 0,
    /** Number of spans. */
    waiting: () => waiting,
  };
}

/** The call has ended with the deadline of the stop, which is its reason. */
function stopped(): Sent {
  return { kind: "failed", reason: "the program stopped", isTemporary: false };
}

/** Statuses after which a batch may be sent again. Source: OTLP 1.5, "Retryable Response Codes". */
const temporaryStatuses: ReadonlySet<number> = new Set([429, 502, 503, 504]);

async function send(
  http: Http,
  { url, headers }: SpanExporterOptions,
  body: Uint8Array<ArrayBuffer>,
  signal: AbortSignal,
): Promise<Sent> {
  const all = { ...headers, "content-type": "application/json" };
  const response = await http.whole({ method: "POST", url, headers: all, body }, responseBytesMax, signal);
  if (response.kind === "fault") return { kind: "failed", reason: response.detail, isTemporary: true };
  const { status } = response;
  if (status >= 200 && status < 300) return { kind: "accepted", rejected: rejectedOf(response.body) };
  return { kind: "failed", reason: `status ${status}`, isTemporary: temporaryStatuses.has(status) };
}

/** Spans that the collector rejected of an accepted batch. Source: OTLP 1.5, "Partial Success". */
function rejectedOf(body: Uint8Array): number {
  const record = readJson(new TextDecoder().decode(body));
  const partial = isJsonObject(record) ? record["partialSuccess"] : undefined;
  const rejected = Number(isJsonObject(partial) ? (partial["rejectedSpans"] ?? 0) : 0);
  return Number.isSafeInteger(rejected) && rejected > 0 ? rejected : 0;
}

/** Logs when the export begins to fail, and when it works again; not each batch. */
function createReports(log: Log) {
  let isFailing = false;
  return {
    note: (sent: Sent): void => {
      if (sent.kind === "failed" && !isFailing) log.warn("traces could not be exported", { reason: sent.reason });
      if (sent.kind === "accepted" && isFailing) log.info("traces are exported again");
      isFailing = sent.kind === "failed";
    },
  };
}
