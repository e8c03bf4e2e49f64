/**
 * Finalizing uploads that came in parts: the file is closed to writers, walked over once, and becomes the item's own.
 *
 * The row says that it is being done, so that a restart goes on with it. However often and by however many it is asked
 * for, one works, and all are told the same. The item is charged for, and the upload is ended, in one transaction.
 * Source: docs/reference/upload.md#uploads-in-parts.
 * @module
 */
import { Failure, type FailureCode } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { createSemaphore } from "../../lib/semaphore.ts";
import { ignoreRejection, sleep } from "../../lib/stop.ts";
import { voidReservation } from "../../payment/credits/reservations.ts";
import type { LedgerDatabase } from "../../store/ledger/ledger-database.ts";
import type { MakeId } from "../../store/ledger/transfers.ts";
import type { PartFile } from "../../store/uploads/part-files.ts";
import type { Taken, Terms } from "../intake/charge.ts";
import type { CheckFile } from "../intake/file-check.ts";
import type { Intake } from "../intake/item-intake.ts";
import {
  becomeItem,
  failMultipart,
  forgetParts,
  type MultipartFailure,
  type MultipartUpload,
  reopenMultipart,
} from "./multipart-rows.ts";
import type { PartWriters } from "./part-writers.ts";

/** How far a finalization is: the item is being checked, or charged for. */
export type FinalizeStage = "VALIDATING" | "FINALIZING";

/** Finalizes uploads. */
export type Finalizer = Readonly<{
  /**
   * Finalizes an upload, or waits for whoever does. It goes on when nobody waits any more.
   *
   * @param upload - Its row, taken for finalization.
   * @param isPromised - Somebody was told that it will be done: what can pass is tried again until it has. Otherwise
   *   the upload is open again then, and the caller is told.
   * @throws Failure as `Intake.acceptStaged` does, with the row saying that it failed; what can pass (status 500 or
   *   more).
   */
  run: (upload: MultipartUpload, isPromised: boolean) => Promise<Taken>;
  /** How far it is; `undefined` when nobody works on it here. */
  stage: (id: string) => FinalizeStage | undefined;
  /** Whether no more can be taken. */
  isFull: () => boolean;
  /** Leaves what is under way, for the next start to go on with. */
  close: () => Promise<void>;
}>;

/** What it works with. */
export type FinalizerParts = Readonly<{
  ledger: LedgerDatabase;
  writers: PartWriters;
  intake: Pick<Intake, "acceptStaged">;
  check: CheckFile;
  /** Uploads that are walked over at once: as many as there are threads. */
  atOnce: number;
  makeId: MakeId;
  clock: Clock;
  log: Log;
}>;

/** Finalizations that are asked for and not done. */
const waitingMax = 1_000;

/** Pauses between tries. Milliseconds. */
const firstPauseMs = 1_000;
const longestPauseMs = 60_000;
const doublingsMax = 6;

/** What is read to find the header. */
const headBytes = 16 * 1_024;

type Job = { stage: FinalizeStage; isPromised: boolean; done: Promise<Taken> };

/** Creates the finalizer. */
export function createFinalizer(parts: FinalizerParts): Finalizer {
  const { ledger, writers, clock, log } = parts;
  const jobs = new Map<string, Job>();
  const life = new AbortController();
  const semaphore = createSemaphore(parts.atOnce, waitingMax);

  async function attempt(upload: MultipartUpload, job: Job): Promise<Taken> {
    const permit = semaphore.take(life.signal);
    assert(permit !== undefined, "the queue holds every finalization");
    const release = await permit;
    try {
      return await writers.alone(upload.id, (file) => take(parts, upload, file, job, life.signal));
    } finally {
      release();
    }
  }

  async function untilDone(upload: MultipartUpload, job: Job): Promise<Taken> {
    for (let tries = 0; ; tries += 1) {
      try {
        const taken = await attempt(upload, job);
        await leaveFile(parts, upload, taken);
        return taken;
      } catch (error) {
        await afterFailure(upload, job, tries, error);
      }
    }
  }

  /** Waits for another try; where there is none, writes down how it ended, and throws. */
  async function afterFailure(upload: MultipartUpload, job: Job, tries: number, error: unknown) {
    const word = failureWord(error);
    if (word !== undefined) await reject(parts, upload, word, error);
    if (isBlocked(error)) await dropParts(parts, upload);
    if (word !== undefined || life.signal.aborted) throw error;
    log.warn("an upload could not be finalized", { uploadId: upload.id, tries, error });
    if (!job.isPromised || clock() >= upload.expiresAt) {
      await ledger.write((tx) => reopenMultipart(tx, upload.id, "finalizing", clock()));
      throw error;
    }
    const pause = firstPauseMs * 2 ** Math.min(tries, doublingsMax);
    await sleep(Math.min(longestPauseMs, pause), life.signal);
  }

  function start(upload: MultipartUpload, isPromised: boolean): Job {
    const started = Promise.withResolvers<Taken>();
    const job: Job = { stage: "VALIDATING", isPromised, done: started.promise };
    jobs.set(upload.id, job);
    ignoreRejection(job.done); // its row says how it ended
    untilDone(upload, job)
      .finally(() => jobs.delete(upload.id))
      .then(started.resolve, started.reject);
    return job;
  }

  return {
    run: (upload, isPromised) => {
      const job = jobs.get(upload.id) ?? start(upload, isPromised);
      if (isPromised) job.isPromised = true;
      return job.done;
    },
    stage: (id) => jobs.get(id)?.stage,
    isFull: () => jobs.size >= waitingMax,
    close: async () => {
      life.abort(new DOMException("uploads were closed", "AbortError"));
      await Promise.allSettled([...jobs.values()].map(({ done }) => done));
    },
  };
}

