/**
 * Quota of uploads: how much of the disk their bytes may take, including uploads under way.
 * Source: docs/reference/upload.md#posting-an-item; docs/reference/threats.md (C6).
 * @module
 */
import { statfsSync } from "node:fs";
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";

/** A part of the quota, held while an item arrives. */
export type QuotaHeld = Readonly<{
  /**
   * Holds more, for an item of which more comes than was thought.
   * @param size - Of all that it will take. Bytes.
   * @throws Failure `no_space`; what was held stays held.
   */
  grow: (size: number) => void;
  /** So many more bytes of it are on the disk, where the system counts them. */
  wrote: (size: number) => void;
  /** Releases it. A second call does nothing. @param storedBytes - Size of the stored item; 0 if there is none. */
  release: (storedBytes?: number) => void;
}>;

export type UploadQuota = Readonly<{
  /**
   * Holds quota for an item that begins to arrive.
   * @param size - What it will take at most. Bytes.
   * @throws Failure `no_space`.
   */
  take: (size: number) => QuotaHeld;
  /** Counts the stored bytes now, ahead of time. Never rejects. */
  recount: () => Promise<void>;
  /** Why uploads are rejected, in a sentence; none while there is space. */
  reasons: () => readonly string[];
}>;

export type QuotaOptions = Readonly<{
  folder: string;
  /** Counts the bytes of stored items. */
  countStored: () => Promise<number>;
  /** What that was when it was last counted. */
  storedBytes: number;
  bytesMax: number;
  /** Of the disk, what stays free. */
  freeBytesMin: number;
  clock: Clock;
  log: Log;
}>;

/** The system is asked how much is free at most so often: it costs more than the rest. Milliseconds. */
const freeFreshMs = 500;

/** Shortest time between counts of the stored bytes: items leave the disk when they are permanent. Milliseconds. */
const storedFreshMs = 15_000;

/** The smallest item: while it does not fit, every upload is rejected. Source: ANS-104 §2, signature type 2. */
const smallestItemBytes = 2 + 64 + 32 + 2 + 16;

export function createUploadQuota(options: QuotaOptions): UploadQuota {
  const { folder, bytesMax, freeBytesMin, clock } = options;
  const stored = createStored(options);
  const freeBytes = createFreeBytes(folder, clock);
  /** What items under way will take, and what of it the disk does not show yet. */
  let underWay = 0;
  let unwritten = 0;

  /** What is wrong with so many bytes more. */
  function fault(size: number): string | undefined {
    const taken = stored.bytes() + underWay;
    if (taken + size > bytesMax)
      return `Uploads take ${taken} of the ${bytesMax} bytes that UPLOAD_DISK_BYTES_MAX allows.`;
    const free = freeBytes();
    if (free - unwritten - size < freeBytesMin)
      return `The disk has ${free} bytes free, and ${freeBytesMin} are to stay free (UPLOAD_FREE_BYTES_MIN).`;
    return undefined;
  }

  /** Also of a folder that is gone. */
  function faultNow(): string | undefined {
    try {
      return fault(smallestItemBytes);
    } catch (error) {
      if (error instanceof Failure) return String(error.context["reason"]);
      throw error;
    }
  }

  function hold(size: number): void {
    const reason = fault(size);
    if (reason !== undefined) throw new Failure("no_space", { reason, size });
    underWay += size;
    unwritten += size;
  }

  return {
    take: (first) => {
      hold(first);
      let size = first;
      let written = 0;
      let isHeld = true;
      return {
        grow: (whole) => {
          if (whole <= size) return;
          hold(whole - size);
          size = whole;
        },
        wrote: (bytes) => {
          const counted = Math.min(bytes, size - written);
          written += counted;
          unwritten -= counted;
        },
        release: (storedBytes = 0) => {
          if (!isHeld) return;
          isHeld = false;
          underWay -= size;
          unwritten -= size - written;
          stored.add(storedBytes);
        },
      };
    },
    recount: stored.count,
    reasons: () => {
      const reason = faultNow();
      return reason === undefined ? [] : [reason];
    },
  };
}

/** Bytes of stored items: the last count, plus the items since. */
function createStored({ countStored, storedBytes, clock, log }: QuotaOptions) {
  let bytes = storedBytes;
  let countedAt = clock();
  let isCounting = false;

  async function count(): Promise<void> {
    isCounting = true;
    try {
      bytes = await countStored();
    } catch (error) {
      log.warn("the disk space of uploads could not be counted", { error });
    } finally {
      countedAt = clock();
      isCounting = false;
    }
  }

  return {
    count,
    bytes: () => {
      if (!isCounting && Math.abs(clock() - countedAt) >= storedFreshMs) void count();
      return bytes;
    },
    add: (size: number) => {
      bytes += size;
    },
  };
}

function createFreeBytes(folder: string, clock: Clock): () => number {
  let free = 0;
  let askedAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = clock();
    if (Math.abs(now - askedAt) >= freeFreshMs) {
      const { bavail, bsize } = statOf(folder);
      free = bavail * bsize;
      askedAt = now;
    }
    return free;
  };
}

/** @throws Failure `disk_failed` {reason} when the folder cannot be looked at. */
function statOf(folder: string): Readonly<{ bavail: number; bsize: number }> {
  try {
    return statfsSync(folder);
  } catch (error) {
    const reason = `the folder of uploads cannot be looked at: ${error instanceof Error ? error.message : error}`;
    throw new Failure("disk_failed", { reason }, error);
  }
}

/** Error codes of a full disk or an exhausted quota. */
const fullCodes: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

/** Error codes of too many open files. */
const crowdedCodes: ReadonlySet<string> = new Set(["EMFILE", "ENFILE"]);

/**
 * The failure for an error of the system.
 *
 * @param code - Its name: `ENOSPC`. @param reason - What the system said, for the log.
 * @returns `no_space`, `busy` where too many files are open, else `disk_failed`.
 */
export function diskFailure(code: string, reason: string, cause?: unknown): Failure {
  if (fullCodes.has(code)) return new Failure("no_space", { reason }, cause);
  if (crowdedCodes.has(code)) return new Failure("busy", { reason }, cause);
  return new Failure("disk_failed", { reason }, cause);
}
