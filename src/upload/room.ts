/**
 * Room for uploads: how much of the disk their bytes may take, those under way included.
 * Source: contract.md §6 ("no room 503 before the first byte"); reference/trust.md C6.
 * @module
 */
import { statfsSync } from "node:fs";
import { Failure } from "../failures.ts";
import type { Clock } from "../lib/clock.ts";

/** A part of the room, held while an item arrives. */
export type RoomHeld = Readonly<{ release: () => void }>;

/** The room. */
export type UploadRoom = Readonly<{
  /**
   * Holds room for an item that begins to arrive.
   * @param size - What it will take at most. Bytes.
   * @throws Failure `no_room`.
   */
  take: (size: number) => RoomHeld;
  /** Why uploads are refused, in a sentence; none while there is room. */
  reasons: () => readonly string[];
}>;

/** What the room is measured by. */
export type RoomOptions = Readonly<{
  folder: string;
  /** Bytes of items that are kept. */
  keptBytes: () => number;
  bytesMax: number;
  /** Of the disk, what stays free. */
  freeBytesMin: number;
  clock: Clock;
}>;

/** The system is asked how much is free at most so often: it costs more than the rest. Milliseconds. */
const freshMs = 500;

/** Creates the room. */
export function createUploadRoom({
  folder,
  keptBytes,
  bytesMax,
  freeBytesMin,
  clock,
}: RoomOptions): UploadRoom {
  let underWay = 0;
  let free = 0;
  let askedAt = Number.NEGATIVE_INFINITY;

  function freeBytes(): number {
    const now = clock();
    if (now - askedAt >= freshMs || now < askedAt) {
      const { bavail, bsize } = statfsSync(folder);
      free = bavail * bsize;
      askedAt = now;
    }
    return free;
  }

  /** What is wrong with so many bytes more. */
  function fault(size: number): string | undefined {
    const kept = keptBytes();
    if (kept + underWay + size > bytesMax)
      return `Uploads take ${kept + underWay} of the ${bytesMax} bytes that UPLOAD_DISK_BYTES_MAX allows.`;
    if (freeBytes() - underWay - size < freeBytesMin)
      return `The disk has ${free} bytes free, and ${freeBytesMin} are to stay free (UPLOAD_FREE_BYTES_MIN).`;
    return undefined;
  }

  return {
    take: (size) => {
      const reason = fault(size);
      if (reason !== undefined) throw new Failure("no_room", { reason, size });
      underWay += size;
      let isHeld = true;
      return {
        release: () => {
          if (isHeld) underWay -= size;
          isHeld = false;
        },
      };
    },
    reasons: () => {
      const reason = fault(0);
      return reason === undefined ? [] : [reason];
    },
  };
}