/** Has a file taken in as an item. */
async function take(
  parts: FinalizerParts,
  upload: MultipartUpload,
  file: PartFile,
  job: Job,
  signal: AbortSignal,
): Promise<Taken> {
  const { id, size, payers, paid } = upload;
  assert(size !== undefined && payers !== undefined, "an upload that is finalized has a size and payers");
  job.stage = "VALIDATING";
  // A part that broke off may have left bytes behind the end.
  await file.truncate(size);
  const staged = {
    ...payers,
    prepaid: paid === undefined ? undefined : { payer: paid.payer, winc: paid.winc, size: paid.size },
    alongside: endOf(upload),
    head: headOf(file),
    size,
    verify: async (own: AbortSignal) => {
      const item = await parts.check(file.name, size, own);
      job.stage = "FINALIZING";
      parts.log.debug("an upload is whole", { uploadId: id, itemId: item.row.id, size });
      return item;
    },
  };
  return await parts.intake.acceptStaged(staged, signal);
}

/** What ends an upload, in the transaction that makes it an item: what it held is given back, to be paid from. */
function endOf({ id, paid }: MultipartUpload): NonNullable<Terms["alongside"]> {
  return async (tx, step, itemId) => {
    if (paid?.reservationId !== undefined) await voidReservation(tx, paid.reservationId, step);
    await becomeItem(tx, id, itemId, step.now);
  };
}

async function* headOf(file: PartFile): AsyncGenerator<Uint8Array> {
  for (let at = 0; ; ) {
    const bytes = await file.read(at, headBytes);
    if (bytes.length === 0) return;
    at += bytes.length;
    yield bytes;
  }
}

/** A file that belongs to the item now stays; a second copy of an item that was stored already is removed. */
async function leaveFile({ writers, log }: FinalizerParts, { id }: MultipartUpload, { upload }: Taken): Promise<void> {
  if (upload.bytes.file === writers.nameOf(id)) {
    writers.forget(id);
    return;
  }
  try {
    await writers.remove(id);
  } catch (error) {
    // The item is taken all the same; the file is found again when the folder is tidied.
    log.warn("a file of parts could not be removed", { uploadId: id, error });
  }
}

/** Marks an upload as rejected, and releases what it held. */
async function reject(
  { ledger, clock, makeId }: FinalizerParts,
  { id, paid }: MultipartUpload,
  word: MultipartFailure,
  error: unknown,
): Promise<void> {
  const step = { now: clock(), makeId };
  await ledger.write(async (tx) => {
    const isFailed = await failMultipart(tx, id, { word, reason: reasonOf(error) }, step.now);
    if (isFailed && paid?.reservationId !== undefined) await voidReservation(tx, paid.reservationId, step);
  });
}

/** Keeps no byte of what is blocked. Its row still says how it ended. */
async function dropParts({ ledger, writers, log }: FinalizerParts, { id }: MultipartUpload): Promise<void> {
  await ledger.write((tx) => forgetParts(tx, id));
  try {
    await writers.remove(id);
  } catch (error) {
    // It is found again when the folder is tidied.
    log.warn("the file of a blocked upload could not be removed", { uploadId: id, error });
  }
}

function isBlocked(error: unknown): boolean {
  return error instanceof Failure && error.code === "blocked";
}

/** Failures that a retry does not change. */
const finalCodes: readonly FailureCode[] = [
  "upload_rejected",
  "item_too_large",
  "upload_forbidden",
  "blocked",
  "payment_rejected",
  "insufficient_balance",
];

/** The wire's word for a permanent failure; `undefined` for one that may pass. */
function failureWord(error: unknown): MultipartFailure | undefined {
  if (!(error instanceof Failure) || !finalCodes.includes(error.code)) return undefined;
  const change = error.context["approval"];
  if (change === "give") return "APPROVAL_FAILED";
  if (change === "revoke") return "REVOKE_FAILED";
  return error.code === "insufficient_balance" ? "UNDERFUNDED" : "INVALID";
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Failure)) return "";
  const { reason } = error.context;
  return typeof reason === "string" ? reason : error.message;
}
