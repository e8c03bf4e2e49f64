/**
 * Multipart uploads: parts arrive in any order and size, across restarts and from any client, until a client finalizes
 * the upload.
 *
 * A part is acknowledged when its bytes and its row are durable; a list has exactly the acknowledged parts. Parts may
 * overlap and repeat: the signature decides whether the item is valid. The parts are written to their offsets in one
 * file, which becomes the file of the item.
 * Source: docs/reference/upload.md#uploads-in-parts.
 * @module
 */
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import { ignoreRejection, untilStopped } from "../../lib/stop.ts";
import type { UserAddress } from "../../payment/addresses.ts";
import { reserve } from "../../payment/credits/reservations.ts";
import { type LedgerDatabase, readDurably, type Tx } from "../../store/ledger/ledger-database.ts";
import { type MakeId, transfer, user } from "../../store/ledger/transfers.ts";
import { checkItemSize } from "../intake/arriving-item.ts";
import { readTakenById, type Taken } from "../intake/charge-item.ts";
import type { Finalizer, FinalizeStage } from "./multipart-finalizer.ts";
import {
  beginFinalizing,
  checkOwnStore,
  countUnfinished,
  findMultipart,
  findMultipartOfPayment,
  insertMultipart,
  insertPart,
  isOver,
  type MultipartUpload,
  type PaidAhead,
  type Part,
  type Payers,
  partsOf,
  reopenMultipart,
} from "./multipart-rows.ts";
import type { ArrivingPart, PartWriters } from "./part-writers.ts";

export type MultipartRequest = Readonly<{
  /** Size of the parts; `chunkSizeDefault` by default. */
  chunkSize: number | undefined;
  /** Key of the client for limits. */
  client: string;
}>;

export type PaidRequest = Readonly<{
  chunkSize: number | undefined;
  paid: Omit<PaidAhead, "reservationId">;
  /** The account of the credits. They move to `paid.payer`, who also receives a refund. */
  from: UserAddress;
}>;

export type MultipartStatus =
  | Readonly<{ kind: "open"; upload: MultipartUpload }>
  | Readonly<{ kind: "finalizing"; stage: FinalizeStage; upload: MultipartUpload }>
  | Readonly<{ kind: "failed"; upload: MultipartUpload }>
  | Readonly<{ kind: "finalized"; upload: MultipartUpload; taken: Taken }>;

/** Calls with an upload id may reject with Failure `multipart_not_found`. */
export type Multipart = Readonly<{
  /** Creates an upload. @throws Failure `busy`, `too_many_requests`. */
  create: (request: MultipartRequest) => Promise<MultipartUpload>;
  /**
   * Creates a paid upload, and holds the credits. The same payment returns the same upload again.
   * @throws Failure `insufficient_balance` when the credits were spent meanwhile; `busy`.
   */
  createPaid: (request: PaidRequest) => Promise<MultipartUpload>;
  /** Finds the upload of a payment. */
  findPaid: (payment: string) => Promise<MultipartUpload | undefined>;
  /**
   * Stores a part. When the promise resolves, the part is durable and in the list.
   *
   * @throws Failure `upload_rejected` {reason}, `item_too_large` {reason}, `no_space`, `busy`; errors of the pieces.
   */
  put: (id: string, part: ArrivingPart, signal: AbortSignal) => Promise<void>;
  /** An upload, and its parts ordered by offset. */
  list: (id: string) => Promise<Readonly<{ upload: MultipartUpload; parts: readonly Part[] }>>;
  status: (id: string) => Promise<MultipartStatus>;
  /**
   * Finalizes an upload, and waits for its item.
   *
   * @throws Failure as `Intake.acceptStaged` does; `upload_rejected` {reason} while bytes are missing.
   */
  finalize: (id: string, payers: Payers, signal: AbortSignal) => Promise<Taken>;
  /** Starts a finalization without waiting; `status` has the progress. @returns The item of a finalized upload. */
  finalizeLater: (id: string, payers: Payers) => Promise<Taken | undefined>;
  /** Ends the count of an upload against the limit of its client. */
  forget: (id: string) => void;
}>;

/** Limits of part sizes, equal to those of the service for which clients are written. Bytes. */
export const chunkSizeMin = 5 * 2 ** 20;
export const chunkSizeMax = 500 * 2 ** 20;
export const chunkSizeDefault = 25_000_000;

