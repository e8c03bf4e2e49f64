/**
 * Request bodies: read into memory within a limit, or piece by piece as they arrive.
 * @module
 */
import { Failure } from "../failures.ts";
import { isTimeout, untilStopped, withDeadline } from "../lib/stop.ts";
import type { RequestMemory } from "./body-memory.ts";
import { contextOf } from "./request-context.ts";

type BodyTimes = Readonly<{
  /** Time that every body has, however small. Milliseconds. */
  leastMs: number;
  /** Lowest average speed of a body. Bytes a millisecond. */
  slowestBytesPerMs: number;
}>;

/** Memory for a body whose size was not announced is taken in steps of this size. Bytes. */
const holdStepBytes = 64 * 2 ** 10;

/** Bytes of a body that the runtime reads before the program does (decision 091). */
const readAheadBytesMax = 2 * 2 ** 20;

/** Slower than a modem of 1998: a client that sends a byte a second only holds a connection. */
const timesDefault: BodyTimes = { leastMs: 20_000, slowestBytesPerMs: 32 };

/**
 * Reads a body of at most `bytesMax` bytes. Its bytes count against the memory of request bodies until the
 * response.
 *
 * @param bytesMax - Inclusive; checked against Content-Length before anything is read.
 * @throws Failure `too_large`, `body_timeout`, `busy`; the signal's reason when the client disconnects.
 */
export async function readBody(
  request: Request,
  bytesMax: number,
  { leastMs, slowestBytesPerMs }: BodyTimes = timesDefault,
): Promise<Uint8Array<ArrayBuffer>> {
  const announced = Number(request.headers.get("content-length") ?? 0);
  if (announced > bytesMax) throw new Failure("too_large", { announced, bytesMax });
  const { holdRequest } = contextOf(request).memory;
  await holdRequest(announced, Math.min(announced, readAheadBytesMax));
  const { body } = request; // from here on the runtime reads ahead: 2 MB of a stream of HTTP/2
  if (body === null) return new Uint8Array(0);
  const ms = leastMs + Math.ceil((announced > 0 ? announced : bytesMax) / slowestBytesPerMs);
  const read = () => (announced > 0 ? readAnnounced(request, announced) : readCounted(body, bytesMax, holdRequest));
  try {
    return await withDeadline(request.signal, ms, (own) => untilStopped(read(), own));
  } catch (error) {
    if (isTimeout(error)) throw new Failure("body_timeout", { announced, ms }, error);
    throw error;
  }
}

/**
 * Reads a JSON body.
 *
 * @throws Failure `too_large`, `body_timeout`, `malformed_json`.
 */
export async function readJsonBody(request: Request, bytesMax: number): Promise<unknown> {
  const bytes = await readBody(request, bytesMax);
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    throw new Failure("malformed_json", { size: bytes.byteLength }, error);
  }
}

/** Reads a body of a known size into one buffer. A sender that stops fails before the deadline. */
async function readAnnounced(request: Request, announced: number): Promise<Uint8Array<ArrayBuffer>> {
  if (announced <= wholeBytesMax) return await request.bytes();
  const bytes = new Uint8Array(announced);
  let at = 0;
  for await (const piece of piecesOf(request)) {
    if (at + piece.byteLength > announced) throw new Failure("too_large", { announced });
    bytes.set(piece, at);
    at += piece.byteLength;
  }
  return at === announced ? bytes : bytes.slice(0, at);
}

async function readCounted(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  bytesMax: number,
  hold: RequestMemory["holdRequest"],
): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  let held = 0;
  for await (const piece of body) {
    size += piece.byteLength;
    if (size > bytesMax) throw new Failure("too_large", { bytesMax });
    pieces.push(piece);
    for (; held < size; held += holdStepBytes) await hold(holdStepBytes, readAheadBytesMax);
  }
  return new Uint8Array(await new Blob(pieces).arrayBuffer());
}

