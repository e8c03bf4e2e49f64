/**
 * The body of a response with live events: sends pieces as fast as the client reads, and holds the rest.
 * @module
 */
import type { EventSink } from "../gateway/events/event-hub.ts";
import { concatBytes } from "../lib/bytes.ts";

/** A body, and the sink that fills it. */
export type EventStream = Readonly<{ body: ReadableStream<Uint8Array>; sink: EventSink }>;

/** A client that does not read its last bytes within this time loses its connection. Milliseconds. */
const lastReadMs = 5_000;

/** Opens a stream. @param onLeave - Called when the client has disconnected. */
export function openEventStream(onLeave: () => void): EventStream {
  let pieces: Uint8Array[] = [];
  let waiting = 0;
  let isEnding = false;
  let isOver = false;
  /** Ends the wait of `pull` for bytes. */
  let wake: (() => void) | undefined;
  let cut: (() => void) | undefined;

  const add = (bytes: Uint8Array): void => {
    pieces.push(bytes);
    waiting += bytes.length;
    wake?.();
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        cut = () => controller.error(new DOMException("The client does not read.", "AbortError"));
      },
      pull: async (controller) => {
        if (waiting === 0 && !isEnding) await new Promise<void>((resolve) => (wake = resolve));
        wake = undefined;
        if (isOver) return;
        const [only] = pieces;
        if (waiting > 0 && only !== undefined) controller.enqueue(pieces.length === 1 ? only : concatBytes(pieces));
        pieces = [];
        waiting = 0;
        if (!isEnding) return;
        isOver = true;
        controller.close();
      },
      cancel: () => {
        isOver = true;
        wake?.();
        onLeave();
      },
    },
    // Nothing is taken from the queue before the client has read what was sent.
    { highWaterMark: 0 },
  );
  return {
    body,
    sink: {
      waiting: () => waiting,
      send: (bytes) => {
        if (!isEnding) add(bytes);
      },
      end: (last) => {
        if (isEnding) return;
        isEnding = true;
        pieces = [];
        waiting = 0;
        add(last);
        setTimeout(() => {
          if (!isOver) cut?.();
        }, lastReadMs).unref();
      },
    },
  };
}
