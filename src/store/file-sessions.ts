/**
 * Work over files in a thread, a job for some bytes: what is open between the jobs of one session, and is closed with
 * the last of them, whatever it was.
 * @module
 */
import { closeSync, openSync, readSync } from "node:fs";

/** What a step may answer besides its own. */
export type SessionResponse =
  /** There is no such session: the thread is not the one that it was begun in. */
  | Readonly<{ kind: "lost" }>
  /** The file cannot be read; why. */
  | Readonly<{ kind: "unread"; reason: string }>;

/** The sessions of a thread. */
export type FileSessions<Open> = Readonly<{
  /**
   * Goes on with a session, which ends unless the answer is that there is more.
   *
   * @param begin - Opens what it works on; `undefined` when it was begun before.
   */
  step: <Result extends Readonly<{ kind: string }>>(
    session: string,
    begin: (() => Open) | undefined,
    perform: (open: Open) => Result,
  ) => Result | SessionResponse;
  /** Ends one; one that has ended is gone already. */
  leave: (session: string) => void;
}>;

/** Creates a thread's sessions. @param close - Closes what a session has open. */
export function createFileSessions<Open>(close: (open: Open) => void): FileSessions<Open> {
  const sessions = new Map<string, Open>();

  const leave = (session: string) => {
    const open = sessions.get(session);
    if (open !== undefined) close(open);
    sessions.delete(session);
  };

  return {
    step: (session, begin, perform) => {
      let isStored = false;
      try {
        if (begin !== undefined) sessions.set(session, begin());
        const open = sessions.get(session);
        if (open === undefined) return { kind: "lost" };
        const response = perform(open);
        isStored = response.kind === "more";
        return response;
      } catch (error) {
        // What the system says is an answer, because an error crosses threads without its code.
        if (!(error instanceof Error && "syscall" in error)) throw error;
        return { kind: "unread", reason: error.message };
      } finally {
        if (!isStored) leave(session);
      }
    },
    leave,
  };
}

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
