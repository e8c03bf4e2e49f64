/**
 * Reading a span of a file in steps, for threads that serve others in between.
 * @module
 */
import { closeSync, openSync, readSync } from "node:fs";

/** A span that is read from its first byte to its last. What the system says is thrown. */
export type FileSteps = Readonly<{
  /**
   * Hands out the next bytes, in pieces that are only valid during the call.
   * @returns Whether there is more; `short` when the file ended before the span did.
   */
  step: (take: (bytes: Uint8Array) => void) => "more" | "end" | "short";
  close: () => void;
}>;

/** Bytes of one step: a few tens of milliseconds of hashing. */
const stepBytes = 32 * 2 ** 20;

/** Bytes of one read: they are still in the processor's cache when they are hashed. */
const readBytes = 256 * 1_024;

/** A span without bytes needs no file: an upload of no bytes has none. */
const noSteps: FileSteps = { step: () => "end", close: () => undefined };

/** Opens a span. @param start - Its first byte in the file. @param size - Its bytes. */
export function openFileSteps(path: string, start: number, size: number): FileSteps {
  if (size === 0) return noSteps;
  const file = openSync(path, "r");
  const buffer = new Uint8Array(readBytes);
  const end = start + size;
  let at = start;
  let isOpen = true;
  return {
    step: (take) => {
      const stepEnd = Math.min(end, at + stepBytes);
      while (at < stepEnd) {
        const read = readSync(file, buffer, 0, Math.min(readBytes, stepEnd - at), at);
        if (read === 0) return "short";
        take(buffer.subarray(0, read));
        at += read;
      }
      return at < end ? "more" : "end";
    },
    close: () => {
      if (isOpen) closeSync(file);
      isOpen = false;
    },
  };
}
