/**
 * Finalizes multipart uploads: closes the file to writers, verifies it once, and makes it the file of the item.
 *
 * The state is in the row, so that a restart continues the work. All concurrent and repeated requests share one
 * finalization and its result. One transaction charges for the item and ends the upload.
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
import type { Taken, Terms } from "../intake/charge-item.ts";
import type { CheckFile } from "../intake/file-check.ts";
import type { Intake } from "../intake/item-intake.ts";
import {
  becomeItem,
  failMultipart,
  findMultipart,
  forgetParts,
  type MultipartFailure,
  type MultipartUpload,
  reopenMultipart,
} from "./multipart-rows.ts";
import type { PartWriters } from "./part-writers.ts";

/** Phase of a finalization: the item is being verified, or charged for. */
export type FinalizeStage = "VALIDATING" | "FINALIZING";

export type Finalizer = Readonly<{
  /**
   * Finalizes an upload, or waits for a running finalization. The work continues when no caller waits.
   *
   * @param upload - Its row, in the state `finalizing`.
   * @param isPromised - Whether a client was promised the result. If so, temporary failures are retried until the
   *   upload expires. Otherwise a temporary failure reopens the upload and rejects.
   * @throws Failure as `Intake.acceptStaged` does, with the failure in the row; a temporary failure (status 500 or
   *   more).
   */
  run: (upload: MultipartUpload, isPromised: boolean) => Promise<Taken>;
  /**
   * Joins a running finalization. Called in the transaction that finds the upload in the state `finalizing`: a later
   * transaction may end that state.
   *
   * @param isPromised - As in `run`.
   * @returns `undefined` while this process does not finalize the upload.
   */
  join: (id: string, isPromised: boolean) => Promise<Taken> | undefined;
  /** The phase; `undefined` while this process does not finalize the upload. */
  stage: (id: string) => FinalizeStage | undefined;
  /** Whether the queue is full. */
  isFull: () => boolean;
  /** Aborts running finalizations, which continue at the next start. */
  close: () => Promise<void>;
}>;

export type FinalizerParts = Readonly<{
  ledger: LedgerDatabase;
  writers: PartWriters;
  intake: Pick<Intake, "acceptStaged">;
  check: CheckFile;
  /** Uploads that are verified at once: the number of threads. */
  atOnce: number;
  makeId: MakeId;
  clock: Clock;
  log: Log;
}>;

/** Limit of running and waiting finalizations. */
const waitingMax = 1_000;

/** Backoff between attempts. Milliseconds. */
const firstPauseMs = 1_000;
const longestPauseMs = 60_000;
const doublingsMax = 6;

/** Size of a read of the header. Bytes. */
const headBytes = 16 * 1_024;

type Job = {
  stage: FinalizeStage;
  isPromised: boolean;
  /** Set in the transaction that ends the state `finalizing` without an item. A later request starts another job. */
  hasFailed: boolean;
  done: Promise<Taken>;
};

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

  /** Waits for the next attempt, or stores the outcome and throws the error of the last one. */
  async function afterFailure(upload: MultipartUpload, job: Job, tries: number, error: unknown) {
    const word = failureWord(error);
    if (word !== undefined) await reject(parts, upload, job, word, error);
    if (isBlocked(error)) await removeFile(parts, upload);
    if (word !== undefined || life.signal.aborted) throw error;
    log.warn("a multipart upload could not be finalized", { uploadId: upload.id, tries, error });
    if (await reopenUnlessPromised(upload, job)) throw error;
    const pause = firstPauseMs * 2 ** Math.min(tries, doublingsMax);
    await sleep(Math.min(longestPauseMs, pause), life.signal);
  }

  /** Reopens an upload whose result no client was promised. @returns Whether it did. */
  async function reopenUnlessPromised(upload: MultipartUpload, job: Job): Promise<boolean> {
    const mustGoOn = () => job.isPromised && clock() < upload.expiresAt;
    if (mustGoOn()) return false;
    return await ledger.write(async (tx) => {
      job.hasFailed = !mustGoOn();
      if (job.hasFailed) await reopenMultipart(tx, upload.id, "finalizing", clock());
      return job.hasFailed;
    });
  }

  function start(upload: MultipartUpload, isPromised: boolean): Job {
    const started = Promise.withResolvers<Taken>();
    const job: Job = { stage: "VALIDATING", isPromised, hasFailed: false, done: started.promise };
    jobs.set(upload.id, job);
    ignoreRejection(job.done); // the row has the outcome
    untilDone(upload, job)
      .finally(() => {
        if (jobs.get(upload.id) === job) jobs.delete(upload.id);
      })
      .then(started.resolve, started.reject);
    return job;
  }

  return {
    run: (upload, isPromised) => {
      const known = jobs.get(upload.id);
      const job = known === undefined || known.hasFailed ? start(upload, isPromised) : known;
      if (isPromised) job.isPromised = true;
      return job.done;
    },
    join: (id, isPromised) => {
      const job = jobs.get(id);
      if (job === undefined || job.hasFailed) return undefined;
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

/** Accepts a file as an item. */
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
  // An interrupted part may have left bytes after the end.
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
      parts.log.debug("a multipart upload is verified", { uploadId: id, itemId: item.row.id, size });
      return item;
    },
  };
  return await parts.intake.acceptStaged(staged, signal);
}

/**
 * Ends an upload in the transaction of its item: releases the reservation, whose credits then pay. Nothing is accepted
 * for an upload that is open again, or expired, because the rows were read before that.
 */
function endOf({ id, paid }: MultipartUpload): NonNullable<Terms["alongside"]> {
  return async (tx, step, itemId) => {
    if (paid?.reservationId !== undefined) await voidReservation(tx, paid.reservationId, step);
    if (await becomeItem(tx, id, itemId, step.now)) return;
    if ((await findMultipart(tx, id))?.itemId !== itemId)
      throw new Failure("upload_rejected", { reason: "The upload is not being finalized." });
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

/** Removes the file unless the item uses it: an item that was stored before has another file. */
async function leaveFile({ writers, log }: FinalizerParts, { id }: MultipartUpload, { upload }: Taken): Promise<void> {
  if (upload.bytes.file === writers.nameOf(id)) {
    writers.forget(id);
    return;
  }
  try {
    await writers.remove(id);
  } catch (error) {
    // The item is accepted nevertheless. The next tidying finds the file.
    log.warn("the file of a multipart upload could not be removed", { uploadId: id, error });
  }
}

/** Marks an upload as rejected, and releases what it held. */
async function reject(
  { ledger, clock, makeId }: FinalizerParts,
  { id, paid }: MultipartUpload,
  job: Job,
  word: MultipartFailure,
  error: unknown,
): Promise<void> {
  const step = { now: clock(), makeId };
  await ledger.write(async (tx) => {
    const isFailed = await failMultipart(tx, id, { word, reason: reasonOf(error) }, step.now);
    if (isFailed && paid?.reservationId !== undefined) await voidReservation(tx, paid.reservationId, step);
    if (isFailed && isBlocked(error)) await forgetParts(tx, id);
    job.hasFailed = true;
  });
}

/** Removes all bytes of a blocked upload. The row has the outcome. */
async function removeFile({ writers, log }: FinalizerParts, { id }: MultipartUpload): Promise<void> {
  try {
    await writers.remove(id);
  } catch (error) {
    // The next tidying finds the file.
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

/** The wire word for a permanent failure; `undefined` for a temporary one. */
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
