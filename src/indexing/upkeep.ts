/**
 * Upkeep of the index: rows that were to be for a while only are removed in time, and the write-ahead log is
 * folded into the file when there is nothing else to do.
 * Source: docs/reference/gateway.md#queueing.
 * @module
 */
import { type Clock, unixSeconds } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { type Loop, openLoop } from "../lib/loop.ts";
import type { IndexWriterCalls } from "../store/index/thread.ts";
import type { IndexReader } from "../store/index/types.ts";

/** What upkeep is made of. */
export type UpkeepOptions = Readonly<{
  index: Pick<IndexWriterCalls, "expireAnnounced" | "expirePending" | "checkpoint">;
  reader: Pick<IndexReader, "nextBundleAt">;
  /** How often, milliseconds. */
  intervalMs: number;
  /**
   * Called when pending transactions may have been removed: those that are still in the mempool are to be
   * added again.
   */
  onExpired: () => void;
  clock: Clock;
  random: () => number;
  log: Log;
}>;

/** An announced item that no bundle has brought by then never comes. Seconds. */
const announcedSeconds = 2 * 60 * 60;

/**
 * A pending transaction lives for at most 50 blocks after its anchor, some two hours; a day is beyond any
 * doubt. Seconds.
 */
const pendingSeconds = 24 * 60 * 60;

/** Starts upkeep. */
export function openUpkeep(options: UpkeepOptions): Loop {
  const { index, reader, intervalMs, clock, random, log } = options;
  return openLoop({
    name: "upkeep",
    step: async () => {
      const now = unixSeconds(clock);
      await index.expireAnnounced(now - announcedSeconds);
      if ((await index.expirePending(now - pendingSeconds)) > 0) options.onExpired();
      const nextAt = reader.nextBundleAt();
      if (nextAt === undefined || nextAt > clock()) await index.checkpoint();
      return "rest";
    },
    intervalMs,
    backoff: { firstMs: 1_000, longestMs: 60_000 },
    stepTimeoutMs: 10 * 60_000,
    clock,
    random,
    log,
  });
}
