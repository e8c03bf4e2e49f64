/**
 * The read side of a ledger, whichever database it is on: a bound on reads that wait, and the end of them.
 * @module
 */
import { Failure } from "../../failures.ts";
import type { LedgerDatabase, Work } from "./database.ts";
import { waitingMax } from "./limits.ts";

/** Reads, each of one state of the ledger. */
export type Reads = Readonly<{
  read: LedgerDatabase["read"];
  /** Refuses what comes now, and resolves when all that was accepted has ended. */
  finish: () => Promise<void>;
}>;

/** Creates them. @param snapshot - Runs work that sees one state; it may wait for its turn. */
export function createReads(snapshot: <Result>(work: Work<Result>) => Promise<Result>): Reads {
  const running = new Set<Promise<unknown>>();
  let finished = false;
  return {
    read: <Result>(work: Work<Result>): Promise<Result> => {
      if (finished) return Promise.reject(new Failure("database_unavailable", { reason: "the ledger is closed" }));
      if (running.size >= waitingMax)
        return Promise.reject(new Failure("busy", { reason: "too many ledger reads wait" }));
      const mine = snapshot(work).finally(() => running.delete(mine));
      running.add(mine);
      return mine;
    },
    finish: async () => {
      finished = true;
      await Promise.allSettled(running);
    },
  };
}
