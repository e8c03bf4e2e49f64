/**
 * Work over files in a thread, a job for some bytes: what is open between the jobs of one session, and is closed with
 * the last of them, whatever it was.
 * @module
 */

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