/** Lowest pace of a sender. Only the time in which this program waits for the sender counts. */
export type Pace = Readonly<{
  /** Longest wait for the next piece. Milliseconds. */
  stallMs: number;
  /** Window in which `windowBytes` must arrive: milliseconds of waiting. */
  windowMs: number;
  windowBytes: number;
}>;

/** Half the speed of a modem of 1998: a slower client only holds a connection. */
const usualPace: Pace = { stallMs: 30_000, windowMs: 60_000, windowBytes: 240_000 };

/** A body of an announced size up to this is read at once, because a stream costs more. Bytes. */
const wholeBytesMax = 64 * 2 ** 10;

/**
 * Yields the pieces of a body.
 *
 * @throws Failure `body_timeout` when the sender is too slow; the signal's reason when the client disconnected.
 */
export async function* piecesOf(request: Request, pace: Pace = usualPace): AsyncGenerator<Uint8Array> {
  const { body } = request;
  if (body === null) return;
  const waits = createWaitTimer(pace.stallMs, request.signal);
  try {
    if (Number(request.headers.get("content-length") ?? Number.POSITIVE_INFINITY) <= wholeBytesMax)
      yield await waits.wait(request.bytes());
    else yield* readAll(body, pace, waits, request.signal);
  } finally {
    waits.end();
  }
}

async function* readAll(
  body: ReadableStream<Uint8Array>,
  pace: Pace,
  waits: WaitTimer,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  const watch = createPaceCheck(pace);
  try {
    for (;;) {
      const askedAt = performance.now();
      const { value: piece } = await waits.wait(reader.read());
      if (piece === undefined) return;
      watch(performance.now() - askedAt, piece.length);
      yield piece;
    }
  } finally {
    // The rest of the body is not needed; a failure to cancel it has no effect.
    reader.releaseLock();
    if (!signal.aborted) void body.cancel().then(undefined, () => undefined);
  }
}

/** Called after every wait; throws when fewer than `windowBytes` arrived in a window. */
function createPaceCheck({ windowMs, windowBytes }: Pace): (waitedMs: number, bytes: number) => void {
  let waitedMs = 0;
  let come = 0;
  return (ms, bytes) => {
    waitedMs += ms;
    come += bytes;
    if (waitedMs < windowMs) return;
    if (come < windowBytes) throw new Failure("body_timeout", { come, waitedMs });
    waitedMs = 0;
    come = 0;
  };
}

/** Waits for a sender; one wait at a time. */
type WaitTimer = Readonly<{
  /** @throws Failure `body_timeout` after the timeout; the signal's reason when the client disconnected. */
  wait: <Value>(coming: Promise<Value>) => Promise<Value>;
  end: () => void;
}>;

/** One timer and one listener for all waits of a body: there are 16,000 in a gigabyte. */
function createWaitTimer(ms: number, signal: AbortSignal): WaitTimer {
  let since = 0;
  let rejectWait: ((error: unknown) => void) | undefined;

  function look(): void {
    const left = rejectWait === undefined ? ms : since + ms - performance.now();
    if (left <= 0) rejectWait?.(new Failure("body_timeout", { ms }));
    else timer = setTimeout(look, left);
  }
  let timer = setTimeout(look, ms);
  const leave = () => rejectWait?.(signal.reason);
  signal.addEventListener("abort", leave, { once: true });

  return {
    wait: (coming) =>
      new Promise((resolve, reject) => {
        rejectWait = reject;
        since = performance.now();
        const settled = <Outcome>(settle: (outcome: Outcome) => void) => {
          return (outcome: Outcome) => {
            // Before the waiting code continues, because it may wait again.
            rejectWait = undefined;
            settle(outcome);
          };
        };
        coming.then(settled(resolve), settled(reject));
        if (signal.aborted) reject(signal.reason);
      }),
    end: () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", leave);
    },
  };
}
