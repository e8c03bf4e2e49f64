/**
 * HTTP to other machines: every phase has its own time-out, every body its own bound, every failure a name. It
 * follows no redirect, and buffers nothing beyond what its caller allows.
 *
 * Decodes whole bodies of other machines without trusting them about size: 1.7 kB can stand for a gigabyte, and
 * the runtime's own decoder gives whatever comes of a piece in one go.
 * Source: RFC 9110 §8.4.1 (content codings), RFC 8878 (zstd).
 * @module
 */

import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate, zstdDecompress } from "node:zlib";
import { Failure } from "../failures.ts";
import { createSemaphore, type Release } from "./semaphore.ts";
import { isTimeout, timeout } from "./stop.ts";

/** How long each phase of a call may take, in milliseconds. */
export type HttpTimeouts = Readonly<{
  firstByteMs: number; // connecting, sending, and waiting for the response's headers
  stallMs: number; // the longest pause between two pieces of a body
  totalMs: number; // the whole call
}>;

/** Why a call has no response. Every one may succeed on a retry, or elsewhere. */
export const faultReasons = [
  "connect", // connection closed, reset, no such name, bad certificate
  "timeout",
  "status", // 5xx, 408, 425, 429, or a status that the call does not know
  "too_large",
  "malformed", // a response that is not valid
  "wrong", // a valid response that is provably false
  "cut", // a body that ended before its length
  "busy", // our own line is full
] as const;
export type FaultReason = (typeof faultReasons)[number];

/** A call without a response. */
export type Fault = Readonly<{ kind: "fault"; reason: FaultReason; status?: number; detail: string }>;

/** What to ask. */
export type HttpRequest = Readonly<{
  method: "GET" | "HEAD" | "POST";
  url: string;
  headers?: Readonly<Record<string, string>>;
  body?: Uint8Array<ArrayBuffer>;
  /**
   * Gives a whole body with a Content-Encoding as it is: content of an id has its tag's coding, and ranges of it.
   * A stream's body is always as it is.
   */
  keepsCoding?: true;
  /** Reserves memory for bytes of a whole body before they are stored. The call rejects with what it throws. */
  hold?: (bytes: number) => Promise<void>;
}>;

/** A whole response of any status. */
export type HttpResponse = Readonly<{ kind: "answer"; status: number; headers: Headers; body: Uint8Array }>;

/**
 * A response whose body is still to come. The body throws Failure `source_failed` when it is cut, `source_timeout`
 * when it stalls. Whoever does not read it to its end must call `cancel`.
 */
export type HttpStream = Readonly<{
  kind: "stream";
  status: number;
  headers: Headers;
  body: AsyncIterable<Uint8Array>;
  cancel: () => void;
}>;

/** Where to connect in the place of a URL. */
export type Reached = Readonly<{
  kind: "reached";
  /** The URL with the address that was checked. */
  url: string;
  /** The `Host` header, when it differs from the URL's host. */
  host: string;
  /** The name that its certificate must have. */
  serverName: string;
}>;

/** Finds out where to connect, each time anew. */
export type Reach = (url: string, signal: AbortSignal) => Promise<Reached | Fault>;

/** A client of one other machine. An aborted call rejects with the signal's reason; nothing else but `hold` rejects. */
export type Http = Readonly<{
  /** Waits for the whole response, of at most `bodyBytesMax`. */
  whole: (request: HttpRequest, bodyBytesMax: number, signal: AbortSignal) => Promise<HttpResponse | Fault>;
  /** Resolves at the headers. `totalMs` does not bound the body, `stallMs` does. */
  stream: (request: HttpRequest, signal: AbortSignal) => Promise<HttpStream | Fault>;
  /** Ends every call under way. */
  close: () => void;
}>;

/** Calls to one machine at once; more would only wait there. */
const callsAtOnceMax = 64;

/** Calls that wait for one of these; beyond, a caller is better off elsewhere. */
const callsWaitingMax = 4_096;

/** A running call: its permit, and the signal that ends it. */
type Call = Readonly<{
  signal: AbortSignal; // aborted by the caller, by close, or when time is up
  phase: (ms: number) => void; // begins the next phase: it may take so long
  rest: () => void; // the caller is reading: no timeout runs
  stop: (reason: unknown) => void;
  end: () => void;
}>;

/**
 * Makes a client.
 *
 * @param timeouts - Of every call; finding out where to connect counts to the first byte.
 * @param reach - Asked before every connection; without, the runtime connects to whatever a URL names.
 */
export function openHttp(timeouts: HttpTimeouts, reach?: Reach): Http {
  const life = new AbortController();
  const semaphore = createSemaphore(callsAtOnceMax, callsWaitingMax);

  async function begin(signal: AbortSignal): Promise<Call | Fault> {
    const permit = semaphore.take(signal);
    if (permit === undefined) return fault("busy", `${callsWaitingMax} calls wait already`);
    return beginCall(await permit, signal, life.signal);
  }

  return {
    async whole(request, bodyBytesMax, signal) {
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
    },
    async stream(request, signal) {
      const call = await begin(signal);
      if ("kind" in call) return call;
      const asked = await ask(request, call, timeouts.firstByteMs, reach);
      if (asked.kind === "response") return openStream(request, asked.response, call, timeouts.stallMs);
      call.end();
      signal.throwIfAborted();
      return asked;
    },
    close: () => life.abort(new DOMException("the client was closed", "AbortError")),
  };
}

