/**
 * HTTP client: a timeout for every phase, a size limit for every body, a name for every fault. It does not follow
 * redirects, and buffers no more than the caller allows.
 *
 * Decoded bodies have a size limit too: 1.7 kB of a content coding can expand to a gigabyte, and the runtime's own
 * decoder has no limit.
 * Source: RFC 9110 §8.4.1 (content codings), RFC 8878 (zstd).
 * @module
 */
import { promisify } from "node:util";
import { Failure } from "../failures.ts";
import { type TracedCall, traceCall } from "./http-spans.ts";
import { nodeZlib } from "./late-modules.ts";
import { createSemaphore, type Release } from "./semaphore.ts";
import { isTimeout, timeout, withDeadline } from "./stop.ts";

/** Timeouts of the phases of a call. Milliseconds. */
export type HttpTimeouts = Readonly<{
  firstByteMs: number; // connecting, sending, and waiting for the headers of the response
  stallMs: number; // maximum pause between two pieces of a body
  totalMs: number; // the complete call
}>;

/** Why a call has no response. It may succeed on a retry, or at another machine. */
export const faultReasons = [
  "connect", // connection closed or reset, unknown host, invalid certificate
  "timeout",
  "status", // 5xx, 408, 425, 429, or a status that the call does not know
  "too_large",
  "malformed", // a response that is not valid
  "wrong", // a valid response that is provably false
  "cut", // a body that ended before its length
  "busy", // too many calls are waiting
] as const;
export type FaultReason = (typeof faultReasons)[number];

/** A call without a response. */
export type Fault = Readonly<{ kind: "fault"; reason: FaultReason; status?: number; detail: string }>;

export type HttpRequest = Readonly<{
  method: "GET" | "HEAD" | "POST";
  url: string;
  headers?: Readonly<Record<string, string>>;
  /** Bytes, or a file, which is read while it is sent. */
  body?: Uint8Array<ArrayBuffer> | Blob;
  /**
   * Returns a body with its Content-Encoding: the coding of content by id is that of its tag. The body of a stream is
   * never decoded.
   */
  keepsCoding?: true;
  /** Reserves memory for bytes of a body before they are stored. The call rejects with its error. */
  hold?: (bytes: number) => Promise<void>;
}>;

/** A whole response of any status. */
export type HttpResponse = Readonly<{ kind: "response"; status: number; headers: Headers; body: Uint8Array }>;

/**
 * A response with a body that is still arriving. The body throws Failure `source_failed` when it is cut,
 * `source_timeout` when it stalls. A reader that stops before the end must call `cancel`.
 */
export type HttpStream = Readonly<{
  kind: "stream";
  status: number;
  headers: Headers;
  body: AsyncIterable<Uint8Array>;
  cancel: () => void;
}>;

/** A checked address for a URL. */
export type Reached = Readonly<{
  kind: "reached";
  /** The URL with the checked address. */
  url: string;
  /** The `Host` header. */
  host: string;
  /** The required name of the certificate. */
  serverName: string;
}>;

/** Resolves and checks the address of a URL before each connection. */
export type Reach = (url: string, signal: AbortSignal) => Promise<Reached | Fault>;

/** A client of one machine. A call rejects only with the reason of its signal, or the error of `hold`. */
export type Http = Readonly<{
  /** Waits for the complete response, with a body of at most `bodyBytesMax`. */
  whole: (request: HttpRequest, bodyBytesMax: number, signal: AbortSignal) => Promise<HttpResponse | Fault>;
  /** Resolves at the headers. `stallMs` bounds the pauses of the body, `totalMs` does not apply to it. */
  stream: (request: HttpRequest, signal: AbortSignal) => Promise<HttpStream | Fault>;
  /** Aborts all calls. */
  close: () => void;
}>;

/** Maximum number of concurrent calls to one machine. */
const callsAtOnceMax = 64;

/** Maximum number of waiting calls; beyond it, a call fails at once. */
const callsWaitingMax = 4_096;

