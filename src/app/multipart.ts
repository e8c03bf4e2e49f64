/**
 * Uploads in parts, put together: their files, those who write to them, those who check them, and the sweep.
 * @module
 */
import { systemClock } from "../lib/clock.ts";
import type { MakeId } from "../store/ledger/transfers.ts";
import { openPartFiles } from "../store/uploads/part-files.ts";
import { createFileCheck } from "../upload/intake/file-check.ts";
import type { Intake } from "../upload/intake/intake.ts";
import type { UploadQuota } from "../upload/intake/upload-quota.ts";
import { createFinalizer } from "../upload/multipart/finalize.ts";
import { createMultipart, type Multipart } from "../upload/multipart/multipart.ts";
import { createPartWriters } from "../upload/multipart/part-writers.ts";
import { openMultipartSweep } from "../upload/multipart/sweep.ts";
import type { UploadThreads } from "./threads.ts";
import type { UploadParts } from "./upload-setup.ts";

/** What they are opened with. */
export type MultipartSetup = UploadParts &
  Readonly<{
    intake: Intake;
    quota: UploadQuota;
    threads: UploadThreads;
    makeId: MakeId;
    /** Of the folder of uploads (store/uploads/store-name.ts). */
    storeName: string;
  }>;

/** Uploads in parts, open. */
export type OpenMultipart = Readonly<{
  multipart: Multipart;
  /** Ends an upload before its time. */
  drop: (id: string) => Promise<void>;
  /** What the file of an upload is called below the folder of uploads. */
  nameOf: (id: string) => string;
  /** What they take of the disk. Bytes. */
  diskBytes: () => number;
}>;

/**
 * Half of what uploads may take: whoever fills it with what nobody pays for leaves the other half to those who do. The
 * largest item has room in any case.
 */
function unpaidBytesOf({ UPLOAD_DISK_BYTES_MAX: all, UPLOAD_BYTES_MAX: item }: UploadParts["config"]): number {
  return Math.max(Math.floor(all / 2), Math.min(item, all));
}

/**
 * Opens them; everything is closed by `closers`. What they take of the disk is still to be told to the room.
 *
 * Rejects when the ledger or the folder cannot be read.
 */
export async function openMultipart(parts: MultipartSetup): Promise<OpenMultipart> {
  const { config, folder, payment, intake, quota, threads, makeId, storeName, log, closers } = parts;
  const { ledger } = payment;
  const files = await openPartFiles(folder.uploads);
  const writers = createPartWriters(files, quota);
  const finalizer = createFinalizer({
    ledger,
    writers,
    intake,
    makeId,
    clock: systemClock,
    log,
    check: createFileCheck(folder.uploads, threads.walks),
    atOnce: threads.walks.length,
  });
  closers.add("finalizing of uploads", finalizer.close);
  const multipart = createMultipart({
    storeName,
    ledger,
    writers,
    finalizer,
    makeId,
    clock: systemClock,
    itemBytesMax: config.UPLOAD_BYTES_MAX,
    unpaidBytesMax: unpaidBytesOf(config),
    makeUploadId: () => crypto.randomUUID(),
  });
  const sweep = await openMultipartSweep({
    storeName,
    ledger,
    files,
    writers,
    finalizer,
    makeId,
    clock: systemClock,
    log,
    onEnded: multipart.forget,
  });
  closers.add("sweep of uploads in parts", sweep.close);
  return { multipart, drop: sweep.drop, nameOf: writers.nameOf, diskBytes: writers.diskBytes };
}
