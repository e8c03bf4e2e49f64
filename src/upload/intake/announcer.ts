/**
 * Announces accepted items to the index, so that queries show them before any block does.
 *
 * Concurrent items share a write. A receipt does not depend on the index: the row of the upload is authoritative, and
 * items that the index missed are announced again at the next start.
 * @module
 */
import type { Log } from "../../lib/log.ts";
import type { PendingRow } from "../../store/index/rows.ts";

/** Announces items. */
export type Announcer = Readonly<{
  /** Resolves when the index has the row, has failed to take it, or after a moment; never rejects. */
  announce: (row: PendingRow) => Promise<void>;
}>;

/** What an announcer needs. */
export type AnnouncerOptions = Readonly<{
  addPending: (rows: readonly PendingRow[]) => Promise<unknown>;
  log: Log;
}>;

/** Rows that one write takes. */
const rowsPerWrite = 1_000;

/** Rows that wait while the index is busy; those beyond are announced at the next start. */
const waitingMax = 100_000;

/** A receipt waits no longer for the index. Milliseconds. */
const patienceMs = 1_000;

type Waiting = Readonly<{ row: PendingRow; done: () => void }>;

/** Creates an announcer. */
export function createAnnouncer({ addPending, log }: AnnouncerOptions): Announcer {
  const waiting: Waiting[] = [];
  let isWriting = false;

  async function writeAll(): Promise<void> {
    if (isWriting) return;
    isWriting = true;
    while (waiting.length > 0) {
      const batch = waiting.splice(0, rowsPerWrite);
      try {
        await addPending(batch.map(({ row }) => row));
      } catch (error) {
        log.error("uploads could not be announced to the index", { count: batch.length, error });
      }
      for (const { done } of batch) done();
    }
    isWriting = false;
  }

  return {
    announce: (row) => {
      if (waiting.length >= waitingMax) return Promise.resolve();
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, patienceMs);
      waiting.push({
        row,
        done: () => {
          clearTimeout(timer);
          resolve();
        },
      });
      void writeAll();
      return promise;
    },
  };
}
