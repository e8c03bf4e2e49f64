/**
 * Uploads that come in parts, in any order and any size, over restarts and from any client, until one says that the
 * whole is there.
 *
 * A part is acknowledged when its bytes are on the disk and its row says so; whoever lists the parts later sees exactly
 * those. Parts may overlap and repeat; what the item is, its signature decides. Nothing is assembled: the parts are
 * written into the file that becomes the item's.
 * Source: docs/reference/upload.md#uploads-in-parts.
 * @module
 */
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import { ignoreRejection, untilStopped } from "../../lib/stop.ts";
import type { UserAddress } from "../../payment/addresses.ts";
import { reserve } from "../../payment/credits/reservations.ts";
import type { LedgerDatabase, Tx } from "../../store/ledger/ledger-database.ts";
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

/** What is said when an upload is made. */
export type MultipartRequest = Readonly<{
  /** Size of the parts; `chunkSizeDefault` by default. */
  chunkSize: number | undefined;
  /** Who asks, as far as limits are about it. */
  client: string;
}>;

/** What is said when an upload is made that was paid for. */
export type PaidRequest = Readonly<{
  chunkSize: number | undefined;
  paid: Omit<PaidAhead, "reservationId">;
  /** Whose credits they are before; they move to `paid.payer`, who has them also when they are given back. */
  from: UserAddress;
}>;

/** How far an upload is. */
export type MultipartStatus =
  | Readonly<{ kind: "open"; upload: MultipartUpload }>
  | Readonly<{ kind: "finalizing"; stage: FinalizeStage; upload: MultipartUpload }>
  | Readonly<{ kind: "failed"; upload: MultipartUpload }>
  | Readonly<{ kind: "finalized"; upload: MultipartUpload; taken: Taken }>;

/** Uploads in parts. Every call that names an upload may reject with Failure `multipart_not_found`. */
export type Multipart = Readonly<{
  /** Makes an upload. @throws Failure `busy`, `too_many_requests`. */
  create: (request: MultipartRequest) => Promise<MultipartUpload>;
  /**
   * Creates a paid upload, and holds the credits. The same payment returns the same upload again.
   * @throws Failure `insufficient_balance` when the credits were spent meanwhile; `busy`.
   */
  createPaid: (request: PaidRequest) => Promise<MultipartUpload>;
  /** The upload that a payment made. */
  findPaid: (payment: string) => Promise<MultipartUpload | undefined>;
  /**
   * Takes a part. When it resolves, the part is on the disk and in the list.
   *
   * @throws Failure `upload_rejected` {reason}, `item_too_large` {reason}, `no_space`, `busy`; what the pieces throw.
   */
  put: (id: string, part: ArrivingPart, signal: AbortSignal) => Promise<void>;
  /** An upload, and its parts in the order of their places. */
  list: (id: string) => Promise<Readonly<{ upload: MultipartUpload; parts: readonly Part[] }>>;
  status: (id: string) => Promise<MultipartStatus>;
  /**
   * Makes an item of an upload, and waits until it is one.
   *
   * @throws Failure as `Intake.acceptStaged` does; `upload_rejected` {reason} while bytes are missing.
   */
  finalize: (id: string, payers: Payers, signal: AbortSignal) => Promise<Taken>;
  /** The same without waiting: `status` tells how it goes. @returns The item, when it is one already. */
  finalizeLater: (id: string, payers: Payers) => Promise<Taken | undefined>;
  /** Counts an upload no longer that is over. */
  forget: (id: string) => void;
}>;

/** Limits on the wire; those of the service that clients are written for. Bytes. */
export const chunkSizeMin = 5 * 2 ** 20;
export const chunkSizeMax = 500 * 2 ** 20;
export const chunkSizeDefault = 25_000_000;

/** Parts of one upload. */
export const partsMax = 10_000;

/** How long an upload may take. Milliseconds. */
export const lifeMs = 24 * 3_600_000;

/** What was paid ahead is held a little longer, so that the upload's own end gives it back. Milliseconds. */
const holdGraceMs = 3_600_000;

/** Uploads that are not items yet, of all and of one client: each may come to thousands of rows. */
const unfinishedMax = 4_096;
export const unfinishedPerClientMax = 256;

/** What it works with. */
export type MultipartParts = Readonly<{
  /** Of the folder of uploads (store/uploads/store-name.ts). */
  storeName: string;
  ledger: LedgerDatabase;
  writers: PartWriters;
  finalizer: Finalizer;
  /** Largest item that is taken. Bytes. */
  itemBytesMax: number;
  /** Disk that parts may take while nobody has paid for them, so that they never take all of it. Bytes. */
  unpaidBytesMax: number;
  /** Makes unique, unguessable upload ids: the id authorizes writes. */
  makeUploadId: () => string;
  makeId: MakeId;
  clock: Clock;
}>;