/** Most parts of one upload. */
export const partsMax = 10_000;

/** Lifetime of an upload. Milliseconds. */
export const lifeMs = 24 * 3_600_000;

/** A reservation outlives its upload by this time, so that the expiry of the upload releases it. Milliseconds. */
const holdGraceMs = 3_600_000;

/**
 * Most unfinished uploads, of all clients and of one; each may have thousands of rows. Uploads that are paid for are
 * counted separately: unpaid ones, which cost nothing, must not make a settled payment useless.
 */
export const unfinishedMax = 4_096;
export const unfinishedPerClientMax = 256;

export type MultipartParts = Readonly<{
  /** Name of the folder of uploads (store/uploads/item-files.ts). */
  storeName: string;
  ledger: LedgerDatabase;
  writers: PartWriters;
  finalizer: Finalizer;
  /** Largest accepted item. Bytes. */
  itemBytesMax: number;
  /** Quota of unpaid parts, so that they cannot exhaust the disk. Bytes. */
  unpaidBytesMax: number;
  /** Makes unique, unguessable upload ids: the id authorizes writes. */
  makeUploadId: () => string;
  makeId: MakeId;
  clock: Clock;
}>;

export function createMultipart(parts: MultipartParts): Multipart {
  const { ledger, writers, finalizer, makeUploadId } = parts;
  const shares = createClientShares(unfinishedPerClientMax);
  const holdUnpaid = createUnpaidQuota(parts);
  const find = (tx: Tx, id: string) => findNow(parts, tx, id);

  const claim = (id: string, payers: Payers, isPromised: boolean) =>
    ledger.write((tx) => claimNow(parts, tx, id, payers, isPromised));

  function resultOf(id: string, claimed: Running, isPromised: boolean): Promise<Taken> {
    const done = claimed.kind === "joined" ? claimed.done : finalizer.run(claimed.upload, isPromised);
    ignoreRejection(done.then(() => shares.release(id)));
    return done;
  }

  /** Ends the counts of an upload that became an item: its finalization may have lost its database after the commit. */
  function leaveItem(id: string, taken: Taken): Taken {
    shares.release(id);
    if (taken.upload.bytes.file === writers.nameOf(id)) writers.forget(id);
    return taken;
  }

  return {
    create: async ({ chunkSize = chunkSizeDefault, client }) => {
      const id = makeUploadId();
      shares.take(client, id);
      try {
        return await ledger.write((tx) => make(parts, tx, id, chunkSize, undefined));
      } catch (error) {
        shares.release(id);
        throw error;
      }
    },
    createPaid: ({ chunkSize = chunkSizeDefault, paid, from }) => {
      const id = makeUploadId();
      return ledger.write(async (tx) => {
        const known = await findMultipartOfPayment(tx, paid.payment);
        if (known !== undefined) return known;
        return await make(parts, tx, id, chunkSize, {
          ...paid,
          reservationId: await hold(parts, tx, id, paid, from),
        });
      });
    },
    findPaid: (payment) => readDurably(ledger, (tx) => findMultipartOfPayment(tx, payment)),
    put: async (id, part, signal) => {
      const check = () => ledger.read((tx) => findWritable(parts, tx, id, part));
      const upload = await check();
      const endHold = upload.paid === undefined ? holdUnpaid(part.size) : undefined;
      try {
        await writers.write(id, part, signal, check);
      } finally {
        endHold?.();
      }
      await ledger.write((tx) => addPart(parts, tx, id, part));
    },
    list: (id) =>
      ledger.read(async (tx) => {
        const upload = await find(tx, id);
        if (upload.state !== "finalized") return { upload, parts: await partsOf(tx, id) };
        const failure = lossOf(await takenOf(tx, upload));
        if (failure !== undefined) return { upload: { ...upload, failure }, parts: [] };
        return { upload, parts: [{ start: 0, size: upload.size ?? 0 }] };
      }),
    status: async (id) => {
      const status = await ledger.read(async (tx): Promise<MultipartStatus> => {
        const upload = await find(tx, id);
        if (upload.state === "finalized") return endStatus(upload, await takenOf(tx, upload));
        if (upload.state !== "finalizing") return { kind: upload.state, upload };
        return { kind: "finalizing", upload, stage: finalizer.stage(id) ?? "VALIDATING" };
      });
      if (status.kind === "finalized") await ledger.confirmed(); // its receipt is written
      return status;
    },
    finalize: async (id, payers, signal) => {
      const claimed = await claim(id, payers, false);
      if (claimed.kind === "item") return leaveItem(id, claimed.taken);
      return await untilStopped(resultOf(id, claimed, false), signal);
    },
    finalizeLater: async (id, payers) => {
      const claimed = await claim(id, payers, true);
      if (claimed.kind === "item") return leaveItem(id, claimed.taken);
      ignoreRejection(resultOf(id, claimed, true)); // the row has the outcome
      return undefined;
    },
    forget: shares.release,
  };
}

