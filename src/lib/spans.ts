/**
 * Spans: the timed steps of a request. The span of the current step is part of the asynchronous context, so that a call
 * to a thread or to another machine finds its parent without a parameter.
 *
 * Without traces there is no current span, and a step costs one look-up (6 ns, measured).
 * Source: OpenTelemetry, "Tracing API"; docs/decisions/101-traces.md.
 * @module
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { Failure } from "../failures.ts";
import { newSpanId, type RemoteParent, readTraceparent, type Sampler, writeTraceparent } from "./trace-context.ts";

/** As numbered by OTLP. */
export const spanKinds = { internal: 1, server: 2, client: 3 } as const;
type SpanKind = (typeof spanKinds)[keyof typeof spanKinds];

/** Values of a span by name. An integer is exported as one. */
export type SpanAttributes = Record<string, string | number | boolean>;

/** The name and attributes of many spans: one object for all spans with the same values. */
export type SharedValues = {
  readonly name: string;
  /** At least one. */
  readonly attributes: Readonly<SpanAttributes>;
  /** Set by the exporter, which encodes the values once. */
  encoded: Uint8Array | undefined;
};

/** The place of a request in a trace that is recorded. */
export type TracePlace = Readonly<{
  traceId: string;
  /** "" for the first span of a trace. */
  parentId: string;
}>;

/** The attribute with the id of a request. */
export const requestIdAttribute = "cairn.request_id";

/**
 * The span of a request that was responded to at once, without a duration and without steps. It is small, because most
 * requests are such ones.
 */
export type InstantSpan = Readonly<{
  place: TracePlace;
  /** Unix milliseconds. */
  atMs: number;
  shared: SharedValues;
  /** The URL of the request, whose path becomes an attribute. */
  url: string;
  /** Of the request, if it has one. */
  requestId: string | undefined;
  /** Size of the body. Bytes. */
  size: number;
}>;

/** The part of a trace that happens in this program. */
type Trace = {
  readonly traceId: string;
  readonly isSampled: boolean;
  /** Added to `performance.now()`, which does not jump, gives Unix milliseconds. */
  readonly epochMs: number;
  readonly tracer: Pick<TracerOptions, "record" | "drop" | "isOwn">;
  children: number;
  /** When the span of the request ended; `performance.now()`. */
  endedMs: number;
};

/** A step in progress. */
export type Span = {
  readonly trace: Trace;
  readonly spanId: string;
  /** "" for the first span of a trace. */
  readonly parentId: string;
  readonly kind: SpanKind;
  name: string;
  /** `performance.now()`. */
  startMs: number;
  endMs: number;
  attributes: SpanAttributes;
  /** Name and further attributes, in place of `name`. */
  shared: SharedValues | undefined;
  /** The value of `error.type`; `undefined` for a success. */
  error: string | undefined;
};

export type TracerOptions = Readonly<{
  sampler: Sampler;
  /** Receives each ended span. Must not throw. */
  record: (span: Span) => void;
  /** Notified of a span that exceeds the limits of its trace. */
  drop: () => void;
  /** Whether a `traceparent` is sent to this origin. */
  isOwn: (origin: string) => boolean;
}>;

export type Tracer = Readonly<{
  /**
   * Begins the span of a request, in the trace of its `traceparent` or in a new one. `undefined` for a new trace that
   * is not recorded: the sources of such a request get no `traceparent`, so that it costs nothing.
   */
  begin: (traceparent: string | null) => Span | undefined;
  /** The place of a request that is responded to at once; `undefined` if it is not recorded. */
  placeOf: (traceparent: string | null) => TracePlace | undefined;
}>;

/** Child spans of one request; a response of many chunks has more fetches than a reader of its trace can use. */
const childrenMax = 200;

/**
 * Children begin at most this long after the response: a body may be streamed from sources. A background task that a
 * request has started keeps its context for longer. Milliseconds.
 */
const childrenMs = 60_000;

