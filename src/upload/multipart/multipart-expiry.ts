/**
 * Expires multipart uploads: deletes their files and releases their reservations. Continues interrupted finalizations,
 * and removes orphaned files.
 * Source: docs/reference/upload.md#uploads-in-parts.
 * @module
 */
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { openBackgroundLoop } from "../../lib/loop.ts";
import { ignoreRejection } from "../../lib/stop.ts";
import { voidReservation } from "../../payment/credits/reservations.ts";
import type { LedgerDatabase } from "../../store/ledger/ledger-database.ts";
import type { MakeId } from "../../store/ledger/transfers.ts";
import type { PartFiles } from "../../store/uploads/part-files.ts";
import type { Finalizer } from "./multipart-finalizer.ts";
import {
  checkOwnStore,
  deleteFinalized,
  deleteMultipart,
  finalizingMultiparts,
  findMultipart,
  isOver,
  type MultipartUpload,
  overdueMultiparts,
  ownerOfFile,
} from "./multipart-rows.ts";
import type { PartWriters } from "./part-writers.ts";

export type MultipartSweep = Readonly<{
  /**
   * Ends an upload before it expires, unless it is being finalized or has become an item.
   * @throws Failure `busy` when another process has its file.
   */
  drop: (id: string) => Promise<void>;
  /** Ends expired uploads, and continues interrupted finalizations. Runs every minute. */
  sweep: () => Promise<void>;
  /** Counts the files, and removes orphaned files. Runs at the start and every hour. */
  tidy: () => Promise<void>;
  close: () => Promise<void>;
}>;

export type MultipartSweepParts = Readonly<{
  /** Name of the folder of uploads (store/uploads/item-files.ts). */
  storeName: string;
  ledger: LedgerDatabase;
  files: PartFiles;
  writers: PartWriters;
  finalizer: Finalizer;
  /** Called for every upload that has ended; for an item, maybe again. */
  onEnded: (id: string) => void;
  makeId: MakeId;
  clock: Clock;
  log: Log;
}>;

/** Time between two sweeps, and number of sweeps between two tidyings. */
const sweepMs = 60_000;
const sweepsPerTidying = 60;

/** Most uploads that one sweep ends. The others wait for the next sweep. */
const endedMax = 1_000;

/** Time from the expiry of a finalized upload to the removal of its row. Milliseconds. */
const finalizedTtlMs = 30 * 24 * 3_600_000;

/** Resolves after the first tidying and sweep. Rejects when the folder or the ledger cannot be read. */
export async function openMultipartSweep(parts: MultipartSweepParts): Promise<MultipartSweep> {
  const unstopped = new AbortController().signal;
  await tidy(parts, unstopped);
  await sweep(parts, unstopped);
  let rounds = -1; // the first round only waits
  const loop = openBackgroundLoop(
    "multipart expiry",
    async (signal) => {
      rounds += 1;
      if (rounds > 0) await sweep(parts, signal);
      if (rounds > 0 && rounds % sweepsPerTidying === 0) await tidy(parts, signal);
      return sweepMs;
    },
    (error) => {
      parts.log.error("multipart uploads could not be swept", { error });
      return sweepMs;
    },
  );
  return {
    drop: (id) => dropUpload(parts, id, () => true),
    sweep: () => sweep(parts, unstopped),
    tidy: () => tidy(parts, unstopped),
    close: loop.close,
  };
}

async function sweep(parts: MultipartSweepParts, signal: AbortSignal): Promise<void> {
  const { storeName, ledger, finalizer, clock } = parts;
  const overdue = await ledger.read((tx) => overdueMultiparts(tx, storeName, clock(), endedMax));
  for (const { id } of overdue) {
    if (signal.aborted) return;
    await dropUpload(parts, id, (upload) => isOver(upload, clock()));
  }
  const left = await ledger.read((tx) => finalizingMultiparts(tx, storeName));
  for (const upload of left)
    if (finalizer.stage(upload.id) === undefined && !finalizer.isFull()) ignoreRejection(finalizer.run(upload, true));
}

/** Ends an upload: removes its file and releases its reservation. @param isToEnd - Called in the transaction. */
async function dropUpload(
  { storeName, ledger, writers, onEnded, clock, makeId }: MultipartSweepParts,
  id: string,
  isToEnd: (upload: MultipartUpload) => boolean,
): Promise<void> {
  const step = { now: clock(), makeId };
  const isEnded = await ledger.write(async (tx) => {
    const upload = await findMultipart(tx, id);
    if (upload === undefined || upload.state === "finalized" || !isToEnd(upload)) return false;
    checkOwnStore(storeName, upload);
    if (!(await deleteMultipart(tx, id))) return false;
    if (upload.paid?.reservationId !== undefined) await voidReservation(tx, upload.paid.reservationId, step);
    return true;
  });
  if (!isEnded) return;
  onEnded(id);
  await writers.remove(id);
}

async function tidy(parts: MultipartSweepParts, signal: AbortSignal): Promise<void> {
  const { storeName, ledger, files, writers, onEnded, clock, log } = parts;
  for (const id of await files.list()) {
    if (signal.aborted) return;
    if (writers.isOpen(id)) continue;
    const owner = await ledger.read((tx) => ownerOfFile(tx, id, files.nameOf(id)));
    // A finalization may have lost its database after the commit, and left the upload in the counts.
    if (owner === "item") writers.forget(id);
    if (owner === "item" || owner === undefined) onEnded(id);
    if (owner === "item") continue;
    const tidied = owner === undefined ? removeOrphan(parts, id) : writers.count(owner);
    // One file that the disk cannot read does not prevent a start.
    await tidied.catch((error) => log.warn("a file of a multipart upload was not tidied", { uploadId: id, error }));
  }
  await ledger.write((tx) => deleteFinalized(tx, storeName, clock() - finalizedTtlMs));
}

async function removeOrphan({ writers, log }: MultipartSweepParts, id: string): Promise<void> {
  await writers.remove(id);
  log.info("removed an orphaned file of a multipart upload", { uploadId: id });
}
