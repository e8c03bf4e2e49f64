/**
 * Bytes that a job returns beside its result, transferred instead of copied: a result is copied twice (measured: 0.4 ms
 * of CPU for 350 KB, transferred 0.1 ms; bench/uploads/bundles.ts).
 * @module
 */
import { MessageChannel, type MessagePort, receiveMessageOnPort } from "node:worker_threads";

/** The return channel of one job. */
export type Parcel = Readonly<{
  /** Part of the job, and of its transfer list. */
  port: MessagePort;
  /** The job's bytes, after its result has arrived; `undefined` without any. */
  take: () => readonly Uint8Array<ArrayBuffer>[] | undefined;
  /** Must be called, also after a failure. */
  close: () => void;
}>;

export function openParcel(): Parcel {
  const { port1, port2 } = new MessageChannel();
  return {
    port: port2,
    take: () => {
      // Sent before the result, so it has arrived with the result.
      const received: unknown = receiveMessageOnPort(port1)?.message;
      return Array.isArray(received) && received.every(isBytes) ? received : undefined;
    },
    close: () => port1.close(),
  };
}

/** Sends bytes from the thread, once. Each piece has its own buffer, which is empty afterwards. */
export function sendParcel(port: MessagePort, pieces: readonly Uint8Array<ArrayBuffer>[]): void {
  port.postMessage(
    pieces,
    pieces.map(({ buffer }) => buffer),
  );
  port.close();
}

function isBytes(value: unknown): value is Uint8Array<ArrayBuffer> {
  return value instanceof Uint8Array && value.buffer instanceof ArrayBuffer;
}