export function fault(reason: FaultReason, detail: string, status?: number): Fault {
  return { kind: "fault", reason, detail, ...(status === undefined ? {} : { status }) };
}

/** The failure that clients of this server get for a fault of another server. */
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

/** One timer for many phases: a phase that begins before the last one's time is up only moves the hour. */
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
        // Encoded bodies would have another length than the one that is announced and bounded.
        "accept-encoding": "identity",
        ...request.headers,
        ...(reached === undefined ? {} : { host: reached.host }),
      },
      ...(reached === undefined ? {} : { tls: { serverName: reached.serverName } }),
      ...(request.body === undefined ? {} : { body: request.body }),
      redirect: "manual",
      decompress: false, // the runtime's decoder has no bound
      signal: call.signal,
    });
    return { kind: "response", response };
  } catch (error) {
    return faultOf(error, call.signal, "connect");
  }
}

/** Names what ended a call. That the caller ended it is found out by the caller's own signal. */
function faultOf(error: unknown, signal: AbortSignal, otherwise: "connect" | "cut"): Fault {
  if (signal.aborted && isTimeout(signal.reason)) return fault("timeout", messageOf(signal.reason));
  return fault(otherwise, messageOf(error));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The announced length of a body; undefined when none is. */
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
  return { kind: "answer", status, headers, body: decoded.bytes };
}

function tooLarge(bodyBytesMax: number, status: number): Fault {
  return fault("too_large", `more than ${bodyBytesMax} bytes`, status);
}

async function readAsSent(
  { request, response, bodyBytesMax, stallMs }: Reading,
  call: Call,
  hold: Hold,
): Promise<HttpResponse | Fault> {
  const { status, headers } = response;
  const announced = announcedLength(request, response);
  if (announced !== undefined && announced > bodyBytesMax) {
    call.stop(new DOMException("the body is too large", "AbortError"));
    return fault("too_large", `${announced} bytes, at most ${bodyBytesMax} are taken`, status);
  }
  await hold(announced ?? 0, 1);
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
    if (error instanceof Failure) throw error; // of `hold`
    // Leaving the loop ends the body's stream, which the stopped call has failed by then.
    return size > bodyBytesMax ? tooLarge(bodyBytesMax, status) : faultOf(error, call.signal, "cut");
  }
  if (call.signal.aborted) return faultOf(call.signal.reason, call.signal, "cut");
  if (announced !== undefined && size !== announced) return fault("cut", `${size} of ${announced} bytes came`);
  return { kind: "answer", status, headers, body: join(pieces, size) };
}

/** Takes memory for a body of a size, if that is a step more than was taken. */
type Hold = (size: number, leastStep: number) => Promise<void>;

/** Memory for a body whose length was not announced is taken in steps of this size. Bytes. */
const holdStepBytes = 64 * 2 ** 10;

/** Takes memory up to the size of a body; no clock runs while it is waited for, and the call ends when it fails. */
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

/** Joins pieces; the memory is not cleared before. */
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

function openStream(request: HttpRequest, response: Response, call: Call, stallMs: number): HttpStream {
  let ended = false;
  const end = () => {
    if (ended) return;
    ended = true;
    call.end();
  };
  const cancel = () => {
    if (ended) return;
    call.stop(new DOMException("the body is not wanted", "AbortError"));
    end();
  };
  const announced = announcedLength(request, response);
  call.rest();

  async function* pieces(): AsyncGenerator<Uint8Array> {
    let size = 0;
    try {
      // No clock runs while the reader is slow: only the source's pauses are counted.
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
      if (error instanceof Failure) throw error;
      throw failureOf(faultOf(error, call.signal, "cut"));
    } finally {
      cancel();
    }
  }
  return { kind: "stream", status: response.status, headers: response.headers, body: pieces(), cancel };
}

/** What a body was decoded to. */
export type Decoded =
  | Readonly<{ kind: "decoded"; bytes: Uint8Array }>
  | Readonly<{ kind: "too_large" }>
  | Readonly<{ kind: "malformed"; detail: string }>;

type Decode = (body: Uint8Array, options: Readonly<{ maxOutputLength: number }>) => Promise<Uint8Array>;

const decoders: ReadonlyMap<string, Decode> = new Map<string, Decode>([
  ["gzip", promisify(gunzip)],
  ["x-gzip", promisify(gunzip)],
  ["deflate", promisify(inflate)],
  ["br", promisify(brotliDecompress)],
  ["zstd", promisify(zstdDecompress)],
]);

/**
 * Decodes a body, in a thread of the runtime's, which stops at the bound.
 *
 * @param coding - The value of Content-Encoding; one coding, case-insensitive, or null.
 * @param bytesMax - Bytes of the decoded body.
 */
export async function decodeBody(body: Uint8Array, coding: string | null, bytesMax: number): Promise<Decoded> {
  const name = coding?.trim().toLowerCase() ?? "";
  // A response without a body has nothing to decode, whatever it says.
  if (name === "" || name === "identity" || body.length === 0) return { kind: "decoded", bytes: body };
  const decode = decoders.get(name);
  if (decode === undefined) return { kind: "malformed", detail: "a content coding that was not asked for" };
  try {
    return { kind: "decoded", bytes: await decode(body, { maxOutputLength: Math.max(1, bytesMax) }) };
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE")
      return { kind: "too_large" };
    return { kind: "malformed", detail: `the body is not ${name}` };
  }
}