const allBusy = fault("busy", `${callsAtOnceMax} calls are under way`);

/** A running call: its permit, and the signal that ends it. */
type Call = Readonly<{
  signal: AbortSignal; // aborted by the caller, by close, or by a timeout
  phase: (ms: number) => void; // starts the next phase with its timeout
  rest: () => void; // stops the timeout while the caller is reading
  stop: (reason: unknown) => void;
  end: () => void;
}>;

/**
 * Opens a client.
 *
 * @param timeouts - For every call; the resolution of the address counts as part of the first phase.
 * @param reach - Called before every connection; without it, the runtime resolves the URL.
 */
export function openHttp(timeouts: HttpTimeouts, reach?: Reach): Http {
  const life = new AbortController();
  const semaphore = createSemaphore(callsAtOnceMax, callsWaitingMax);

  /** Streams hold their permits while their readers are slow. @returns `undefined` after the longest wait. */
  async function waitForPermit(signal: AbortSignal): Promise<Release | undefined> {
    try {
      return await withDeadline(signal, timeouts.totalMs, async (own) => await semaphore.take(own));
    } catch (error) {
      if (signal.aborted || !isTimeout(error)) throw error;
      return undefined;
    }
  }

  async function begin(signal: AbortSignal): Promise<Call | Fault> {
    const permit = semaphore.atWork() < callsAtOnceMax ? semaphore.take(signal) : waitForPermit(signal);
    const release = await permit;
    return release === undefined ? allBusy : beginCall(release, signal, life.signal);
  }

  async function whole(request: HttpRequest, bodyBytesMax: number, signal: AbortSignal): Promise<HttpResponse | Fault> {
    const call = await begin(signal);
    if ("kind" in call) return call;
    const { stallMs } = timeouts;
    const total = setTimeout(() => call.stop(timeout(timeouts.totalMs)), timeouts.totalMs);
    try {
      const asked = await ask(request, call, timeouts.firstByteMs, reach);
      const reply =
        asked.kind === "fault"
          ? asked
          : await readWhole({ request, response: asked.response, bodyBytesMax, stallMs }, call);
      signal.throwIfAborted();
      return reply;
    } finally {
      clearTimeout(total);
      call.end();
    }
  }

  async function stream(request: HttpRequest, signal: AbortSignal, onEnd?: BodyEnd): Promise<HttpStream | Fault> {
    const call = await begin(signal);
    if ("kind" in call) return call;
    const asked = await ask(request, call, timeouts.firstByteMs, reach);
    if (asked.kind === "response") return openStream(request, asked.response, call, timeouts.stallMs, onEnd);
    call.end();
    signal.throwIfAborted();
    return asked;
  }

  const isStranger = reach !== undefined;
  return {
    whole(request, bodyBytesMax, signal) {
      const trace = traceCall(request, isStranger);
      if (trace === undefined) return whole(request, bodyBytesMax, signal);
      return noting(trace, whole(trace.request, bodyBytesMax, signal));
    },
    stream(request, signal) {
      const trace = traceCall(request, isStranger);
      if (trace === undefined) return stream(request, signal);
      return noting(trace, stream(trace.request, signal, trace.streamed));
    },
    close: () => life.abort(new DOMException("the client was closed", "AbortError")),
  };
}

/** Notes the result of a call in its span. */
async function noting<Reply extends HttpResponse | HttpStream | Fault>(
  trace: TracedCall<HttpRequest>,
  call: Promise<Reply>,
): Promise<Reply> {
  try {
    const reply = await call;
    trace.replied(reply);
    return reply;
  } catch (error) {
    trace.failed(error);
    throw error;
  }
}

export function fault(reason: FaultReason, detail: string, status?: number): Fault {
  return { kind: "fault", reason, detail, ...(status === undefined ? {} : { status }) };
}

/** The failure that clients of this server receive for a fault of another server. */
export function failureOf(problem: Fault, context: Readonly<Record<string, unknown>> = {}): Failure {
  const code = problem.reason === "timeout" ? "source_timeout" : problem.reason === "busy" ? "busy" : "source_failed";
  const status = problem.status === undefined ? {} : { sourceStatus: problem.status };
  return new Failure(code, { ...context, reason: problem.reason, detail: problem.detail, ...status });
}

