/**
 * What the queue of writes asks of a database's one writing connection. Types only.
 * @module
 */
import type { Statements } from "./run-work.ts";

/**
 * What an error of a statement means for the transaction that all of a group share.
 *
 * own     nothing: the work's own, it alone is undone
 * again   everything in the transaction is to be run once more
 * unsure  as `again` when it is the work's first time, as `own` when it is not
 * lost    the transaction has ended, and nothing can be said to be in it
 * damage  as `lost`, and what the disk holds is unknown: nothing may be written any more
 */
export type Fault = "own" | "again" | "unsure" | "lost" | "damage";

/** The writing connection. One transaction at a time; within it one mark at a time. */
export type Session = Readonly<{
  /** The statements of the open transaction. */
  statements: Statements;
  /** Opens a transaction that no other one, of any process, runs beside. Throws a Failure when that cannot be. */
  begin: () => Promise<void>;
  /** Remembers a point of the transaction; then either keeps what came after it, or undoes that. */
  mark: () => void | Promise<void>;
  keep: () => void | Promise<void>;
  undo: () => void | Promise<void>;
  /** Ends the transaction with all that is in it. When it throws, whether it was kept may be unknown. */
  commit: () => Promise<void>;
  /** Ends the transaction, whatever its state, with nothing kept; throws nothing. */
  abandon: () => Promise<void>;
  /** Waits until what was committed before the call is on the disk. */
  durable: () => Promise<void>;
  faultOf: (error: unknown) => Fault;
}>;
