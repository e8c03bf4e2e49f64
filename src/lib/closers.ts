/**
 * What must be closed, in reverse order of opening, once, and to its end even when one of them fails.
 * @module
 */

/** Closes one thing. */
export type Close = () => void | Promise<void>;

/** A stack of things that are open. */
export type Closers = Readonly<{
  /** Remembers how something is closed; answers the thing itself. */
  add: (name: string, close: Close) => void;
  /** Closes all, last opened first. A second call waits for the first. */
  closeAll: () => Promise<void>;
}>;

/**
 * Creates an empty stack.
 *
 * @param onFault - Told what could not be closed; the others are closed all the same.
 */
export function createClosers(onFault: (name: string, error: unknown) => void): Closers {
  const open: Readonly<{ name: string; close: Close }>[] = [];
  let closing: Promise<void> | undefined;
  const closeAll = async () => {
    for (const { name, close } of open.toReversed()) {
      try {
        await close();
      } catch (error) {
        onFault(name, error); // the rest is closed all the same
      }
    }
  };
  return {
    add: (name, close) => {
      open.push({ name, close });
    },
    closeAll: () => {
      closing ??= closeAll();
      return closing;
    },
  };
}
