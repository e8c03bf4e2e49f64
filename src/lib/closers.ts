/**
 * Shutdown of open parts in reverse order of opening. A part that fails to close does not keep the others open.
 * @module
 */

/** Closes one part. */
export type Close = () => void | Promise<void>;

/** A stack of open parts. */
export type Closers = Readonly<{
  /** @param name - Names the part in a report of its failure. */
  add: (name: string, close: Close) => void;
  /** Closes all, last opened first. A second call waits for the first. */
  closeAll: () => Promise<void>;
}>;

/** Creates an empty stack. @param onFault - Notified at once of each part that fails to close. */
export function createClosers(onFault: (name: string, error: unknown) => void): Closers {
  const stack = new AsyncDisposableStack();
  let closing: Promise<void> | undefined;
  return {
    add: (name, close) =>
      stack.defer(async () => {
        try {
          await close();
        } catch (error) {
          onFault(name, error); // now, not at the end: the log is closed last
        }
      }),
    closeAll: () => {
      closing ??= stack.disposeAsync();
      return closing;
    },
  };
}