/** Holds quota for unpaid parts while they arrive. @returns Ends the hold. */
function createUnpaidQuota({ writers, unpaidBytesMax }: MultipartParts): (size: number) => () => void {
  let arriving = 0;
  return (size) => {
    const taken = writers.unpaidDiskBytes() + arriving;
    if (taken + size > unpaidBytesMax) {
      const reason = `Unpaid parts take ${taken} of the ${unpaidBytesMax} bytes that are allowed.`;
      throw new Failure("no_space", { reason, size });
    }
    arriving += size;
    return () => {
      arriving -= size;
    };
  };
}

async function findNow({ clock }: MultipartParts, tx: Tx, id: string): Promise<MultipartUpload> {
  const upload = await findMultipart(tx, id);
  if (upload === undefined || isOver(upload, clock())) throw notFound(id);
  return upload;
}

/** Finds the upload of a part that may be written to its file. */
async function findWritable(parts: MultipartParts, tx: Tx, id: string, part: Part): Promise<MultipartUpload> {
  const upload = await findNow(parts, tx, id);
  if (upload.state === "finalized") throwLoss(await takenOf(tx, upload));
  checkPart(upload, part, parts.itemBytesMax);
  checkOwnStore(parts.storeName, upload);
  return upload;
}

type Running =
  | Readonly<{ kind: "begun"; upload: MultipartUpload }>
  /** In an object, because the transaction must not wait for it. */
  | Readonly<{ kind: "joined"; done: Promise<Taken> }>;

/**
 * Begins a finalization, or finds a running or finished one.
 *
 * @param isPromised - As in `Finalizer.run`.
 */
async function claimNow(
  parts: MultipartParts,
  tx: Tx,
  id: string,
  payers: Payers,
  isPromised: boolean,
): Promise<Running | Readonly<{ kind: "item"; taken: Taken }>> {
  const { finalizer, storeName, clock } = parts;
  const upload = await findNow(parts, tx, id);
  if (upload.state === "finalized") {
    const taken = await takenOf(tx, upload);
    throwLoss(taken);
    return { kind: "item", taken };
  }
  if (finalizer.stage(id) === undefined && finalizer.isFull()) throw new Failure("busy", { id });
  checkOwnStore(storeName, upload);
  if (upload.state === "finalizing") {
    const done = finalizer.join(id, isPromised);
    return done === undefined ? { kind: "begun", upload } : { kind: "joined", done };
  }
  const size = wholeSize(await partsOf(tx, id));
  await beginFinalizing(tx, id, size, payers, clock());
  return { kind: "begun", upload: await findNow(parts, tx, id) };
}

async function make(
  parts: MultipartParts,
  tx: Tx,
  id: string,
  chunkSize: number,
  paid: PaidAhead | undefined,
): Promise<MultipartUpload> {
  const { storeName: store } = parts;
  const unfinished = await countUnfinished(tx, store, paid !== undefined);
  if (unfinished >= unfinishedMax) throw new Failure("busy", { unfinished });
  const now = parts.clock();
  await insertMultipart(tx, { id, store, chunkSize, paid, now, expiresAt: now + lifeMs });
  return await findNow(parts, tx, id);
}

/** Holds the prepaid credits. @returns The reservation. */
async function hold(
  { clock, makeId }: MultipartParts,
  tx: Tx,
  id: string,
  { payer, winc }: Omit<PaidAhead, "reservationId">,
  from: UserAddress,
): Promise<string> {
  const now = clock();
  if (from !== payer)
    await transfer(tx, {
      id: makeId(),
      kind: "prepayment",
      at: now,
      changeId: id,
      legs: [
        { account: user(from), amount: -winc },
        { account: user(payer), amount: winc },
      ],
    });
  const request = {
    itemId: id,
    signer: payer,
    winc,
    paidBy: [],
    directive: "list-or-signer" as const,
    expiresAt: now + lifeMs + holdGraceMs,
  };
  return (await reserve(tx, request, { now, makeId })).id;
}

