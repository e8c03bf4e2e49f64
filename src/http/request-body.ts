/**
 * Request bodies: read into memory within a limit, or piece by piece as they arrive.
 * @module
 */
import { Failure } from "../failures.ts";
import { isTimeout, untilStopped, withDeadline } from "../lib/stop.ts";
import type { RequestMemory } from "./body-memory.ts";
import { contextOf } from "./request-context.ts";

/** How long a body may take. */
type BodyTimes = Readonly<{
  /** However small it is. Milliseconds. */
  leastMs: number;
  /** The slowest that a body may arrive, seen over all of it. Bytes a millisecond. */
  slowestBytesPerMs: number;
}>;

/** Memory for a body whose size was not announced is taken in steps of this size. Bytes. */
const holdStepBytes = 64 * 2 ** 10;

/** The runtime reads so much of a body before anybody takes it (decision 091). Bytes. */
const aheadBytesMax = 2 * 2 ** 20;

/** Slower than a modem of 1998: whoever sends a byte a second sends it to hold a connection. */
const timesDefault: BodyTimes = { leastMs: 20_000, slowestBytesPerMs: 32 };

/**
 * Reads a body of at most `bytesMax` bytes. Its bytes count against the memory of request bodies until the request is
 * answered.
 *
 * @param bytesMax - Inclusive; checked against Content-Length before anything is read.
 * @throws Failure `too_large`, `body_timeout`, `busy`; the signal's reason when the caller leaves.
 */
export async function readBody(
  request: Request,
  bytesMax: number,
  { leastMs, slowestBytesPerMs }: BodyTimes = timesDefault,
): Promise<Uint8Array<ArrayBuffer>> {
  const announced = Number(request.headers.get("content-length") ?? 0);
  if (announced > bytesMax) throw new Failure("too_large", { announced, bytesMax });
  const { holdRequest } = contextOf(request).memory;
  await holdRequest(announced, Math.min(announced, aheadBytesMax));
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

/** Reads a body of a known size into one buffer. A sender that stops is not waited for until the deadline. */
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
    for (; held < size; held += holdStepBytes) await hold(holdStepBytes, aheadBytesMax);
  }
  return new Uint8Array(await new Blob(pieces).arrayBuffer());
}

/** How slow a sender may be. Only the time in which we wait for it counts, not the one in which it waits for us. */
export type Pace = Readonly<{
  /** Longest wait for the next piece: who is silent for longer has gone. Milliseconds. */
  stallMs: number;
  /** In each so many milliseconds of waiting … */
  windowMs: number;
  /** … so many bytes must come. */
  windowBytes: number;
}>;

/** Half of what a modem of 1998 sends: whoever is slower does so to hold a connection. */
const usualPace: Pace = { stallMs: 30_000, windowMs: 60_000, windowBytes: 240_000 };

/** A body of an announced size up to this is read whole: a stream costs more than that. Bytes. */
const wholeBytesMax = 64 * 2 ** 10;

/**
 * The pieces of a body.
 *
 * @throws Failure `body_timeout` when nothing comes for long, or too little; the signal's reason when the caller left.
 */
export async function* piecesOf(request: Request, pace: Pace = usualPace): AsyncGenerator<Uint8Array> {
  const { body } = request;
  if (body === null) return;
  const patience = createPatience(pace.stallMs, request.signal);
  try {
    if (Number(request.headers.get("content-length") ?? Number.POSITIVE_INFINITY) <= wholeBytesMax)
      yield await patience.wait(request.bytes());
    else yield* readAll(body, pace, patience, request.signal);
  } finally {
    patience.end();
  }
}

async function* readAll(
  body: ReadableStream<Uint8Array>,
  pace: Pace,
  patience: Patience,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  const watch = createWatch(pace);
  try {
    for (;;) {
      const askedAt = performance.now();
      const { value: piece } = await patience.wait(reader.read());
      if (piece === undefined) return;
      watch(performance.now() - askedAt, piece.length);
      yield piece;
    }
  } finally {
    // A body that is left before its end is not wanted any more; that it cannot be cancelled changes nothing.
    reader.releaseLock();
    if (!signal.aborted) void body.cancel().then(undefined, () => undefined);
  }
}

/** Called after every wait with what it brought; throws when that is too little for too long. */
function createWatch({ windowMs, windowBytes }: Pace): (waitedMs: number, bytes: number) => void {
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

/** Waits for a sender, one wait after another. */
type Patience = Readonly<{
  /** @throws Failure `body_timeout` when it takes too long; the signal's reason when the caller left. */
  wait: <Value>(coming: Promise<Value>) => Promise<Value>;
  end: () => void;
}>;

/** One timer and one listener for all waits of a body: there are 16,000 in a gigabyte. */
function createPatience(ms: number, signal: AbortSignal): Patience {
  let since = 0;
  let giveUp: ((error: unknown) => void) | undefined;

  function look(): void {
    const left = giveUp === undefined ? ms : since + ms - performance.now();
    if (left <= 0) giveUp?.(new Failure("body_timeout", { ms }));
    else timer = setTimeout(look, left);
  }
  let timer = setTimeout(look, ms);
  const leave = () => giveUp?.(signal.reason);
  signal.addEventListener("abort", leave, { once: true });

  return {
    wait: (coming) =>
      new Promise((resolve, reject) => {
        giveUp = reject;
        since = performance.now();
        const settled = <Outcome>(settle: (outcome: Outcome) => void) => {
          return (outcome: Outcome) => {
            // Before whoever waits goes on, and waits again.
            giveUp = undefined;
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
