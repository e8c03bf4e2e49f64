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

/** How much may be used. */
export type QuotaLimits = Readonly<{
  bytesMax: number; // that content may take
  freeBytesMin: number; // that must stay free on the disk
}>;

/** Space, made by evicting the least recently used roots. */
export type Quota = Readonly<{
  /**
   * Reserves space for bytes that are about to be written.
   * @returns What gives it back, once they are written and counted, or were not; undefined when there is no room, and
   * for a while after the disk was full.
   */
  take: (bytes: number) => Promise<(() => void) | undefined>;
  /** Notes that a write to the disk failed. */
  noteFull: () => void;
  /** Whether the last attempt to make space did not fail a moment ago. */
  isOpen: () => boolean;
  evictedCount: () => number;
  /** Free bytes as last asked; undefined before the first time. */
  freeBytes: () => number | undefined;
}>;

/** The disk is asked again after so long, or after so many bytes were written. */
const askAfterMs = 1_000;
const askAfterBytes = 64 * 2 ** 20;

/** After the disk was full, nothing is written for so long: it would fail again, and others need the disk. */
const restAfterFullMs = 2_000;

/** Evicting goes on to so much below the limit, so that not every write evicts. */
const slackShare = 0.02;

/** Victims looked at in one query. */
const victimsPerLook = 64;

/** Rounds of evicting before giving up. */
const looksMax = 100;

/** A root whose path was given away so recently may not have been opened yet. */
const handedOutMs = 5_000;

/** @param freeBytesOf - Asks the disk. */
export function createQuota(parts: {
  limits: QuotaLimits;
  map: ExtentMap;
  roots: Roots;
  files: ExtentFiles;
  clock: Clock;
  log: Log;
  freeBytesOf: () => Promise<number>;
}): Quota {
  const { limits, map, roots, files, clock, log } = parts;
  let free: Readonly<{ bytes: number; askedAt: number }> | undefined;
  let writtenSince = 0;
  let taken = 0; // by writings under way
  let fullUntil = 0;
  let evictedCount = 0;
  let evicting: Promise<void> | undefined;

  async function freeBytes(): Promise<number> {
    if (free === undefined || clock() - free.askedAt > askAfterMs || writtenSince > askAfterBytes) {
      free = { bytes: await parts.freeBytesOf(), askedAt: clock() };
      writtenSince = 0;
    }
    return free.bytes - writtenSince;
  }

  /** Bytes that must go before `bytes` fit. 0 or less: they fit. */
  async function excess(bytes: number): Promise<number> {
    const freeNow = await freeBytes();
    const overBudget = roots.totalBytes() + taken + bytes - limits.bytesMax;
    const underFloor = limits.freeBytesMin + bytes - freeNow;
    return Math.max(overBudget, underFloor);
  }

  async function evict(bytes: number): Promise<void> {
    saveUses();
    let left = bytes + slackShare * limits.bytesMax;
    for (const { name, bytes: held } of map.oldest(victimsPerLook + roots.activeCount())) {
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
      log.warn("the uses of content could not be written", { error }); // the order is then a little older
    }
  }

  function isIdle(name: string): boolean {
    const root = roots.known(name);
    return root === undefined || (root.users === 0 && clock() - root.handedOutAt > handedOutMs);
  }

  return {
    async take(bytes) {
      if (clock() < fullUntil) return undefined;
      for (let look = 0; look < looksMax; look++) {
        const over = await excess(bytes);
        if (over <= 0) {
          writtenSince += bytes;
          taken += bytes;
          return () => {
            taken -= bytes;
          };
        }
        const before = evictedCount;
        evicting ??= evict(over).finally(() => {
          evicting = undefined;
        });
        await evicting;
        if (evictedCount === before) break;
      }
      fullUntil = clock() + restAfterFullMs;
      log.warn("no space for content", { totalBytes: roots.totalBytes(), freeBytes: free?.bytes });
      return undefined;
    },
    noteFull() {
      fullUntil = clock() + restAfterFullMs;
      free = undefined;
    },
    isOpen: () => clock() >= fullUntil,
    evictedCount: () => evictedCount,
    freeBytes: () => free?.bytes,
  };
}

/** Bytes that a user without privileges may still write on the disk of a folder. */
export async function diskFreeBytes(folder: string): Promise<number> {
  const disk = await statfs(folder);
  return disk.bavail * disk.bsize;
}
