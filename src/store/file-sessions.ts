/**
 * Sessions of a thread that reads files in steps, one job a step. An open file is closed when its session ends, also
 * after an error.
 * @module
 */
import { closeSync, openSync, readSync } from "node:fs";

/** Results that a step adds to those of its callback. */
type SessionResponse =
  /** This thread has no such session: another thread began it. */
  | Readonly<{ kind: "lost" }>
  /** The file cannot be read; `reason` is the system's message. */
  | Readonly<{ kind: "unread"; reason: string }>;

type FileSessions<Open> = Readonly<{
  /**
   * Continues a session. The session ends unless the result's kind is `more`.
   *
   * @param begin - Opens the session's resource; `undefined` when the session has begun before.
   */
  step: <Result extends Readonly<{ kind: string }>>(
    session: string,
    begin: (() => Open) | undefined,
    perform: (open: Open) => Result,
  ) => Result | SessionResponse;
  /** Ends a session; has no effect when it has ended already. */
  leave: (session: string) => void;
}>;

/** @param close - Closes the open resource of a session. */
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
        const result = perform(open);
        isStored = result.kind === "more";
        return result;
      } catch (error) {
        // System errors are returned rather than thrown, because an error loses its code between threads.
        if (!(error instanceof Error && "syscall" in error)) throw error;
        return { kind: "unread", reason: error.message };
      } finally {
        if (!isStored) leave(session);
      }
    },
    leave,
  };
}

/** Sequential reader of a span of a file. Throws system errors. */
export type FileSteps = Readonly<{
  /**
   * Passes the next bytes to `take`, in pieces that are valid only during the call.
   * @returns Whether bytes remain; `short` when the file ends before the span.
   */
  step: (take: (bytes: Uint8Array) => void) => "more" | "end" | "short";
  close: () => void;
}>;

/** Bytes of one step: a few tens of milliseconds of hashing. */
const stepBytes = 32 * 2 ** 20;

/** Bytes of one read: small enough to be in the processor's cache when they are hashed. */
const readBytes = 256 * 1_024;

/** An empty span opens no file: an upload without bytes has none. */
const noSteps: FileSteps = { step: () => "end", close: () => undefined };

/** Opens a span of `size` bytes that begins at byte `start` of the file. */
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
