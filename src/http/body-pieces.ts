/**
 * Request bodies of any size, piece by piece, as they arrive.
 * @module
 */
import { Failure } from "../failures.ts";

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
export const wholeBytesMax = 64 * 2 ** 10;

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
