/**
 * Quota of uploads: how much of the disk their bytes may take, including uploads in progress.
 * Source: docs/reference/upload.md#posting-an-item; docs/reference/threats.md (C6).
 * @module
 */
import { statfsSync } from "node:fs";
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";

/** The quota that an arriving item holds. */
export type QuotaHeld = Readonly<{
  /**
   * Holds more quota for a larger item than expected.
   * @param size - New total size. Bytes.
   * @throws Failure `no_space`; the earlier quota remains held.
   */
  grow: (size: number) => void;
  /** Reports written bytes, which the free space of the disk already excludes. */
  wrote: (size: number) => void;
  /**
   * Releases the quota. A second call has no effect.
   *
   * @param storedBytes - Size of the stored item; 0 after a rejection.
   */
  release: (storedBytes?: number) => void;
}>;

export type UploadQuota = Readonly<{
  /**
   * Holds quota for an arriving item.
   * @param size - The largest size of the item. Bytes.
   * @throws Failure `no_space`.
   */
  take: (size: number) => QuotaHeld;
  /** Counts the stored bytes now. Never rejects. */
  recount: () => Promise<void>;
  /** Reason to reject every upload, in a sentence; none while there is space. */
  reasons: () => readonly string[];
}>;

export type QuotaOptions = Readonly<{
  folder: string;
  /** Counts the bytes of stored items. */
  countStored: () => Promise<number>;
  /** The last count. */
  storedBytes: number;
  bytesMax: number;
  /** Space of the disk that uploads do not use. Bytes. */
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
  /** Bytes held by items in progress. */
  let inProgress = 0;
  /** Bytes of these that are not written yet. */
  let unwritten = 0;

  /** The reason to reject more bytes; undefined if there is space. */
  function fault(size: number): string | undefined {
    const taken = stored.bytes() + inProgress;
    if (taken + size > bytesMax)
      return `Uploads take ${taken} of the ${bytesMax} bytes that UPLOAD_DISK_BYTES_MAX allows.`;
    const free = freeBytes();
    if (free - unwritten - size < freeBytesMin)
      return `The disk has ${free} bytes free, and ${freeBytesMin} must stay free (UPLOAD_FREE_BYTES_MIN).`;
    return undefined;
  }

  /** The reason to reject the smallest item, also for a missing folder. */
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
    inProgress += size;
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
          inProgress -= size;
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

/** @throws Failure `disk_failed` {reason} when the folder cannot be examined. */
function statOf(folder: string): Readonly<{ bavail: number; bsize: number }> {
  try {
    return statfsSync(folder);
  } catch (error) {
    const reason = `the folder of uploads cannot be examined: ${error instanceof Error ? error.message : error}`;
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
 * @param code - For example `ENOSPC`. @param reason - The message of the system, for the log.
 * @returns `no_space`, `busy` where too many files are open, else `disk_failed`.
 */
export function diskFailure(code: string, reason: string, cause?: unknown): Failure {
  if (fullCodes.has(code)) return new Failure("no_space", { reason }, cause);
  if (crowdedCodes.has(code)) return new Failure("busy", { reason }, cause);
  return new Failure("disk_failed", { reason }, cause);
}