/** The fault that a source's failure reports, for a caller that tries several sources. */
export function faultFrom({ code, message, context }: Failure): Fault {
  const reason = code === "source_timeout" ? "timeout" : code === "busy" ? "busy" : "status";
  return fault(reason, String(context["detail"] ?? message));
}

function beginCall(release: Release, caller: AbortSignal, life: AbortSignal): Call {
  const controller = new AbortController();
  const callerStops = () => controller.abort(caller.reason);
  const lifeStops = () => controller.abort(life.reason);
  caller.addEventListener("abort", callerStops, { once: true });
  life.addEventListener("abort", lifeStops, { once: true });
  if (caller.aborted) callerStops();
  if (life.aborted) lifeStops();
  const clock = createPhases((ms) => controller.abort(timeout(ms)));
  return {
    signal: controller.signal,
    phase: clock.begin,
    rest: clock.rest,
    stop: (reason) => controller.abort(reason),
    end() {
      clock.rest();
      caller.removeEventListener("abort", callerStops);
      life.removeEventListener("abort", lifeStops);
      release();
    },
  };
}

/** One timer for all phases: a phase that starts before the timeout of the last one only moves the deadline. */
function createPhases(onLate: (ms: number) => void) {
  let timer: Timer | undefined;
  let phaseMs = 0;
  let endsAt = 0;
  function look(): void {
    const left = endsAt - performance.now();
    if (left <= 0) onLate(phaseMs);
    else timer = setTimeout(look, left);
  }
  return {
    begin(ms: number) {
      const isEarlier = performance.now() + ms < endsAt;
      phaseMs = ms;
      endsAt = performance.now() + ms;
      if (timer !== undefined && !isEarlier) return;
      clearTimeout(timer);
      timer = setTimeout(look, ms);
    },
    rest() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}

type Asked = Readonly<{ kind: "response"; response: Response }> | Fault;

async function ask(request: HttpRequest, call: Call, firstByteMs: number, reach: Reach | undefined): Promise<Asked> {
  call.phase(firstByteMs);
  try {
    const reached = await reach?.(request.url, call.signal);
    if (reached?.kind === "fault") return reached;
    const response = await fetch(reached?.url ?? request.url, {
      method: request.method,
      headers: {
        // The length of an encoded body would differ from the announced length.
        "accept-encoding": "identity",
        ...request.headers,
        ...(reached === undefined ? {} : { host: reached.host }),
      },
      ...(reached === undefined ? {} : { tls: { serverName: reached.serverName } }),
      ...(request.body === undefined ? {} : { body: request.body }),
      redirect: "manual",
      decompress: false, // the runtime's decoder has no limit
      signal: call.signal,
    });
    return { kind: "response", response };
  } catch (error) {
    return faultOf(error, call.signal, "connect");
  }
}

/** The fault that ended a call. The caller checks its own signal first. */
function faultOf(error: unknown, signal: AbortSignal, otherwise: "connect" | "cut"): Fault {
  if (signal.aborted && isTimeout(signal.reason)) return fault("timeout", messageOf(signal.reason));
  return fault(otherwise, messageOf(error));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The announced length of a body, if any. */
function announcedLength(request: HttpRequest, response: Response): number | undefined {
  const text = response.headers.get("content-length");
  const isBodiless = request.method === "HEAD" || response.status === 204 || response.status === 304;
  if (isBodiless || text === null || !/^\d{1,15}$/.test(text)) return undefined;
  return Number(text);
}

type Reading = Readonly<{ request: HttpRequest; response: Response; bodyBytesMax: number; stallMs: number }>;

async function readWhole(reading: Reading, call: Call): Promise<HttpResponse | Fault> {
  const { request, bodyBytesMax } = reading;
  const hold = createHold(request, call);
  const reply = await readAsSent(reading, call, hold);
  if (reply.kind === "fault" || request.keepsCoding === true) return reply;
  const { status, headers } = reply;
  const decoded = await decodeBody(reply.body, headers.get("content-encoding"), bodyBytesMax);
  if (decoded.kind === "too_large") return tooLarge(bodyBytesMax, status);
  if (decoded.kind === "malformed") return fault("malformed", decoded.detail, status);
  await hold(decoded.bytes.length, 1);
  return { kind: "response", status, headers, body: decoded.bytes };
}

function tooLarge(bodyBytesMax: number, status: number): Fault {
  return fault("too_large", `more than ${bodyBytesMax} bytes`, status);
}

async function readAsSent(reading: Reading, call: Call, hold: Hold): Promise<HttpResponse | Fault> {
  const { request, response, bodyBytesMax, stallMs } = reading;
  const announced = announcedLength(request, response);
  if (announced !== undefined && announced > bodyBytesMax) {
    call.stop(new DOMException("the body is too large", "AbortError"));
    return fault("too_large", `${announced} bytes, at most ${bodyBytesMax} are accepted`, response.status);
  }
  await hold(announced ?? 0, 1);
  return isReadAtOnce(announced, response.headers)
    ? readAtOnce(response, announced, stallMs, call)
    : readPieces(reading, announced, call, hold);
}

async function readPieces(
  { response, bodyBytesMax, stallMs }: Reading,
  announced: number | undefined,
  call: Call,
  hold: Hold,
): Promise<HttpResponse | Fault> {
  const { status, headers } = response;
  const pieces: Uint8Array[] = [];
  let size = 0;
  try {
    call.phase(stallMs);
    for await (const piece of response.body ?? []) {
      size += piece.length;
      if (size > bodyBytesMax) {
        call.stop(new DOMException("the body is too large", "AbortError"));
        return tooLarge(bodyBytesMax, status);
      }
      pieces.push(piece);
      await hold(size, holdStepBytes);
      call.phase(stallMs);
    }
  } catch (error) {
    if (error instanceof Failure) throw error; // from `hold`
    // The loop ends the stream of the body, which the aborted call has failed already.
    return size > bodyBytesMax ? tooLarge(bodyBytesMax, status) : faultOf(error, call.signal, "cut");
  }
  if (call.signal.aborted) return faultOf(call.signal.reason, call.signal, "cut");
  if (announced !== undefined && size !== announced) return fault("cut", `${size} of ${announced} bytes came`);
  return { kind: "response", status, headers, body: join(pieces, size) };
}

/** Bodies up to this size are read in one call, for half the processor time of reading them in pieces. Bytes. */
const atOnceBytesMax = 2 ** 20;

/** The slowest body that is read in one call, which does not show pauses between pieces. Bytes a millisecond. */
const atOnceBytesPerMs = 16;

/** Whether a body is small. A length beside a transfer coding does not bound a body (RFC 9112 §6.3). */
function isReadAtOnce(announced: number | undefined, headers: Headers): announced is number {
  return announced !== undefined && announced <= atOnceBytesMax && headers.get("transfer-encoding") === null;
}

/** Reads a body whose announced length bounds it. */
async function readAtOnce(
  response: Response,
  announced: number,
  stallMs: number,
  call: Call,
): Promise<HttpResponse | Fault> {
  const { status, headers } = response;
  try {
    call.phase(stallMs + announced / atOnceBytesPerMs);
    const body = new Uint8Array(await response.arrayBuffer());
    if (call.signal.aborted) return faultOf(call.signal.reason, call.signal, "cut");
    if (body.length !== announced) return fault("cut", `${body.length} of ${announced} bytes came`);
    return { kind: "response", status, headers, body };
  } catch (error) {
    return faultOf(error, call.signal, "cut");
  }
}

/** Reserves memory for a body, in steps. */
type Hold = (size: number, leastStep: number) => Promise<void>;

/** Step of the memory reserved for a body without an announced length. Bytes. */
const holdStepBytes = 64 * 2 ** 10;

/** Reserves memory for the size of a body. No timeout runs during the wait; a failure ends the call. */
function createHold({ hold }: HttpRequest, call: Call): Hold {
  let held = 0;
  return async (size, leastStep) => {
    const bytes = size - held;
    if (hold === undefined || bytes < leastStep) return;
    call.rest();
    try {
      await hold(bytes);
      held += bytes;
    } catch (error) {
      call.stop(error);
      throw error;
    }
  };
}

/** Joins pieces into uninitialized memory. */
function join(pieces: readonly Uint8Array[], size: number): Uint8Array {
  const [first] = pieces;
  if (pieces.length === 1 && first !== undefined) return first;
  const body = Buffer.allocUnsafeSlow(size);
  let at = 0;
  for (const piece of pieces) {
    body.set(piece, at);
    at += piece.length;
  }
  return body;
}

/** Notified once of the end of a streamed body. @param error - Why it is incomplete. */
type BodyEnd = (bytes: number, error: unknown) => void;

function openStream(
  request: HttpRequest,
  response: Response,
  call: Call,
  stallMs: number,
  onEnd?: BodyEnd,
): HttpStream {
  let ended = false;
  let size = 0;
  let failure: unknown;
  const end = () => {
    if (ended) return;
    ended = true;
    call.end();
    onEnd?.(size, failure);
  };
  const cancel = () => {
    if (ended) return;
    call.stop(new DOMException("the body is not wanted", "AbortError"));
    end();
  };
  const announced = announcedLength(request, response);
  call.rest();

  async function* pieces(): AsyncGenerator<Uint8Array> {
    try {
      // No timeout runs while the reader is slow: only pauses of the source count.
      call.phase(stallMs);
      for await (const piece of response.body ?? []) {
        size += piece.length;
        call.rest();
        yield piece;
        call.phase(stallMs);
      }
      if (announced !== undefined && size !== announced) {
        throw failureOf(fault("cut", `${size} of ${announced} bytes came`));
      }
    } catch (error) {
      failure = error instanceof Failure ? error : failureOf(faultOf(error, call.signal, "cut"));
      throw failure;
    } finally {
      cancel();
    }
  }
  return { kind: "stream", status: response.status, headers: response.headers, body: pieces(), cancel };
}

export type Decoded =
  | Readonly<{ kind: "decoded"; bytes: Uint8Array }>
  | Readonly<{ kind: "too_large" }>
  | Readonly<{ kind: "malformed"; detail: string }>;

type Decode = (body: Uint8Array, options: Readonly<{ maxOutputLength: number }>) => Promise<Uint8Array>;

const decoders: ReadonlyMap<string, () => Decode> = new Map<string, () => Decode>([
  ["gzip", () => promisify(nodeZlib().gunzip)],
  ["x-gzip", () => promisify(nodeZlib().gunzip)],
  ["deflate", () => promisify(nodeZlib().inflate)],
  ["br", () => promisify(nodeZlib().brotliDecompress)],
  ["zstd", () => promisify(nodeZlib().zstdDecompress)],
]);

/**
 * Decodes a body in a thread of the runtime, up to a limit.
 *
 * @param coding - The value of Content-Encoding; one coding, case-insensitive, or null.
 * @param bytesMax - Maximum size of the decoded body.
 */
export async function decodeBody(body: Uint8Array, coding: string | null, bytesMax: number): Promise<Decoded> {
  const name = coding?.trim().toLowerCase() ?? "";
  // A response without a body needs no decoding, whatever its headers are.
  if (name === "" || name === "identity" || body.length === 0) return { kind: "decoded", bytes: body };
  const decode = decoders.get(name)?.();
  if (decode === undefined) return { kind: "malformed", detail: "a content coding that was not requested" };
  try {
    return { kind: "decoded", bytes: await decode(body, { maxOutputLength: Math.max(1, bytesMax) }) };
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE")
      return { kind: "too_large" };
    return { kind: "malformed", detail: `the body is not ${name}` };
  }
}
