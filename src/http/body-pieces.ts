/**
 * Request bodies of any size, piece by piece, as they arrive.
 * @module
 */
import { Failure } from "../failures.ts";
import { isTimeout, untilStopped, withDeadline } from "../lib/stop.ts";

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
  if (Number(request.headers.get("content-length") ?? Number.POSITIVE_INFINITY) <= wholeBytesMax) {
    yield await withinMs(pace.stallMs, request.signal, () => request.bytes());
    return;
  }
  const reader = body.getReader();
  const watch = createWatch(pace);
  try {
    for (;;) {
      const askedAt = performance.now();
      const { value: piece } = await withinMs(pace.stallMs, request.signal, () => reader.read());
      if (piece === undefined) return;
      watch(performance.now() - askedAt, piece.length);
      yield piece;
    }
  } finally {
    // A body that is left before its end is not wanted any more; that it cannot be cancelled changes nothing.
    reader.releaseLock();
    if (!request.signal.aborted) void body.cancel().then(undefined, () => undefined);
  }
}

/** Told of every wait and what it brought; throws when that is too little for too long. */
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

async function withinMs<Value>(ms: number, signal: AbortSignal, work: () => Promise<Value>): Promise<Value> {
  try {
    return await withDeadline(signal, ms, (own) => untilStopped(work(), own));
  } catch (error) {
    if (isTimeout(error)) throw new Failure("body_timeout", { ms }, error);
    throw error;
  }
}
