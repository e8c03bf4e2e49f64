/**
 * Announces accepted items to the index, so that queries show them before any block does.
 *
 * Concurrent items share a write. A receipt does not depend on the index: the row of the upload is authoritative, and
 * items that the index missed are announced again at the next start.
 * @module
 */
import { createBatcher } from "../../lib/batcher.ts";
import type { Log } from "../../lib/log.ts";
import type { PendingRow } from "../../store/index/rows.ts";

export type Announcer = Readonly<{
  /** Resolves when the index has the row, when the write has failed, or after a timeout. Never rejects. */
  announce: (row: PendingRow) => Promise<void>;
}>;

export type AnnouncerOptions = Readonly<{
  addPending: (rows: readonly PendingRow[]) => Promise<unknown>;
  log: Log;
}>;

/** Rows of one write. */
const rowsPerWrite = 1_000;

/** Limit of the queue while the index is busy. Rows beyond it are announced at the next start. */
const waitingMax = 100_000;

/** Longest delay of a receipt by the index. Milliseconds. */
const patienceMs = 1_000;

export function createAnnouncer({ addPending, log }: AnnouncerOptions): Announcer {
  const batcher = createBatcher<PendingRow, void, undefined>({
    workers: [undefined],
    waitingMax,
    batchSize: (waiting) => Math.min(rowsPerWrite, waiting.length),
    run: async (batch) => {
      try {
        await addPending(batch.map(({ input }) => input));
      } catch (error) {
        log.error("uploads could not be announced to the index", { count: batch.length, error });
      }
      for (const { resolve } of batch) resolve();
    },
    defer: (start) => start(),
  });
  return {
    announce: async (row) => {
      const announced = batcher.add(row);
      if (announced === undefined) return;
      const patience = Promise.withResolvers<void>();
      const timer = setTimeout(patience.resolve, patienceMs);
      await Promise.race([announced, patience.promise]);
      clearTimeout(timer);
    },
  };
}
