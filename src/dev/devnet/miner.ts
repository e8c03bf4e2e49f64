/**
 * When blocks are mined: soon after something arrives, at an interval, or only when asked.
 * @module
 */
import type { Log } from "../../lib/log.ts";

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

/**
 * Blocks in a row that are mined at once. An anchor holds for 50 blocks: without a bound, a client that posts a batch
 * with one anchor would outlive it within a second of its own blocks.
 */
const blocksAtOnceMax = 10;

/** After that, one block in so long a time: an anchor then holds for 7 s at the least, and for ever when it is calm. */
const blockEveryMs = 200;

/** Starts mining. A block that cannot be made is logged, and tried again when there is a reason to. */
export function openMiner(mode: MiningMode, work: MinerWork): Miner {
  if (mode === "manual") return { arrived: () => undefined, close: () => undefined };
  if (mode === "auto") return openAutomatic(work);
  const interval = setInterval(() => attempt(work), mode.intervalMs);
  return { arrived: () => undefined, close: () => clearInterval(interval) };
}

function openAutomatic(work: MinerWork): Miner {
  let atOnce = blocksAtOnceMax;
  let gathering: ReturnType<typeof setTimeout> | undefined;
  let earning: ReturnType<typeof setTimeout> | undefined;

  const arrived = () => {
    if (gathering === undefined && atOnce > 0 && work.waiting() > 0) gathering = setTimeout(mine, gatherMs);
  };
  const mine = () => {
    gathering = undefined;
    atOnce -= 1;
    earning ??= setTimeout(earn, blockEveryMs);
    // What did not fit into one block comes into the next.
    if (attempt(work) > 0) arrived();
  };
  const earn = () => {
    atOnce += 1;
    earning = atOnce < blocksAtOnceMax ? setTimeout(earn, blockEveryMs) : undefined;
    arrived();
  };

  arrived();
  return {
    arrived,
    close: () => {
      clearTimeout(gathering);
      clearTimeout(earning);
    },
  };
}

function attempt({ mine, log }: MinerWork): number {
  try {
    return mine();
  } catch (error) {
    log.error("a block could not be mined", { error });
    return 0;
  }
}