async function addPart(parts: MultipartParts, tx: Tx, id: string, part: Part): Promise<void> {
  const upload = await findNow(parts, tx, id);
  checkPart(upload, part, parts.itemBytesMax);
  if (upload.state === "failed") await reopenMultipart(tx, id, "failed", parts.clock());
  const isNew = await insertPart(tx, id, part);
  if (isNew && upload.partCount >= partsMax) throw invalidPart(`An upload has at most ${partsMax} parts.`);
}

async function takenOf(tx: Tx, { itemId }: MultipartUpload): Promise<Taken> {
  const taken = await readTakenById(tx, itemId ?? "");
  assert(taken !== undefined, "an upload that is finalized is an item");
  return taken;
}

function endStatus(upload: MultipartUpload, taken: Taken): MultipartStatus {
  const failure = lossOf(taken);
  if (failure !== undefined) return { kind: "failed", upload: { ...upload, failure } };
  return { kind: "finalized", upload, taken };
}

/** The failure of an item after it was accepted: its receipt no longer holds. */
function lossOf({ upload: { state, failedReason } }: Taken): MultipartUpload["failure"] {
  if (state !== "failed") return undefined;
  return { word: "INVALID", reason: `The item has failed: ${failedReason}` };
}

/** @throws Failure `upload_rejected` {reason} when the item has failed. */
function throwLoss(taken: Taken): void {
  const loss = lossOf(taken);
  if (loss !== undefined) throw new Failure("upload_rejected", { reason: loss.reason });
}

/** Checks a part before its bytes arrive. */
function checkPart(upload: MultipartUpload, { start, size }: Part, itemBytesMax: number): void {
  if (upload.state === "finalizing") throw invalidPart("The upload is being finalized.");
  if (upload.state === "finalized") throw invalidPart("The upload is finalized.");
  const end = start + size;
  if (size > chunkSizeMax)
    throw new Failure("item_too_large", { reason: `Chunks have at most ${chunkSizeMax} bytes!`, size });
  if (upload.paid !== undefined && end > upload.paid.size)
    throw invalidPart(`It ends at byte ${end}, and ${upload.paid.size} bytes are paid for.`);
  checkItemSize(end, itemBytesMax);
}

/** The size of the complete item. @param parts - Ordered by offset. @throws Failure while bytes are missing. */
function wholeSize(parts: readonly Part[]): number {
  let end = 0;
  for (const { start, size } of parts) {
    if (start > end) throw incomplete(`Bytes ${end} to ${start - 1} are missing.`);
    end = Math.max(end, start + size);
  }
  if (end === 0) throw incomplete("No part has arrived.");
  return end;
}

function incomplete(reason: string): Failure {
  return new Failure("upload_rejected", { reason: `Invalid Data Item! ${reason}` });
}

function invalidPart(reason: string): Failure {
  return new Failure("upload_rejected", { reason: `Invalid chunk. ${reason}` });
}

function notFound(id: string): Failure {
  const named = id.slice(0, idLengthShown);
  return new Failure("multipart_not_found", { reason: `Multi-part upload with ID ${named} not found!` });
}

/** Most characters of an invalid id in a message: the length of a valid id. */
const idLengthShown = 43;

export type ClientShares = Readonly<{
  /** Counts a thing of a client. @throws Failure `too_many_requests` at the limit. */
  take: (client: string, thing: string) => void;
  /** Ends the count of a thing. */
  release: (thing: string) => void;
}>;

/** Creates a limit of things per client. */
export function createClientShares(perClientMax: number): ClientShares {
  const counts = new Map<string, number>();
  const holders = new Map<string, string>();
  return {
    take: (client, thing) => {
      const count = counts.get(client) ?? 0;
      if (count >= perClientMax) throw new Failure("too_many_requests", { client, count });
      counts.set(client, count + 1);
      holders.set(thing, client);
    },
    release: (thing) => {
      const client = holders.get(thing);
      if (client === undefined) return;
      holders.delete(thing);
      const left = (counts.get(client) ?? 1) - 1;
      if (left === 0) counts.delete(client);
      else counts.set(client, left);
    },
  };
}
