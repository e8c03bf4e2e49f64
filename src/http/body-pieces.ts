/**
 * Request bodies of any size, piece by piece, as they arrive.
 * @module
 */
import { Failure } from "../failures.ts";
import { isTimeout, untilStopped, withDeadline } from "../lib/stop.ts";

/** Longest wait for the next piece: a sender that is silent for longer has gone. Milliseconds. */
const stallMs = 30_000;

/** Slower over all that has come than a modem of 1998, and after a first minute, is an attack. Bytes a millisecond. */
const slowestBytesPerMs = 4;
const graceMs = 60_000;

/**
 * The pieces of a body.
 *
 * @throws Failure `body_timeout` when nothing comes for long, or too little; the signal's reason when the caller left.
 */
export async function* piecesOf(request: Request): AsyncGenerator<Uint8Array> {
  const { body } = request;
  if (body === null) return;
  const reader = body.getReader();
  const startedAt = performance.now();
  let size = 0;
  try {
    for (;;) {
      const piece = await nextPiece(reader, request.signal);
      if (piece === undefined) return;
      size += piece.length;
      if (size < (performance.now() - startedAt - graceMs) * slowestBytesPerMs)
        throw new Failure("body_timeout", { size });
      yield piece;
    }
  } finally {
    // A body that is left before its end is not wanted any more; that it cannot be cancelled changes nothing.
    reader.releaseLock();
    if (!request.signal.aborted) void body.cancel().then(undefined, () => undefined);
  }
}

async function nextPiece(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  try {
    const { value } = await withDeadline(signal, stallMs, (own) => untilStopped(reader.read(), own));
    return value;
  } catch (error) {
    if (isTimeout(error)) throw new Failure("body_timeout", { stallMs }, error);
    throw error;
  }
}