/** Creates it. */
export function createMultipart(parts: MultipartParts): Multipart {
  const { ledger, writers, finalizer, itemBytesMax, makeUploadId } = parts;
  const shares = createClientShares(unfinishedPerClientMax);
  const holdUnpaid = createUnpaidQuota(parts);
  const find = (tx: Tx, id: string) => findNow(parts, tx, id);

  /** Takes an upload for finalization, or finds that it is taken, or done. */
  async function claim(id: string, payers: Payers): Promise<Taken | MultipartUpload> {
    return await ledger.write(async (tx) => {
      const upload = await find(tx, id);
      if (upload.state === "finalized") return await takenOf(tx, upload);
      if (finalizer.stage(id) === undefined && finalizer.isFull()) throw new Failure("busy", { id });
      checkOwnStore(parts.storeName, upload);
      if (upload.state === "finalizing") return upload;
      const size = wholeSize(await partsOf(tx, id));
      await beginFinalizing(tx, id, size, payers, parts.clock());
      return await find(tx, id);
    });
  }

  function run(upload: MultipartUpload, isPromised: boolean): Promise<Taken> {
    const done = finalizer.run(upload, isPromised);
    ignoreRejection(done.then(() => shares.release(upload.id)));
    return done;
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
    findPaid: (payment) => ledger.read((tx) => findMultipartOfPayment(tx, payment)),
    put: async (id, part, signal) => {
      const upload = await ledger.read((tx) => find(tx, id));
      checkPart(upload, part, itemBytesMax);
      checkOwnStore(parts.storeName, upload);
      const endHold = upload.paid === undefined ? holdUnpaid(part.size) : undefined;
      try {
        await writers.write(id, part, signal);
      } finally {
        endHold?.();
      }
      await ledger.write((tx) => addPart(parts, tx, id, part));
    },
    list: (id) =>
      ledger.read(async (tx) => {
        const upload = await find(tx, id);
        if (upload.state !== "finalized") return { upload, parts: await partsOf(tx, id) };
        return { upload, parts: [{ start: 0, size: upload.size ?? 0 }] };
      }),
    status: (id) =>
      ledger.read(async (tx) => {
        const upload = await find(tx, id);
        if (upload.state === "finalized") return { kind: "finalized", upload, taken: await takenOf(tx, upload) };
        if (upload.state !== "finalizing") return { kind: upload.state, upload };
        return { kind: "finalizing", upload, stage: finalizer.stage(id) ?? "VALIDATING" };
      }),
    finalize: async (id, payers, signal) => {
      const claimed = await claim(id, payers);
      return "upload" in claimed ? claimed : await untilStopped(run(claimed, false), signal);
    },
    finalizeLater: async (id, payers) => {
      const claimed = await claim(id, payers);
      if ("upload" in claimed) return claimed;
      ignoreRejection(run(claimed, true)); // its row says how it ended
      return undefined;
    },
    forget: shares.release,
  };
}

/** Holds disk for parts that nobody has paid for while they arrive. @returns Ends the hold. */
function createUnpaidQuota({ writers, unpaidBytesMax }: MultipartParts): (size: number) => () => void {
  let arriving = 0;
  return (size) => {
    const taken = writers.diskBytes() + arriving;
    if (taken + size > unpaidBytesMax) {
      const reason = `Parts take ${taken} of the ${unpaidBytesMax} bytes that they may before they are paid for.`;
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

async function make(
  parts: MultipartParts,
  tx: Tx,
  id: string,
  chunkSize: number,
  paid: PaidAhead | undefined,
): Promise<MultipartUpload> {
  const { storeName: store } = parts;
  const unfinished = await countUnfinished(tx, store);
  if (unfinished >= unfinishedMax) throw new Failure("busy", { unfinished });
  const now = parts.clock();
  await insertMultipart(tx, { id, store, chunkSize, paid, now, expiresAt: now + lifeMs });
  return await findNow(parts, tx, id);
}

/** Holds what was paid. @returns The reservation. */
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

/** The size of the whole. @param parts - In the order of their places. */
function wholeSize(parts: readonly Part[]): number {
  let end = 0;
  for (const { start, size } of parts) {
    if (start > end) throw incomplete(`Bytes ${end} to ${start - 1} are missing.`);
    end = Math.max(end, start + size);
  }
  if (end === 0) throw incomplete("No part has come.");
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

/** What is said of an id that is none: as much as an id has. */
const idLengthShown = 43;

/** What clients hold. */
export type ClientShares = Readonly<{
  /** Notes that a client holds a thing. @throws Failure `too_many_requests` when it holds as many as one may. */
  take: (client: string, thing: string) => void;
  /** Notes that nobody holds a thing any more. */
  release: (thing: string) => void;
}>;

/** Creates shares. @param perClientMax - Things that one client may hold. */
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