export function createTracer({ sampler, ...tracer }: TracerOptions): Tracer {
  return {
    begin: (traceparent) => {
      const parent = traceparent === null ? undefined : readTraceparent(traceparent);
      const traceId = parent === undefined ? sampler.begin() : parent.traceId;
      if (traceId === undefined) return undefined;
      const isSampled = parent === undefined || sampler.continues(parent);
      // The clocks are not read for a trace that is not recorded.
      const startMs = isSampled ? performance.now() : 0;
      const epochMs = isSampled ? Date.now() - startMs : 0;
      const trace = traceOf(traceId, isSampled, epochMs, tracer);
      return spanOf(trace, parent?.spanId ?? "", spanKinds.server, "request", startMs, {});
    },
    placeOf: (traceparent) => {
      const parent = traceparent === null ? undefined : readTraceparent(traceparent);
      if (parent !== undefined)
        return sampler.continues(parent) ? { traceId: parent.traceId, parentId: parent.spanId } : undefined;
      const traceId = sampler.begin();
      return traceId === undefined ? undefined : { traceId, parentId: "" };
    },
  };
}

function traceOf(traceId: string, isSampled: boolean, epochMs: number, tracer: Trace["tracer"]): Trace {
  return { traceId, isSampled, epochMs, tracer, children: 0, endedMs: Number.POSITIVE_INFINITY };
}

function spanOf(
  trace: Trace,
  parentId: string,
  kind: SpanKind,
  name: string,
  startMs: number,
  attributes: SpanAttributes,
): Span {
  const spanId = newSpanId();
  return {
    trace,
    spanId,
    parentId,
    kind,
    name,
    startMs,
    endMs: startMs,
    attributes,
    shared: undefined,
    error: undefined,
  };
}

const context = new AsyncLocalStorage<Span | undefined>();

/** Runs work whose steps are children of the span. */
export function inSpan<Result>(span: Span, work: () => Result): Result {
  return context.run(span, work);
}

/** Runs work that belongs to no request, such as a batch of several. */
export function outsideSpans<Result>(work: () => Result): Result {
  return context.getStore() === undefined ? work() : context.run(undefined, work);
}

/** Begins a child of the current span; `undefined` if no trace is recorded here. The caller must end it. */
export function startSpan(name: string, kind: SpanKind = spanKinds.internal): Span | undefined {
  const parent = context.getStore();
  if (parent === undefined || !parent.trace.isSampled) return undefined;
  const { trace } = parent;
  const startMs = performance.now();
  if (trace.children >= childrenMax || startMs > trace.endedMs + childrenMs) {
    trace.tracer.drop();
    return undefined;
  }
  trace.children += 1;
  return spanOf(trace, parent.spanId, kind, name, startMs, {});
}

/**
 * Ends a span, once. Spans of a trace that is not sampled are not recorded.
 *
 * @param endMs - `performance.now()`, by default read here.
 */
export function endSpan(span: Span, endMs?: number): void {
  const { trace } = span;
  if (!trace.isSampled) return;
  span.endMs = endMs ?? performance.now();
  if (span.kind === spanKinds.server) trace.endedMs = span.endMs;
  trace.tracer.record(span);
}

/** Runs one step as a span of its own. Without a recorded trace, runs only the work. */
export function traced<Result>(name: string, work: (span: Span | undefined) => Promise<Result>): Promise<Result> {
  const span = startSpan(name);
  return span === undefined ? work(undefined) : runTraced(span, work);
}

async function runTraced<Result>(span: Span, work: (span: Span) => Promise<Result>): Promise<Result> {
  try {
    return await context.run(span, () => work(span));
  } catch (error) {
    span.error = errorTypeOf(error);
    throw error;
  } finally {
    endSpan(span);
  }
}

/** The code of a failure, or the name of another error. */
export function errorTypeOf(error: unknown): string {
  if (error instanceof Failure) return error.code;
  return error instanceof Error ? error.name : "error";
}

/** The `traceparent` of a call to an origin; `undefined` without a trace, and for machines of others. */
export function traceparentFor(origin: string, call: Span | undefined): string | undefined {
  const span = call ?? context.getStore();
  if (span === undefined || !span.trace.tracer.isOwn(origin)) return undefined;
  const { traceId, isSampled } = span.trace;
  const parent: RemoteParent = { traceId, spanId: span.spanId, isSampled };
  return writeTraceparent(parent);
}

/** Whether calls of this context belong to a traced request, recorded or not. */
export function isTraced(): boolean {
  return context.getStore() !== undefined;
}
