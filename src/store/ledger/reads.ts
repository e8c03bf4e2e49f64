/**
 * The read side of a ledger, whichever database it is on. Types only.
 * @module
 */
import type { LedgerDatabase } from "./database.ts";

/** Reads, each of one state of the ledger. */
export type Reads = Readonly<{
  read: LedgerDatabase["read"];
  /** Refuses what comes now, and resolves when all that was accepted has ended. */
  finish: () => Promise<void>;
}>;
