/**
 * When blocks are mined: soon after something arrives, at an interval, or only when asked.
 * @module
 */
import type { Log } from "../lib/log.ts";

/** How a chain mines besides when it is asked. */
export type MiningMode = "auto" | "manual" | Readonly<{ intervalMs: number }>;

/** Mines by itself until it is closed. */
export type Miner = Readonly<{
  /** Says that a transaction waits. */
  arrived: () => void;
  close: () => void;
}>;

/** What the miner drives. */
export type MinerWork = Readonly<{
  waiting: () => number;
  /** Mines one block. @returns How many transactions it took. */
  mine: () => number;
  log: Log;
}>;

/** Transactions that arrive together should share a block; nobody notices so short a wait. */
const gatherMs = 5;

/** Starts mining. A block that cannot be made is logged, and tried again when there is a reason to. */
export function openMiner(mode: MiningMode, { waiting, mine, log }: MinerWork): Miner {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const attempt = () => {
    try {
      return mine();
    } catch (error) {
      log.error("a block could not be mined", { error });
      return 0;
    }
  };
  const soon = () => {
    if (mode !== "auto" || timer !== undefined) return;
    timer = setTimeout(() => {
      timer = undefined;
      // What did not fit into one block comes into the next.
      if (waiting() > 0 && attempt() > 0 && waiting() > 0) soon();
    }, gatherMs);
  };
  const interval = typeof mode === "object" ? setInterval(attempt, mode.intervalMs) : undefined;
  if (waiting() > 0) soon();
  return {
    arrived: soon,
    close: () => {
      clearTimeout(timer);
      clearInterval(interval);
    },
  };
}
