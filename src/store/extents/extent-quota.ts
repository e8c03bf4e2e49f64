/**
 * Quota of the content cache: its byte budget, the disk space that must stay free, and eviction.
 * @module
 */
import { statfs } from "node:fs/promises";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { ExtentFiles } from "./extent-files.ts";
import type { ExtentMap } from "./extent-map.ts";
import type { Roots } from "./extent-roots.ts";

/** Limits of disk use. */
export type QuotaLimits = Readonly<{
  bytesMax: number; // of cached content
  freeBytesMin: number; // that must stay free on the disk
}>;

/** Reserves disk space, and evicts the least recently used roots for it. */
export type Quota = Readonly<{
  /**
   * Reserves space for bytes that are about to be written.
   * @returns A function that releases the reservation once the write has been counted or has failed; undefined when
   * there is no space, and for a while after the disk was full.
   */
  reserve: (bytes: number) => Promise<(() => void) | undefined>;
  /** Records that a write failed because the disk was full. */
  noteFull: () => void;
  /** Whether writes are accepted: false for a while after the disk was full. */
  isOpen: () => boolean;
  evictedCount: () => number;
  /** Free bytes at the last check; undefined before the first check. */
  freeBytes: () => number | undefined;
}>;

/** The free space is checked again after this time, or after this many written bytes. */
const checkAfterMs = 1_000;
const checkAfterBytes = 64 * 2 ** 20;

/** Pause of writes after the disk was full: they would fail again, and other programs need the disk. */
const fullPauseMs = 2_000;

/** Eviction continues to this share below the limit, so that not every write evicts. */
const slackShare = 0.02;

/** Eviction candidates of one query. */
const victimsPerRound = 64;

/** Rounds of eviction before a reservation fails. */
const roundsMax = 100;

/** A root is not evicted for this time after its path was returned: the file may not have been opened yet. */
const pathValidMs = 5_000;

/** @param freeBytesOf - Measures the free bytes of the disk. */
export function createQuota(parts: {
  limits: QuotaLimits;
  map: ExtentMap;
  roots: Roots;
  files: Pick<ExtentFiles, "remove">;
  clock: Clock;
  log: Log;
  freeBytesOf: () => Promise<number>;
}): Quota {
  const { limits, map, roots, files, clock, log } = parts;
  let free: Readonly<{ bytes: number; checkedAt: number }> | undefined;
  let writtenSince = 0;
  let reserved = 0; // by writes under way
  let fullUntil = 0;
  let evictedCount = 0;
  let evicting: Promise<void> | undefined;

  async function freeBytes(): Promise<number> {
    if (free === undefined || clock() - free.checkedAt > checkAfterMs || writtenSince > checkAfterBytes) {
      free = { bytes: await parts.freeBytesOf(), checkedAt: clock() };
      writtenSince = 0;
    }
    return free.bytes - writtenSince;
  }

  /** Bytes to evict before `bytes` fit; they fit at 0 or less. */
  async function excess(bytes: number): Promise<number> {
    const freeNow = await freeBytes();
    const overBudget = roots.totalBytes() + reserved + bytes - limits.bytesMax;
    const underFloor = limits.freeBytesMin + bytes - freeNow;
    return Math.max(overBudget, underFloor);
  }

  async function evict(bytes: number): Promise<void> {
    saveUses();
    let left = bytes + slackShare * limits.bytesMax;
    for (const { name, bytes: held } of map.oldest(victimsPerRound + roots.passedCount())) {
      if (left <= 0) break;
      if (!isIdle(name)) continue;
      roots.forget(name);
      await files.remove(name);
      evictedCount += 1;
      left -= held;
    }
    free = undefined;
  }

  function saveUses(): void {
    try {
      roots.saveUses();
    } catch (error) {
      // The order of eviction is then older.
      log.warn("the times of last use of cached content could not be written", { error });
    }
  }

  function isIdle(name: string): boolean {
    if (roots.isForgotten(name)) return false; // its file is removed, and its row not yet
    const root = roots.known(name);
    return root === undefined || (root.users === 0 && clock() - root.pathReturnedAt > pathValidMs);
  }

  return {
    async reserve(bytes) {
      if (clock() < fullUntil) return undefined;
      for (let round = 0; round < roundsMax; round++) {
        const over = await excess(bytes);
        if (over <= 0) {
          writtenSince += bytes;
          reserved += bytes;
          return () => {
            reserved -= bytes;
          };
        }
        const before = evictedCount;
        evicting ??= evict(over).finally(() => {
          evicting = undefined;
        });
        await evicting;
        if (evictedCount === before) break;
      }
      fullUntil = clock() + fullPauseMs;
      log.warn("no space for content", { totalBytes: roots.totalBytes(), freeBytes: free?.bytes });
      return undefined;
    },
    noteFull() {
      fullUntil = clock() + fullPauseMs;
      free = undefined;
    },
    isOpen: () => clock() >= fullUntil,
    evictedCount: () => evictedCount,
    freeBytes: () => free?.bytes,
  };
}

/** Free bytes for an unprivileged user on the disk of a folder. */
export async function diskFreeBytes(folder: string): Promise<number> {
  const disk = await statfs(folder);
  return disk.bavail * disk.bsize;
}
